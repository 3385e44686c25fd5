"""PG-MF: devices keep their users' factors and report perturbed gradients of the items'. Shin et al. 2018."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm, Variants, in_both_modes
from dpmf_cli.algorithms.shared.factorization import InitialFactors, initial_factors
from dpmf_cli.algorithms.shared.local_model import LocalModel
from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.algorithms.shared.own_factors import OwnFactors
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.pg_devices import (
    Devices,
    DevicesOfOneReport,
    DevicesOfWholeUsers,
    solve_own_factors,
)
from dpmf_cli.kernels.factors import FactorModel, factor_model, move_items
from dpmf_cli.kernels.releasing import project_items
from dpmf_cli.kernels.reports import sums_of_reports
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.local import (
    PerturbedSigns,
    SignChannel,
    Traffic,
    gradient_of_each_rating,
    gradient_of_one_rating,
    report_of_a_user,
    value_towards_the_aggregator,
)
from dpmf_cli.privacy.local_mechanisms import Duchi
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class PrivateGradientMF(PrivateAlgorithm):
    """k times, Q starting from public random factors:

        the aggregator sends Q to every device                                                          (down)
        p_u ← argmin Σ_i (r_ui − m − p·q_i)² + n_u·λ‖p‖², on the device
        each rating reports one coordinate c, drawn uniformly: sign of (r_ui − m − p_u·q_i)·p_uc/G,
            clipped to [−1, 1], by randomised response with ε/k                                         (up)
        q_ic ← q_ic + γ·d·G·(the reports' mean over the item's raters), ‖q_i‖ ≤ q_max

    m is the mean of all ratings, from one report of each rating with the fraction `average` of ε. Clean ratings stay
    on their devices. Predictions are made there, and use the target user's own ratings without noise (‡).

    There are three readings of its ε. Shin et al. spend it per *user* (`neighbours: user`). A device sends one report
    an iteration, on a coordinate drawn among those of all items, which also hides who rated what. With the 943 users
    of ML-100K, a coordinate then gets a report only every few iterations.

    Neera et al. compare at equal ε, which is per rating for all other methods. Published mode of `neighbours: local`
    reads this as one report of each rating. But p_u depends on all of the user's ratings, so one rating moves all n_u
    reports. The provable ε of a *rating* is therefore n_u·ε, as it is for all of the user's ratings.

    Corrected mode of `neighbours: local` sends one report per user and iteration, on a rating drawn uniformly, and
    the aggregator counts it n_u times. The mean is the same, and ε holds for all of the user's values together. (The
    mean of all ratings still takes a report of each rating: n·`average`·ε per user.) In both modes of `neighbours:
    local`, who rated what is public.
    """

    title: ClassVar[str] = "PG-MF"
    paper: ClassVar[Paper] = Paper.NEERA
    variants: ClassVar[Variants] = in_both_modes(Neighbours.LOCAL, Neighbours.USER)
    averaged: ClassVar[bool] = False
    joint: ClassVar[bool] = True
    revision: ClassVar[int] = 3
    kind_of_devices: ClassVar[type[Devices]] = Devices

    algorithm: Literal["pg_mf"]
    neighbours: Neighbours = Neighbours.LOCAL
    factors: int = Field(5, ge=1, le=64, description="d; not in the paper")
    regularization: float = Field(
        0.04,
        ge=1e-6,
        le=1e6,
        description="λ; not in the paper; with less, users with few ratings cannot be solved",
    )
    iterations: int = Field(10, ge=1, description="k; not in the paper")
    learning_rate: float = Field(0.3, gt=0, le=1e6, description="γ; not in the paper")
    gradient_bound: float = Field(
        0.05,
        ge=1e-6,
        le=1e6,
        description="G: gradients' coordinates are clipped to ±G, for ratings on [0, 1]",
    )
    item_norm: float = Field(2.0, ge=1e-6, le=1e6, description="q_max")
    average: float = Field(0.05, ge=1e-6, lt=1, description="the fraction of ε for the mean of all ratings")
    initial_factors: InitialFactors = InitialFactors(distribution="uniform", scale=1.0)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> LocalModel:
        ratings = SignChannel(
            "mean of ratings",
            repetitions=1,
            epsilon=self.average * epsilons,
            sensitivity=self.mean_moves(train.user_counts),
            n_items=train.n_items,
            curator=curator,
        )
        gradients = SignChannel(
            "gradients",
            repetitions=self.iterations,
            epsilon=(1 - self.average) * epsilons,
            sensitivity=self.moves(train.user_counts),
            n_items=train.n_items,
            curator=curator,
        )
        devices = self.devices(train, streams)
        mean = shrunk_mean(devices.report_ratings(ratings))
        model = self.start(train, mean, streams)
        raters = self.raters(train)
        aggregator = Aggregator(model.without_users(), raters, self)
        for _ in range(self.iterations):
            devices.solve_users(model)
            aggregator.move_items(devices.report_gradients(model, gradients))
        messages = ratings.messages + gradients.messages
        down = train.n_items * self.factors * 4 * self.iterations * train.n_users
        traffic = Traffic(ratings.bytes + gradients.bytes, down, messages, train.n_users)
        known = train.user_counts > 0, raters > 0
        on_devices = OwnFactors(self, model.without_users(), {"mean": mean}, train)
        return LocalModel(on_devices, train.scale, *known, mean, traffic)

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        """Returns the items with m and each user's own p_u."""
        model = items.with_users(np.tile(beside["mean"], (own.n_users, 1)))
        solve_own_factors(model, own, self.regularization)
        return model

    def start(self, train: Ratings, mean: NDArray[np.float64], streams: Streams) -> FactorModel:
        """Returns public random factors with m, for each ε."""
        users, items = initial_factors(train, self.initial_factors, self.factors, streams)
        return factor_model(
            users, items, np.tile(mean, (train.n_users, 1)), np.zeros((train.n_items, len(mean)))
        )

    def mean_moves(self, counts: NDArray[np.int64]) -> Sensitivity:
        """Returns how many reports for m change with the value of one rating. counts is (n_users,)."""
        return value_towards_the_aggregator(Duchi.source, counts)

    def moves(self, counts: NDArray[np.int64]) -> Sensitivity:
        """Returns how many reports of an iteration change with the value of one rating. counts is (n_users,)."""
        raise NotImplementedError(f"{type(self).__name__}: no class implements this mode")

    def raters(self, train: Ratings) -> NDArray[np.int64]:
        """(n_items,) over how many users an item's reports are averaged. The number is public."""
        return train.item_counts

    def devices(self, train: Ratings, streams: Streams) -> Devices:
        """Returns all users' devices."""
        return self.kind_of_devices(
            train, self.factors, self.regularization, self.gradient_bound, streams.generator("coordinates")
        )


class PublishedPrivateGradientMF(PrivateGradientMF):
    """Each rating is reported in each iteration. The provable ε is n_u·ε for a rating of a user with n_u ratings."""

    variants: ClassVar[Variants] = frozenset({(Neighbours.LOCAL, Mode.PUBLISHED)})

    def moves(self, counts: NDArray[np.int64]) -> Sensitivity:
        return gradient_of_each_rating(counts)


class CorrectedPrivateGradientMF(PrivateGradientMF):
    """In each iteration, one rating of each user, drawn uniformly, is reported and stands for all of the user's."""

    variants: ClassVar[Variants] = frozenset({(Neighbours.LOCAL, Mode.CORRECTED)})
    kind_of_devices: ClassVar[type[Devices]] = DevicesOfOneReport

    def moves(self, counts: NDArray[np.int64]) -> Sensitivity:
        return gradient_of_one_rating()


class PrivateGradientMFOfUsers(PrivateGradientMF):
    """Shin et al. 2018: each user reports a coordinate of one item in each iteration, both drawn uniformly.

        report 0 where the user has not rated the item
        q_ic ← q_ic + γ·d·G·(n_items·the reports' sum over n_users)

    m comes from one report of each user's mean. ε protects all of a user's ratings, against the aggregator too: it
    holds for any two sets of ratings that the user may have. Both modes are the same. A device reports whether or not
    its user has rated anything, so the number of devices is public. The paper's random projection of the items'
    matrix is left out.
    """

    variants: ClassVar[Variants] = in_both_modes(Neighbours.USER)
    kind_of_devices: ClassVar[type[Devices]] = DevicesOfWholeUsers

    def mean_moves(self, counts: NDArray[np.int64]) -> Sensitivity:
        return report_of_a_user()

    def moves(self, counts: NDArray[np.int64]) -> Sensitivity:
        return report_of_a_user()

    def raters(self, train: Ratings) -> NDArray[np.int64]:
        return np.full(train.n_items, train.n_users)


@dataclass(frozen=True)
class Aggregator:
    """Moves the items by the devices' reports. It has no access to ratings or to users' factors.

    items   the model, without its users' factors
    raters  (n_items,) over how many users an item's reports are averaged; public
    """

    items: FactorModel
    raters: NDArray[np.int64]
    method: PrivateGradientMF

    def move_items(self, reports: PerturbedSigns) -> None:
        """q_ic ← q_ic + γ·d·G·(the mean report of c, over all of the item's raters), then ‖q_i‖ ≤ q_max, in place."""
        method = self.method
        shape = len(self.raters), method.factors
        sums = sums_of_reports(reports.items, reports.coordinates, reports.weights, reports.numbers, shape)
        steps = method.learning_rate * method.factors * method.gradient_bound / np.maximum(self.raters, 1)
        move_items(self.items, sums * steps[:, None, None])
        project_items(self.items, method.item_norm)


def shrunk_mean(reports: PerturbedSigns) -> NDArray[np.float64]:
    """(E,) the mean rating on [0, 1], from reports of 2r − 1.

    It is the best linear estimate if all means on [−1, 1] are equally likely (variance 1/3). A mean of n reports has
    variance a²/n around the true mean at most, where a is the number that a report is decoded to. Without shrinkage,
    a small ε would drown every prediction in the noise of m. Without any report, the estimate is the middle.
    """
    if not len(reports.numbers):
        return np.full(reports.numbers.shape[1], 0.5)
    largest = np.square(reports.numbers[0], dtype=np.float64)
    weight = (1 / 3) / (1 / 3 + largest / len(reports.numbers))
    return np.asarray(0.5 + weight * reports.numbers.mean(axis=0, dtype=np.float64) / 2)
