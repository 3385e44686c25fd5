"""PG-MF: devices keep their users' factors and report perturbed gradients of the items'. Shin et al. 2018."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm, Variants, in_both_modes
from dpmf_cli.algorithms.shared.factorization import InitialFactors, initial_factors
from dpmf_cli.algorithms.shared.local_model import LocalModel
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.kernels.als import RowProblem, SideRatings, solve_users
from dpmf_cli.kernels.factors import FactorLanes, FactorModel, factor_model
from dpmf_cli.kernels.perturb import project_items
from dpmf_cli.lane_groups import groups, pad
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.local import (
    PerturbedSigns,
    SignChannel,
    Traffic,
    gradients_towards_the_aggregator,
    value_towards_the_aggregator,
)
from dpmf_cli.privacy.local_mechanisms import Duchi
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class PrivateGradientMF(PrivateAlgorithm):
    """k times, Q starting from public random factors:

        the aggregator sends Q to every device                                                          (down)
        p_u ← argmin Σ_i (r_ui − m − p·q_i)² + n_u·λ‖p‖², on the device
        each rating reports one coordinate c, drawn uniformly: sign of (r_ui − m − p_u·q_i)·p_uc/G,
            clipped to [−1, 1], by randomised response with ε/k                                         (up)
        q_ic ← q_ic + γ·d·G·(the reports' mean over the item's raters), ‖q_i‖ ≤ q_max

    m is the mean of all ratings, from one report of each with `average` of ε. The clean ratings stay on their
    devices, and predictions are made there: they use the target user's own ratings without noise (‡).

    Shin et al. draw the coordinate among those of all items and spend ε per *user*, so that it also hides who rated
    what; at 943 users a coordinate then gets a report every few iterations. Neera et al. compare at equal ε, which is
    per rating for all other methods. Published mode takes that to mean a report of each rating. But p_u depends on
    all of the user's ratings, so that one of them moves all n_u reports: what can be proved for a *rating* is n_u·ε,
    as for its whole user. Corrected mode sends one report a user and iteration, of a rating drawn uniformly, which
    the aggregator counts n_u times: the same mean, and ε for all of the user's values together. (The mean of all
    ratings still takes a report of each: n·`average`·ε a user.) In both, who rated what is public.
    """

    title: ClassVar[str] = "PG-MF"
    paper: ClassVar[Paper] = Paper.NEERA
    variants: ClassVar[Variants] = in_both_modes(Neighbours.LOCAL)
    joint: ClassVar[bool] = True
    revision: ClassVar[int] = 2

    algorithm: Literal["pg_mf"]
    neighbours: Neighbours = Neighbours.LOCAL
    factors: int = Field(5, ge=1, le=64, description="d; not in the paper")
    regularization: float = Field(0.04, gt=0, description="λ; not in the paper")
    iterations: int = Field(10, ge=1, description="k; not in the paper")
    learning_rate: float = Field(0.3, gt=0, description="γ; not in the paper")
    gradient_bound: float = Field(
        0.05, gt=0, description="G: gradients' coordinates are clipped to ±G, on [0, 1]"
    )
    item_norm: float = Field(2.0, gt=0, description="q_max")
    average: float = Field(0.05, gt=0, lt=1, description="the fraction of ε for the mean of all ratings")
    initial_factors: InitialFactors = InitialFactors(distribution="uniform", scale=1.0)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> LocalModel:
        one_each = self.mode is Mode.CORRECTED
        value = value_towards_the_aggregator(Duchi.source, train.user_counts)
        moved = gradients_towards_the_aggregator(train.user_counts, one_each=one_each)
        first, gradients = (
            SignChannel(
                step,
                repetitions=times,
                epsilon=share * epsilons,
                sensitivity=sensitivity,
                curator=curator,
            )
            for step, times, share, sensitivity in (
                ("mean of ratings", 1, self.average, value),
                ("gradients", self.iterations, 1 - self.average, moved),
            )
        )
        devices = Devices(train, self)
        mean = shrunk_mean(devices.report_ratings(first))
        starts = initial_factors(train, self.initial_factors, self.factors, streams)
        grid = len(mean)
        effects = np.tile(mean, (train.n_users, 1)), np.zeros((train.n_items, grid))
        models = list(factor_model(*starts, *effects).groups)
        rng = streams.generator("coordinates")
        for _ in range(self.iterations):
            devices.fit_users(models)
            rows = devices.reported_rows(rng) if one_each else slice(None)
            reports = devices.report_gradients(models, gradients, rng, rows)
            each = train.user_counts[train.users[rows]] if one_each else None
            for model, lanes in zip(models, groups(len(mean)), strict=True):
                # The users' factors stay on their devices.
                items = replace(model, users=np.empty(0, np.float32))
                self.descend(items, reports, train.item_counts, lanes, each)
        devices.fit_users(models)
        sent = train.n_items * self.factors * 4 * self.iterations * train.n_users
        messages = first.messages + gradients.messages
        traffic = Traffic(first.bytes + gradients.bytes, sent, messages, train.n_users)
        known = train.user_counts > 0, train.item_counts > 0
        return LocalModel(FactorModel(models), train.scale, *known, mean, traffic)

    def descend(
        self,
        model: FactorLanes,
        reports: PerturbedSigns,
        raters: NDArray[np.int64],
        lanes: slice,
        counted: NDArray[np.int64] | None = None,
    ) -> None:
        """The aggregator's step on the items of one group of models, in place.

        raters   (n_items,)
        counted  (n,) how many ratings a report stands for, 1 by default
        """
        cells = reports.items.astype(np.int64) * self.factors + reports.coordinates
        size = len(raters) * self.factors
        step = self.learning_rate * self.factors * self.gradient_bound / np.maximum(raters, 1)
        numbers = reports.numbers[:, lanes]
        if counted is not None:
            numbers = numbers * counted[:, None]
        sums = np.stack([np.bincount(cells, column, size) for column in numbers.T], axis=-1)
        moves = sums.reshape(len(raters), self.factors, -1) * step[:, None, None]
        model.items.reshape(len(raters), self.factors + 1, model.width)[:, :-1] += pad(moves, model.width)
        project_items(model, self.item_norm)


def shrunk_mean(reports: PerturbedSigns) -> NDArray[np.float64]:
    """(E,) the mean rating on [0, 1], by reports of 2r − 1.

    The best linear estimate where all means on [−1, 1] are as likely (variance 1/3): a mean of n reports has variance
    a²/n about it, at most, a being what a report is decoded to. Without it little ε would drown every prediction in
    the noise of m.
    """
    largest = np.square(reports.numbers[0], dtype=np.float64)
    weight = (1 / 3) / (1 / 3 + largest / len(reports.numbers))
    return np.asarray(0.5 + weight * reports.numbers.mean(axis=0, dtype=np.float64) / 2)


@dataclass(frozen=True)
class Devices:
    """All users' devices: the only code that sees ratings, which leave it through a channel."""

    ratings: Ratings
    method: PrivateGradientMF

    @property
    def values(self) -> NDArray[np.float32]:
        """(n,) ratings on [0, 1]."""
        scale = self.ratings.scale
        return np.asarray((self.ratings.values - scale.minimum) / scale.width, np.float32)

    def report_ratings(self, channel: SignChannel) -> PerturbedSigns:
        """Each rating, as 2r − 1."""
        nothing = np.zeros(len(self.ratings), np.uint8)
        return channel.send(2 * self.values[:, None] - 1, self.ratings.items, nothing, self.ratings.n_items)

    def fit_users(self, models: list[FactorLanes]) -> None:
        """Each device solves for its user's factors, in place."""
        problem = RowProblem(self.method.regularization, bound=np.inf)
        for model in models:
            solve_users(
                model, SideRatings(self.ratings.user_starts, self.ratings.items, self.values), problem
            )

    def reported_rows(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """One rating of each user who has any, drawn uniformly."""
        counts = self.ratings.user_counts
        drawn = self.ratings.user_starts[:-1] + (rng.random(len(counts)) * counts).astype(np.int64)
        return np.asarray(drawn[counts > 0])

    def report_gradients(
        self,
        models: list[FactorLanes],
        channel: SignChannel,
        rng: np.random.Generator,
        rows: slice | NDArray[np.int64],
    ) -> PerturbedSigns:
        """For each rating of `rows` a coordinate of its gradient, the same in all models, in units of G."""
        ratings, d = self.ratings, self.method.factors
        users, items, values = ratings.users[rows], ratings.items[rows], self.values[rows]
        coordinates = rng.integers(d, size=len(users)).astype(np.uint8)
        numbers = []
        for model in models:
            errors = values[:, None] - model.predict(users, items)
            factors = model.users.reshape(ratings.n_users, d + 1, model.width)
            numbers.append(errors * factors[users, coordinates, : model.lanes])
        scaled = np.concatenate(numbers, axis=1) / self.method.gradient_bound
        return channel.send(scaled, items, coordinates, ratings.n_items)
