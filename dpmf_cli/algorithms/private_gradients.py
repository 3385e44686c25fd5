"""PG-MF: devices keep their users' factors and report perturbed gradients of the items'. Shin et al. 2018."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.base import Cost, PrivateAlgorithm, Shape, Variants, in_both_modes
from dpmf_cli.algorithms.factorization import FactorModel, InitialFactors, initial_factors
from dpmf_cli.algorithms.local_model import LocalModel
from dpmf_cli.kernels.als import RowProblem, solve_users
from dpmf_cli.kernels.factors import FactorLanes, factor_lanes
from dpmf_cli.kernels.lanes import groups, pad
from dpmf_cli.kernels.perturb import perturb_items
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.local import PerturbedSigns, SignChannel, Traffic
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams

SECONDS_PER_REPORT = 4e-7
"""One rating's report in one iteration for one ε."""


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
    per rating for all other methods; so it is here: n·ε for a user who rated n items, who rated what is public.
    """

    title: ClassVar[str] = "PG-MF"
    variants: ClassVar[Variants] = in_both_modes(Neighbours.LOCAL)
    joint: ClassVar[bool] = True

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

    def fit(self, train: Ratings, *, streams: Streams, ledger: Ledger) -> LocalModel:
        first, gradients = (
            SignChannel(
                step,
                repetitions=times,
                epsilon=share * ledger.epsilons,
                counts=train.user_counts,
                rng=streams.generator(step),
                ledger=ledger,
            )
            for step, times, share in (
                ("mean of ratings", 1, self.average),
                ("gradients", self.iterations, 1 - self.average),
            )
        )
        devices = Devices(train, self)
        mean = shrunk_mean(devices.report_ratings(first))
        starts = initial_factors(train, self.initial_factors, self.factors, streams)
        models = [
            factor_lanes(
                *starts, np.tile(mean[lanes], (train.n_users, 1)), np.zeros((train.n_items, len(mean[lanes])))
            )
            for lanes in groups(len(mean))
        ]
        rng = streams.generator("coordinates")
        for _ in range(self.iterations):
            devices.fit_users(models)
            reports = devices.report_gradients(models, gradients, rng)
            for model, lanes in zip(models, groups(len(mean)), strict=True):
                self.descend(model, reports, train.item_counts, lanes)
        devices.fit_users(models)
        sent = train.n_items * self.factors * 4 * self.iterations * train.n_users
        messages = first.messages + gradients.messages
        traffic = Traffic(first.bytes + gradients.bytes, sent, messages, train.n_users)
        known = train.user_counts > 0, train.item_counts > 0
        return LocalModel(FactorModel(models), train.scale, *known, mean, traffic)

    def descend(
        self, model: FactorLanes, reports: PerturbedSigns, raters: NDArray[np.int64], lanes: slice
    ) -> None:
        """The aggregator's step on one group of models, in place. raters (n_items,)"""
        cells = reports.items.astype(np.int64) * self.factors + reports.coordinates
        size = len(raters) * self.factors
        step = self.learning_rate * self.factors * self.gradient_bound / np.maximum(raters, 1)
        sums = np.stack([np.bincount(cells, column, size) for column in reports.numbers[:, lanes].T], axis=-1)
        moves = sums.reshape(len(raters), self.factors, -1) * step[:, None, None]
        model.items.reshape(len(raters), self.factors + 1, model.width)[:, :-1] += pad(moves, model.width)
        perturb_items(model, None, np.ones(len(raters)), self.item_norm, slice(0, model.lanes))

    def cost(self, shape: Shape, grid: int) -> Cost:
        entries = (self.factors + 1) * (self.factors + 2) / 2
        each = grid * SECONDS_PER_REPORT + entries * 2e-9 * len(groups(grid))
        rows = (shape.users + shape.items) * (self.factors + 1) * 64.0 * len(groups(grid))
        return Cost(self.iterations * shape.ratings * each, rows + shape.ratings * (24.0 * grid + 40))


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
            solve_users(model, self.ratings.user_starts, self.ratings.items, self.values, problem)

    def report_gradients(
        self, models: list[FactorLanes], channel: SignChannel, rng: np.random.Generator
    ) -> PerturbedSigns:
        """For each rating a coordinate of its gradient, the same in all models, in units of G."""
        ratings, d = self.ratings, self.method.factors
        coordinates = rng.integers(d, size=len(ratings)).astype(np.uint8)
        numbers = []
        for model in models:
            errors = self.values[:, None] - model.predict(ratings.users, ratings.items)
            factors = model.users.reshape(ratings.n_users, d + 1, model.width)
            numbers.append(errors * factors[ratings.users, coordinates, : model.lanes])
        scaled = np.concatenate(numbers, axis=1) / self.method.gradient_bound
        return channel.send(scaled, ratings.items, coordinates, ratings.n_items)
