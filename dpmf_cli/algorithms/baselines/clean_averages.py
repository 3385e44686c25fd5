"""Averages and popularity without noise, and their parameters chosen on the training ratings."""

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.averages import Effects, EffectsModel, averages_of_the_rated, bounded_effects
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.cost import NOTHING, Cost, Shape, choice_of_averages, effects_cost
from dpmf_cli.algorithms.shared.effects import EffectsParameters, Part
from dpmf_cli.core.ratings import Ratings, average_of
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import later
from dpmf_cli.kernels.sums import residual_sums_by_user, sums_by
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons

INNER_FOLDS = 5
"""The number of parts into which the training ratings are cut."""


def tuned_field() -> bool:
    """The key `tuned` of a baseline. If it is false, results keep the names that they had before it existed."""
    field: bool = later(
        False,
        description="choose the parameters on the training ratings; true by default on your own data set, if the "
        "config sets no parameter of the baseline",
    )
    return field


def inner_folds(train: Ratings) -> Iterator[tuple[Ratings, Ratings]]:
    """Yields (fitted, held out) for each fifth of the training ratings.

    Ratings go to the fifths in turn, in user-major order. Each user starts one fifth further. So the ratings of each
    user are spread over all fifths; so are those of each item if all users rate the same items. The cut needs no
    randomness. A fifth is skipped if nothing would be left to fit or to predict.
    """
    part = (np.arange(len(train)) + train.users) % INNER_FOLDS
    for fold in range(INNER_FOLDS):
        held_out = part == fold
        if held_out.any() and not held_out.all():
            yield train.select(~held_out), train.select(held_out)


BETAS = np.array([0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500])
"""(B,) the values tried for β_m and for β_u, in every combination."""


def tuned_averages(train: Ratings, effects: EffectsParameters, keys: tuple[str, ...]) -> EffectsParameters:
    """`effects` with the β of `keys` that predict best: of the averages of items (beta_m), of users (beta_u), or of
    users beside items (beta_u, beta_m)."""
    errors = np.zeros((len(BETAS),) * len(keys))
    for fitted, held_out in inner_folds(train):
        known = held_out.values[:, None]
        if keys == ("beta_u",):
            errors += _squares(known - averages_by("users", fitted, BETAS)[held_out.users])
            continue
        items = averages_by("items", fitted, BETAS)
        left = known - items[held_out.items]
        if keys == ("beta_m",):
            errors += _squares(left)
            continue
        sums = residual_sums_by_user(fitted.users, fitted.items, fitted.values, items, fitted.n_users)
        for row, beta in zip(errors, BETAS, strict=True):
            users = averages_of_the_rated(sums[:-1], fitted.user_counts, beta, sums[-1] / len(fitted))
            row += _squares(left - np.clip(users, -effects.user_clamp, effects.user_clamp)[held_out.users])
    best = np.unravel_index(np.argmin(errors), errors.shape)
    return effects.model_copy(update={key: float(BETAS[at]) for key, at in zip(keys, best, strict=True)})


def both_averages(
    train: Ratings, effects: EffectsParameters
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n_items, 1) item averages and (n_users, 1) user averages of the residuals, with the β of `effects`.

    Algorithms 1 and 2 of Friedman et al. 2016, without noise and without the clamp.
    """
    items = averages_by("items", train, np.array([effects.beta_m]))
    sums = residual_sums_by_user(train.users, train.items, train.values, items, train.n_users)
    centre = sums[-1] / max(len(train), 1)
    return items, averages_of_the_rated(sums[:-1], train.user_counts, effects.beta_u, centre)


def averages_by(
    side: Literal["items", "users"], train: Ratings, betas: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(rows, B) (Σ r_ui + β·GAvg)/(count + β) of each item or user, for each β of `betas` (B,), rating units."""
    rows, counts = (train.items, train.item_counts) if side == "items" else (train.users, train.user_counts)
    sums = sums_by(rows, train.values, len(counts))[:, None]
    overall = np.array([average_of(train.values, train.scale.middle)])
    return np.ascontiguousarray(averages_of_the_rated(sums, counts, betas, overall))


def _squares(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """(B,) sums of squares of errors (n, B)."""
    return np.asarray(np.square(errors).sum(axis=0))


class AveragesBaseline(Algorithm):
    """An average without noise.

    tunes  the β that an entry with `tuned` chooses on the training ratings
    """

    stochastic = False
    tunes: ClassVar[tuple[str, ...]] = ()

    effects: EffectsParameters = EffectsParameters()

    def measure(self, train: Ratings, epsilons: Epsilons, curator: Curator) -> Effects:
        """Measures the averages of algorithms 1 and 2. Each step gets the grid's ε in full, which is ∞."""
        return bounded_effects(train, self.chosen(train), dict.fromkeys(Part, epsilons), curator)

    def chosen(self, train: Ratings) -> EffectsParameters:
        """The parameters of the averages: those of the config, or those that are best on the training ratings."""
        tuned = getattr(self, "tuned", False)
        return tuned_averages(train, self.effects, self.tunes) if tuned else self.effects

    def cost(self, shape: Shape, grid: int) -> Cost:
        chosen = choice_of_averages(shape) if getattr(self, "tuned", False) else NOTHING
        return effects_cost(shape, grid) + chosen


class GlobalAverage(AveragesBaseline):
    """r̂_ui = GAvg: the upper bound for error."""

    title = "GA"
    algorithm: Literal["ga"]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        effects = self.measure(train, epsilons, curator)
        items = np.broadcast_to(effects.overall, effects.items.shape)
        return EffectsModel(items, np.zeros_like(effects.users))


class UserAverage(AveragesBaseline):
    """r̂_ui = (Σ_{R_u} r_ui + β_u·GAvg)/(|R_u| + β_u): how a user rates, whatever the item.

    It is more accurate than the item average where users differ more than items. None of the papers here has it.
    """

    title = "UA"
    tunes = ("beta_u",)
    algorithm: Literal["ua"]
    tuned: bool = tuned_field()

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        users = averages_by("users", train, np.array([self.chosen(train).beta_u]))
        return EffectsModel(np.zeros((train.n_items, 1)), users)


class ItemAverage(AveragesBaseline):
    """r̂_ui = IAvg(i): the accuracy attainable without personalisation."""

    title = "IA"
    tunes = ("beta_m",)
    algorithm: Literal["ia"]
    tuned: bool = tuned_field()

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        effects = self.measure(train, epsilons, curator)
        return EffectsModel(effects.items, np.zeros_like(effects.users))


class GlobalEffects(AveragesBaseline):
    """r̂_ui = IAvg(i) + UAvg(u): the simplest personalisation."""

    title = "GE"
    tunes = ("beta_u", "beta_m")
    algorithm: Literal["ge"]
    tuned: bool = tuned_field()

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        effects = self.measure(train, epsilons, curator)
        return EffectsModel(effects.items, effects.users)


class Popularity(Algorithm):
    """score_ui = c_i, the number of training ratings of item i, whatever their values. Every user gets the same
    order.

    A score is not a rating, so it has no errors. Cremonesi, Koren and Turrin 2010 call this method TopPop.
    """

    title = "Popularity"
    stochastic = False
    scores_only = True

    algorithm: Literal["popularity"]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        counts = np.repeat(train.item_counts[:, None].astype(np.float64), len(epsilons), axis=1)
        return EffectsModel(counts, np.zeros((train.n_users, len(epsilons))))

    def cost(self, shape: Shape, grid: int) -> Cost:
        return effects_cost(shape, grid)
