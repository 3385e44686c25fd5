"""Averages, popularity and neighbourhoods without noise, and parameters chosen on the training ratings.

The neighbourhoods are those of Wang and Tang 2017, sections 2 and 5.1.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared import cost as costs, neighbourhood
from dpmf_cli.algorithms.shared.averages import Effects, EffectsModel, averages_of_the_rated, bounded_effects
from dpmf_cli.algorithms.shared.base import Algorithm, Model, Where
from dpmf_cli.algorithms.shared.budget import EffectsParameters, Part
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.core.arrays import Doubles, Ints, Singles
from dpmf_cli.core.ratings import Ratings, average_of, transposed
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import later
from dpmf_cli.kernels import similarities
from dpmf_cli.kernels.similarities import LearnedRatings, NeighbourhoodModel, SimilarityStep
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

    Ratings go to the fifths in turn, in user-major order, and each user starts one fifth further. So without any
    randomness the ratings of each user are spread over all fifths, as are those of each item if all users rate the
    same items. A fifth is skipped if nothing would be left to fit or to predict.
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
            errors += np.square(known - averages_by("users", fitted, BETAS)[held_out.users]).sum(axis=0)
            continue
        items = averages_by("items", fitted, BETAS)
        left = known - items[held_out.items]
        if keys == ("beta_m",):
            errors += np.square(left).sum(axis=0)
            continue
        sums = residual_sums_by_user(fitted.users, fitted.items, fitted.values, items, fitted.n_users)
        for row, beta in zip(errors, BETAS, strict=True):
            users = averages_of_the_rated(sums[:-1], fitted.user_counts, beta, sums[-1] / len(fitted))
            users = np.clip(users, -effects.user_clamp, effects.user_clamp)
            row += np.square(left - users[held_out.users]).sum(axis=0)
    best = np.unravel_index(np.argmin(errors), errors.shape)
    return effects.model_copy(update={key: float(BETAS[at]) for key, at in zip(keys, best, strict=True)})


def both_averages(train: Ratings, effects: EffectsParameters) -> tuple[Doubles, Doubles]:
    """(n_items, 1) item averages and (n_users, 1) user averages of the residuals, with the β of `effects`.

    Algorithms 1 and 2 of Friedman et al. 2016, without noise and without the clamp.
    """
    items = averages_by("items", train, np.array([effects.beta_m]))
    sums = residual_sums_by_user(train.users, train.items, train.values, items, train.n_users)
    centre = sums[-1] / max(len(train), 1)
    return items, averages_of_the_rated(sums[:-1], train.user_counts, effects.beta_u, centre)


def averages_by(side: Literal["items", "users"], train: Ratings, betas: Doubles) -> Doubles:
    """(rows, B) (Σ r_ui + β·GAvg)/(count + β) of each item or user, for each β of `betas` (B,), rating units."""
    rows, counts = (train.items, train.item_counts) if side == "items" else (train.users, train.user_counts)
    sums = sums_by(rows, train.values, len(counts))[:, None]
    overall = np.array([average_of(train.values, train.scale.middle)])
    return np.ascontiguousarray(averages_of_the_rated(sums, counts, betas, overall))


@dataclass(frozen=True)
class OwnAverages(EffectsModel):
    """Clean averages, whose users' part is Σ_{R_u} (r_ui − items_i), stabilised by `beta` and clamped to ±`clamp`."""

    beta: float
    clamp: float

    def for_new_users(self, entry: Algorithm, own: Ratings) -> EffectsModel:
        """The same for users without training ratings, whose part was the centre of the averages, from `own` ones."""
        sums = residual_sums_by_user(own.users, own.items, own.values, self.items, own.n_users)
        users = averages_of_the_rated(sums[:-1], own.user_counts, self.beta, self.users)
        return EffectsModel(self.items, np.clip(users, -self.clamp, self.clamp))


class AveragesBaseline(Algorithm):
    """An average without noise."""

    stochastic = False
    new_users = True

    effects: EffectsParameters = EffectsParameters()

    def measure(self, train: Ratings, epsilons: Epsilons, curator: Curator) -> Effects:
        """The averages of algorithms 1 and 2, each step of which gets the grid's ε in full, which is ∞."""
        return bounded_effects(train, self.chosen(train), dict.fromkeys(Part, epsilons), curator)

    def chosen(self, train: Ratings) -> EffectsParameters:
        return self.effects

    def cost(self, shape: Shape, grid: int) -> Cost:
        return costs.effects_cost(shape, grid)


class TunableAverage(AveragesBaseline):
    """An average whose β of `tunes` an entry with `tuned` chooses on the training ratings."""

    tunes: ClassVar[tuple[str, ...]]

    tuned: bool = tuned_field()

    def chosen(self, train: Ratings) -> EffectsParameters:
        return tuned_averages(train, self.effects, self.tunes) if self.tuned else self.effects

    def cost(self, shape: Shape, grid: int) -> Cost:
        once = super().cost(shape, grid)
        return once + costs.choice_of_averages(shape) if self.tuned else once


class GlobalAverage(AveragesBaseline):
    """r̂_ui = GAvg: the upper bound for error."""

    title = "GA"
    algorithm: Literal["ga"]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        effects = self.measure(train, epsilons, curator)
        items = np.broadcast_to(effects.overall, effects.items.shape)
        return EffectsModel(items, np.zeros_like(effects.users))


class UserAverage(TunableAverage):
    """r̂_ui = (Σ_{R_u} r_ui + β_u·GAvg)/(|R_u| + β_u): how a user rates, whatever the item. None of the papers here
    has it.

    It is more accurate than the item average where users differ more than items.
    """

    title = "UA"
    tunes = ("beta_u",)
    algorithm: Literal["ua"]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        beta = self.chosen(train).beta_u
        users = averages_by("users", train, np.array([beta]))
        return OwnAverages(np.zeros((train.n_items, 1)), users, beta, np.inf)


class ItemAverage(TunableAverage):
    """r̂_ui = IAvg(i): the accuracy attainable without personalisation."""

    title = "IA"
    tunes = ("beta_m",)
    algorithm: Literal["ia"]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        effects = self.measure(train, epsilons, curator)
        return EffectsModel(effects.items, np.zeros_like(effects.users))


class GlobalEffects(TunableAverage):
    """r̂_ui = IAvg(i) + UAvg(u): the simplest personalisation."""

    title = "GE"
    tunes = ("beta_u", "beta_m")
    algorithm: Literal["ge"]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        parameters = self.chosen(train)
        effects = bounded_effects(train, parameters, dict.fromkeys(Part, epsilons), curator)
        return OwnAverages(effects.items, effects.users, parameters.beta_u, parameters.user_clamp)


class Popularity(Algorithm):
    """score_ui = c_i, the number of training ratings of item i, whatever their values: every user gets the same
    order.

    A score is not a rating, so it has no errors. Cremonesi, Koren and Turrin 2010 call this method TopPop.
    """

    title = "Popularity"
    stochastic = False
    scores_only = True
    new_users = True

    algorithm: Literal["popularity"]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        counts = np.repeat(train.item_counts[:, None].astype(np.float64), len(epsilons), axis=1)
        return EffectsModel(counts, np.zeros((train.n_users, len(epsilons))))

    def cost(self, shape: Shape, grid: int) -> Cost:
        return costs.effects_cost(shape, grid)


class NeighbourhoodBaseline(AveragesBaseline):
    """Every item has k neighbours. `effects` sets the averages, by default plain ones."""

    effects: EffectsParameters = EffectsParameters(beta_m=0)
    k: int = Field(500, ge=1, le=100_000, description="N_k: number of neighbours of an item")

    def start(
        self, train: Ratings, epsilons: Epsilons, curator: Curator, similarity: float
    ) -> NeighbourhoodModel:
        """The model with one similarity, whose neighbours are the items with the most common raters."""
        averages = self.measure(train, epsilons, curator).items
        others = neighbourhood.most_co_rated(train, self.k)
        return similarities.neighbourhood_model(train, others, similarity, averages)

    def cost(self, shape: Shape, grid: int) -> Cost:
        return costs.effects_cost(shape, grid) + costs.neighbourhood_cost(shape, 1, self.k, steps=0)

    def predictions_cost(self, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
        return costs.pairs_cost(grid, pairs) + costs.met_cost(shape, grid, pairs, self.k)


@dataclass(frozen=True)
class BetweenUsers:
    """The neighbourhoods of users: those of the `items` of the transposed ratings."""

    items: NeighbourhoodModel

    def predict(self, users: Ints, items: Ints) -> Singles:
        return self.items.predict(items, users)


Block = tuple[slice, Doubles]
"""Some items i, and s_ij (b, n_items)."""


class CorrelationKNN(NeighbourhoodBaseline):
    """Predicts from k neighbours of item i:  r̂_ui = r̄_i + Σ_j s_ij(r_uj − r̄_j)/Σ_j |s_ij|.

    Between users it does the same on the transposed ratings:  r̂_ui = r̄_u + Σ_v s_uv(r_vi − r̄_v)/Σ_v |s_uv|.
    """

    new_users = Where(lambda entry: entry.between == "items", "between items")
    k: int = Field(900, ge=1, le=100_000, description="N_k: 900 for ML-100K, 1300 for ML-1M")
    nearest: Literal["similarity", "common_raters"] = Field(
        "similarity", description="how the neighbours of an item are chosen; not in the paper"
    )
    between: Literal["items", "users"] = later(
        "items",
        description="similarities between items, or between users: the same method on the transposed ratings",
    )

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> Model:
        if self.between == "users":
            return BetweenUsers(self.of_items(transposed(train), epsilons, curator))
        return self.of_items(train, epsilons, curator)

    def of_items(self, train: Ratings, epsilons: Epsilons, curator: Curator) -> NeighbourhoodModel:
        averages = self.measure(train, epsilons, curator).items
        k = min(self.k, train.n_items - 1)
        neighbours, values = [], []
        common = neighbourhood.most_co_rated(train, k) if self.nearest == "common_raters" else None
        for items, scores in self.similarities(train, averages[:, 0]):
            nearest = neighbourhood.largest(scores, items, k) if common is None else common[items]
            neighbours.append(nearest)
            values.append(np.take_along_axis(scores, nearest.astype(np.intp), axis=1).astype(np.float32))
        return similarities.neighbourhood_model(
            train, np.concatenate(neighbours), np.concatenate(values), averages
        )

    @abstractmethod
    def similarities(self, train: Ratings, averages: Doubles) -> Iterator[Block]:
        """Yields s_ij (b, n_items) for one block of items i after the other; `averages` (n_items,) are r̄."""

    def cost(self, shape: Shape, grid: int) -> Cost:
        if self.between == "users":
            shape = Shape(shape.items, shape.users, shape.ratings)
        products = Cost(3 * shape.squares * 4e-9 + shape.items**2 * 1e-7, shape.squares / 4 * 12.0)
        return (
            costs.effects_cost(shape, grid) + products + costs.neighbourhood_cost(shape, 1, self.k, steps=0)
        )


def over_co_raters(train: Ratings, values: Doubles) -> Iterator[Block]:
    """Yields Σ_u v_ui·v_uj/√(Σ_u v_ui²·Σ_u v_uj²) by blocks; every sum is over the users who rated both items."""
    rated, squares = (
        neighbourhood.by_user(train, np.ones(len(train))),
        neighbourhood.by_user(train, values**2),
    )
    numbers = neighbourhood.by_user(train, values)
    sums = zip(
        neighbourhood.item_products(numbers, numbers),
        neighbourhood.item_products(squares, rated),
        neighbourhood.item_products(rated, squares),
        strict=True,
    )
    for (items, products), (_, own), (_, other) in sums:
        yield items, over_norms(products, np.sqrt(own * other))


def over_norms(products: Doubles, norms: Doubles) -> Doubles:
    """Products divided by norms; 0 where a norm is 0."""
    return np.where(norms > 1e-12, products / np.maximum(norms, 1e-12), 0.0)


class PearsonKNN(CorrelationKNN):
    """s_ij = Σ_u (r_ui − r̄_i)(r_uj − r̄_j)/√(Σ_u (r_ui − r̄_i)²·Σ_u (r_uj − r̄_j)²); all sums run over the users who
    rated both items."""

    title = "PCC"
    algorithm: Literal["pcc"]

    def similarities(self, train: Ratings, averages: Doubles) -> Iterator[Block]:
        return over_co_raters(train, train.values.astype(np.float64) - averages[train.items])


class CosineKNN(CorrelationKNN):
    """s_ij = Σ_u r_ui·r_uj/√(Σ_u r_ui²·Σ_u r_uj²).

    The sum of products runs over the users who rated both items, those of squares over all raters of an item, which
    the paper leaves open: the similarity of items with few common raters is then small, which is more accurate.
    """

    title = "COS"
    algorithm: Literal["cos"]
    over: Literal["raters", "co_raters"] = Field(
        "raters", description="the users over whom squares are summed: raters of the item, or of both items"
    )

    def similarities(self, train: Ratings, averages: Doubles) -> Iterator[Block]:
        values = train.values.astype(np.float64)
        if self.over == "co_raters":
            yield from over_co_raters(train, values)
            return
        norms = np.sqrt(np.bincount(train.items, values**2, train.n_items))
        ratings = neighbourhood.by_user(train, values)
        for items, products in neighbourhood.item_products(ratings, ratings):
            yield items, over_norms(products, norms[items, None] * norms)


class ConstantNeighbourhood(NeighbourhoodBaseline):
    """r̂_ui = r̄_i + the mean of r_uj − r̄_j over the neighbours of item i that user u rated: s_ij = 1.

    Neighbours are the items with the most common raters. The difference from this model
    shows what a learned similarity is worth.
    """

    title = "Constant similarity"

    algorithm: Literal["constant_nbm"]

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        return self.start(train, epsilons, curator, similarity=1.0)


class ProbabilisticNeighbourhood(NeighbourhoodBaseline):
    """PNBM: Wang and Tang 2017, equations 2 to 5, by gradient descent from a constant similarity s₀:

        s_ij ← s_ij − η·(Σ_u e_ui·∂r̂_ui/∂s_ij + λ·s_ij),   e = r̂ − r,   K times over all ratings

    Neighbours are the items with the most common raters. Predictions do not depend on the scale of S, so only η/s₀²
    and λ·η matter. The model overfits, so K has to be chosen. The published η (0.1 or 0.4) hardly moves S from
    s₀ = 1.
    """

    title = "PNBM"

    algorithm: Literal["pnbm"]
    initial_similarity: float = Field(1.0, gt=0, description="s₀")
    learning_rate: float = Field(2.0, gt=0, description="η, on sums of gradients")
    iterations: int = Field(8, ge=1, description="K")
    regularization: float = Field(0.005, ge=0, description="λ; the paper's 0.05 or 0.005")
    clamp_errors: bool = later(
        False, description="whether errors are clamped as DPSGD-PNBM clamps them, section 3"
    )

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        model = self.start(train, epsilons, curator, self.initial_similarity)
        learned = LearnedRatings.of(train)
        everybody = np.ones(len(train), np.bool_)
        rates = np.array([self.learning_rate])
        for t in range(1, self.iterations + 1):
            bound = neighbourhood.error_bound(train.scale, t) if self.clamp_errors else np.inf
            step = SimilarityStep(everybody, rates, self.regularization, error_bound=bound)
            similarities.descend_similarities(model, learned, step)
        return model

    def cost(self, shape: Shape, grid: int) -> Cost:
        return costs.effects_cost(shape, grid) + costs.neighbourhood_cost(
            shape, 1, self.k, steps=self.iterations
        )
