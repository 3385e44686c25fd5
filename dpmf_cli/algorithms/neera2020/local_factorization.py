"""Factorisations in the local model: ISGD, BLP-MoG-MF and PG-MF. Neera, Chen, Aslam and Shu 2020."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Arrays, Paper, PrivateAlgorithm, by_mode, in_both_modes
from dpmf_cli.algorithms.shared.budget import Size
from dpmf_cli.algorithms.shared.cost import LINE, SOLVED_ENTRY, Cost, Shape, gram_entries
from dpmf_cli.algorithms.shared.factorization import InitialFactors, OwnFactors, descend_in_order, start_model
from dpmf_cli.algorithms.shared.local_model import LocalFactorization, LocalModel
from dpmf_cli.core.arrays import Doubles, Flags, Floats, Ints, Longs, Singles
from dpmf_cli.core.compiled.lane_groups import LaneValues, groups, padded_grid
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import later
from dpmf_cli.kernels import mixture
from dpmf_cli.kernels.als import RowProblem, SideRatings, solve_rows
from dpmf_cli.kernels.factors import FactorModel, move_factors, users_moved
from dpmf_cli.kernels.gradients import coordinate_gradients, sums_of_reports
from dpmf_cli.kernels.mixture import LEAST_VARIANCE, Mixture
from dpmf_cli.kernels.releasing import project_side
from dpmf_cli.kernels.sums import RatingsByRow
from dpmf_cli.privacy import local
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.local import PerturbedRatings
from dpmf_cli.privacy.local_mechanisms import Duchi, Mechanism
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity


class LocalSGD(LocalFactorization):
    """ISGD in the local model, without averages. Section 4:

        r*_ui = clamp(r_ui + Laplace(1/ε), [0, 1])           on the device, once
        (P, Q) = SGD on Σ (r*_ui − p_u·q_i)² + λ(‖p_u‖² + ‖q_i‖²)

    The paper prints none of its parameters, and its improvements over ISGD depend on them
    (docs/papers/neera2020.md). The defaults here are unregularised.
    """

    title = "ISGD, local"
    about = "ISGD in the local model. Neera et al. 2020, section 4."
    paper = Paper.NEERA
    revision = 2
    small: ClassVar[Mapping[str, Any]] = {"epochs": 3}
    by_rating = True

    algorithm: Literal["isgd_local"]
    mechanism: Mechanism = Field(Mechanism.LAPLACE, description="what a device does to each rating")
    factors: int = Field(20, ge=1, le=64, description="d; not in the paper")
    regularization: float = Field(0.0, ge=0, description="λ; not in the paper")
    learning_rate: float = Field(0.05, gt=0, le=1, description="γ, on [0, 1]; not in the paper")
    epochs: int = Field(30, ge=1, description="not in the paper")
    order: Literal["user_major", "shuffled"] = "user_major"

    def factorise(self, model: FactorModel, received: PerturbedRatings, streams: Streams) -> None:
        descend_in_order(model, received, received.values, self, streams)

    def cost(self, shape: Shape, grid: int) -> Cost:
        visits = self.epochs * shape.ratings * len(groups(grid))
        return super().cost(shape, grid) + Cost(visits * self.factors * 2.8e-9, 8.0 * shape.ratings)


COMPONENT = 1.1e-8
"""Seconds per rating, component of the mixture and group of 16 lanes. It is spent three times an iteration."""


class MixtureFactorization(LocalFactorization):
    """r* = p_u·q_i + e, e ~ Σ_k π_k·N(0, σ_k²), by EM; equations 7 to 14.

        γ_k ∝ π_k·N(e; 0, σ_k²)                                                   (10, anew before each step below)
        p_u ← argmin Σ_i w_ui(r*_ui − p·q_i)² + 12·n_u·λ‖p‖²,  w = Σ_k γ_k/σ_k²     (13, 14), then the same for items
        π_k = Σ γ_k/N,   σ_k² = Σ γ_k·e²/Σ γ_k                                      (12)

    until U moves by less than `tolerance` of its norm, or `iterations` times.

    Departures from algorithm 2:

    Order. Factors come before π_k and σ_k, where the listing has these first (`order`), because the errors of random
    factors say nothing about the noise.

    Regressions. Alternating least squares solve the weighted L2 problem, with one sweep an iteration. The paper uses
    WPCA (De la Torre and Black 2003), which alternates the same two weighted regressions.

    E-step. The listing prints it before the loop, where no fitted factor reaches it. Here it is repeated before each
    of the three steps (multicycle ECM, Meng and Rubin 1993, section 3), which keeps the likelihood from falling and
    saves storing the weights.

    Ridge. The paper has none. With λ > 0, the likelihood times a Gaussian prior is maximised. The factor 12 gives λ
    the same meaning as in `LocalMatrixFactorization` if messages are hardly more than noise: noise that is uniform on
    [0, 1] has variance 1/12.
    """

    title = "BLP-MoG-MF"
    about = "BLP-MoG-MF: bounded Laplace noise modelled as a mixture of Gaussians. Neera et al. 2020, algorithm 2."
    paper = Paper.NEERA
    revision = 2
    by_rating = True

    algorithm: Literal["blp_mog_mf"]
    regularization: float = Field(0.04, gt=0, description="λ; the paper has no ridge")
    components: int = Field(3, ge=2, le=8, description="K; not in the paper")
    iterations: int = Field(20, ge=1, description="the most iterations; not in the paper")
    tolerance: float = Field(1e-3, ge=0, description="stop where ‖U − U′‖ ≤ tolerance·‖U‖; not in the paper")
    order: Literal["factors_first", "mixture_first"] = later(
        "factors_first",
        description="order of an iteration's steps; mixture_first is as in the paper's listing",
    )

    def factorise(self, model: FactorModel, received: PerturbedRatings, streams: Streams) -> None:
        for _ in self.steps(model, received, streams):
            pass

    def steps(self, model: FactorModel, received: PerturbedRatings, streams: Streams) -> Iterator[Mixture]:
        """Yields the mixture after each iteration of EM, which moves the factors in place.

        A model that has converged no longer moves, even if others of the grid still do.
        """
        values, users, items = received.values, mixture.by_user(received), mixture.by_item(received)
        spread = mixture.residual_variances(model, received, values) + LEAST_VARIANCE
        fitted = self.initial_mixture(spread, streams)
        active = np.ones(len(received.epsilons), np.bool_)
        for _ in range(self.iterations):
            before = [group.users.copy() for group in model.groups]
            if self.order == "mixture_first":
                fitted = _maximised(model, users, values, fitted, active)
            for side in (users, items):
                mixture.solve_mixture(
                    model, side, values, fitted, regularization=self.regularization, active=active
                )
            if self.order == "factors_first":
                fitted = _maximised(model, users, values, fitted, active)
            yield fitted
            active = active & (users_moved(before, model) > self.tolerance)
            if not active.any():
                return

    def initial_mixture(self, variances: Doubles, streams: Streams) -> Mixture:
        """Proportions drawn uniformly on the simplex, and variances of 0.1 to 1 times `variances` (E,), those of the
        ratings."""
        rng = streams.start("initial mixture")
        proportions = rng.dirichlet(np.ones(self.components))[:, None] * np.ones_like(variances)
        return Mixture(proportions, rng.uniform(0.1, 1.0, (self.components, 1)) * variances)

    def cost(self, shape: Shape, grid: int) -> Cost:
        each = 2 * gram_entries(self.factors) * SOLVED_ENTRY + 3 * self.components * COMPONENT
        seconds = self.iterations * shape.ratings * len(groups(grid)) * each
        before = shape.users * (self.factors + 1) * LINE * len(groups(grid))
        return super().cost(shape, grid) + Cost(seconds, 12.0 * shape.ratings + before)


def _maximised(
    model: FactorModel, users: SideRatings, values: LaneValues, before: Mixture, active: Flags
) -> Mixture:
    """Equation 12, for the models that are active and have ratings."""
    counts, squares = mixture.mixture_sums(model, users, values, before, active)
    alive, ratings = counts > 0, counts.sum(axis=0)
    active = active & (ratings > 0)
    ratings = np.where(active, ratings, 1.0)
    variances = np.where(alive, squares / np.where(alive, counts, 1.0), before.variances)
    return Mixture(
        np.where(active, counts / ratings, before.proportions),
        np.where(active, np.maximum(variances, LEAST_VARIANCE), before.variances),
    )


def solve_own_factors(model: FactorModel, own: Ratings, regularization: float) -> None:
    """p_u ← argmin Σ_i (r_ui − m − p·q_i)² + n_u·λ‖p‖² on each user's own ratings, on [0, 1], in place."""
    ratings = SideRatings("users", RatingsByRow(own.user_starts, own.items, unit_values(own)))
    solve_rows(model, ratings, RowProblem(regularization, bound=np.inf))


def unit_values(ratings: Ratings) -> Singles:
    """(n,) ratings on [0, 1]."""
    return np.asarray((ratings.values - ratings.scale.minimum) / ratings.scale.width, np.float32)


@dataclass(frozen=True)
class Devices:
    """All users' devices. No other code sees ratings, which leave the devices only through a channel.

    Because each rating is reported in each iteration, the provable ε is n_u·ε for a rating of a user with n_u
    ratings.

    factors      d
    bound        G, to which the coordinates of gradients are clipped
    coordinates  draws the coordinate of each report, and the rating or item if that is drawn too
    """

    ratings: Ratings
    factors: int
    bound: float
    coordinates: np.random.Generator

    @property
    def mean_moves(self) -> Sensitivity:
        """How many reports for m change with the value of one rating."""
        return local.value_seen_by_the_aggregator(Duchi.source, self.ratings.user_counts)

    @property
    def moves(self) -> Sensitivity:
        """How many reports of an iteration change with the value of one rating."""
        return local.gradient_of_each_rating(self.ratings.user_counts)

    @property
    def raters(self) -> Longs:
        """(n_items,) over how many users an item's reports are averaged, which is public."""
        return self.ratings.item_counts

    @cached_property
    def values(self) -> Singles:
        return unit_values(self.ratings)

    def report_ratings(self, channel: local.SignChannel) -> local.PerturbedSigns:
        """Reports each rating, as 2r − 1."""
        return _of_no_coordinate(channel, 2 * self.values - 1, self.ratings.items)

    def reported(self) -> tuple[slice | Longs, Longs]:
        """The ratings that are reported, and how many ratings each of them stands for. Here: all, and one each."""
        return slice(None), np.ones(len(self.ratings), np.int64)

    def report_gradients(self, model: FactorModel, channel: local.SignChannel) -> local.PerturbedSigns:
        """Reports one coordinate, the same for each ε, of the gradient of each reported rating, in units of G."""
        rows, weights = self.reported()
        coordinates = self.coordinates.integers(self.factors, size=len(weights)).astype(np.uint8)
        gradients = self.gradients(model, rows, coordinates)
        return channel.send(gradients, self.ratings.items[rows], coordinates, weights)

    def gradients(self, model: FactorModel, rows: slice | Longs, coordinates: NDArray[np.uint8]) -> Singles:
        """(reports, E) (r_ui − m − p_u·q_i)·p_uc/G for the ratings `rows` and the coordinates c (reports,)."""
        users, items = self.ratings.users[rows], self.ratings.items[rows]
        return coordinate_gradients(model, users, items, coordinates, self.values[rows], self.bound)


class DevicesOfOneReport(Devices):
    """In each iteration, one rating of each user, drawn uniformly, is reported and stands for all of the user's."""

    @property
    def moves(self) -> Sensitivity:
        return local.gradient_of_one_rating()

    def reported(self) -> tuple[slice | Longs, Longs]:
        counts = self.ratings.user_counts
        places = (self.coordinates.random(len(counts)) * counts).astype(np.int64)
        drawn = self.ratings.user_starts[:-1] + places
        return drawn[counts > 0], counts[counts > 0]


class DevicesOfWholeUsers(Devices):
    """Shin et al. 2018: each user reports a coordinate of one item in each iteration, both drawn uniformly.

        report 0 where the user has not rated the item
        q_ic ← q_ic + γ·d·G·(n_items·the reports' sum over n_users)

    m comes from one report of each user's mean. ε protects all of a user's ratings, against the aggregator too: it
    holds for any two sets of ratings that the user may have. Both modes are the same. Because a device reports
    whether or not its user has rated anything, the number of devices is public. The paper's random projection of the
    items' matrix is left out.
    """

    @property
    def mean_moves(self) -> Sensitivity:
        return local.report_of_a_user()

    moves = mean_moves

    @property
    def raters(self) -> Longs:
        return np.full(self.ratings.n_items, self.ratings.n_users)

    def report_ratings(self, channel: local.SignChannel) -> local.PerturbedSigns:
        """Reports each user's mean of 2r − 1; 0 for a user without ratings."""
        users, counts = self.ratings.n_users, self.ratings.user_counts
        sums = np.bincount(self.ratings.users, 2 * self.values - 1, users)
        return _of_no_coordinate(channel, sums / np.maximum(counts, 1), np.zeros(users, np.int32))

    def report_gradients(self, model: FactorModel, channel: local.SignChannel) -> local.PerturbedSigns:
        """Reports a coordinate of an item's gradient, both drawn uniformly, which stands for all items; 0 if the user
        has not rated the item."""
        ratings, users = self.ratings, self.ratings.n_users
        items = self.coordinates.integers(ratings.n_items, size=users).astype(np.int32)
        coordinates = self.coordinates.integers(self.factors, size=users).astype(np.uint8)
        wanted = np.arange(users) * ratings.n_items + items
        rows = np.searchsorted(self.pairs[:-1], wanted)
        rated = self.pairs[rows] == wanted
        gradients = np.zeros((users, sum(group.lanes for group in model.groups)), np.float32)
        gradients[rated] = self.gradients(model, rows[rated], coordinates[rated])
        return channel.send(gradients, items, coordinates, np.full(users, ratings.n_items))

    @cached_property
    def pairs(self) -> Longs:
        """(n + 1,) a number for each rated (user, item), ascending, and last −1, which belongs to no pair."""
        return np.append(self.ratings.users.astype(np.int64) * self.ratings.n_items + self.ratings.items, -1)


def _of_no_coordinate(channel: local.SignChannel, numbers: Floats, items: Ints) -> local.PerturbedSigns:
    """What the aggregator receives for numbers (n,) without coordinates, each of which stands for itself."""
    n = len(numbers)
    return channel.send(numbers[:, None], items, np.zeros(n, np.uint8), np.ones(n, np.int64))


SECONDS_PER_REPORT = 1.1e-8
"""Per report, of a rating or of a coordinate of a gradient, and ε."""


class PrivateGradientMF(PrivateAlgorithm):
    """k times, Q starting from public random factors:

        the aggregator sends Q to every device                                                          (down)
        p_u ← argmin Σ_i (r_ui − m − p·q_i)² + n_u·λ‖p‖², on the device
        each rating reports one coordinate c, drawn uniformly: sign of (r_ui − m − p_u·q_i)·p_uc/G,
            clipped to [−1, 1], by randomised response with ε/k                                         (up)
        q_ic ← q_ic + γ·d·G·(the reports' mean over the item's raters), ‖q_i‖ ≤ q_max

    m is the mean of all ratings, from one report of each rating with the fraction `average` of ε. Clean ratings stay
    on their devices, where predictions are made from the target user's own ratings, without noise (‡).

    There are three readings of its ε. Shin et al. spend it per *user* (`neighbours: user`). A device sends one report
    an iteration, on a coordinate drawn among those of all items, which also hides who rated what. With the 943 users
    of ML-100K, a coordinate then gets a report only every few iterations.

    Neera et al. compare at equal ε, which is per rating for all other methods. Published mode of `neighbours: local`
    reads this as one report of each rating. But because p_u depends on all of the user's ratings, one rating moves
    all n_u reports. The provable ε of a *rating* is therefore n_u·ε, as it is for all of the user's ratings.

    Corrected mode of `neighbours: local` sends one report per user and iteration, on a rating drawn uniformly, and
    the aggregator counts it n_u times. The mean is the same, and ε holds for all of the user's values together. (The
    mean of all ratings still takes a report of each rating: n·`average`·ε per user.) In both modes of `neighbours:
    local`, who rated what is public.
    """

    title = "PG-MF"
    about = "PG-MF: devices keep their users' factors and report perturbed gradients of the items'. Shin et al. 2018."
    paper = Paper.NEERA
    averaged = False
    joint = True
    revision = 3
    small: ClassVar[Mapping[str, Any]] = {"iterations": 3}
    by_rating = True

    algorithm: Literal["pg_mf"]
    neighbours: Neighbours = Neighbours.LOCAL
    factors: int = Field(5, ge=1, le=64, description="d; not in the paper")
    regularization: Size = Field(
        0.04, description="λ; not in the paper; with less, users with few ratings cannot be solved"
    )
    iterations: int = Field(10, ge=1, description="k; not in the paper")
    learning_rate: float = Field(0.3, gt=0, le=1e6, description="γ; not in the paper")
    gradient_bound: Size = Field(
        0.05, description="G: gradients' coordinates are clipped to ±G, for ratings on [0, 1]"
    )
    item_norm: Size = Field(2.0, description="q_max")
    average: float = Field(0.05, ge=1e-6, lt=1, description="the fraction of ε for the mean of all ratings")
    initial_factors: InitialFactors = InitialFactors(distribution="uniform", scale=1.0)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> LocalModel:
        devices = self.devices(train, streams)
        channel = partial(local.SignChannel, n_items=train.n_items, curator=curator)
        spent, moves = self.average * epsilons, devices.mean_moves
        ratings = channel("mean of ratings", repetitions=1, epsilon=spent, sensitivity=moves)
        spent, moves = (1 - self.average) * epsilons, devices.moves
        gradients = channel("gradients", repetitions=self.iterations, epsilon=spent, sensitivity=moves)
        mean = shrunk_mean(devices.report_ratings(ratings))
        effects = np.tile(mean, (train.n_users, 1)), np.zeros((train.n_items, len(mean)))
        model = start_model(train, self, streams, *effects)
        items = model.without_users()
        for _ in range(self.iterations):
            solve_own_factors(model, train, self.regularization)
            move_items_by(devices.report_gradients(model, gradients), items, devices.raters, self)
        messages = ratings.messages + gradients.messages
        down = train.n_items * self.factors * 4 * self.iterations * train.n_users
        traffic = local.Traffic(ratings.bytes + gradients.bytes, down, messages, train.n_users)
        known = train.user_counts > 0, devices.raters > 0
        on_devices = OwnFactors(self, items, {"mean": mean}, train)
        return LocalModel(on_devices, train.scale, *known, mean, traffic)

    def devices(self, train: Ratings, streams: Streams) -> Devices:
        coordinates = streams.generator("coordinates")
        made: Devices = self.variant(train, self.factors, self.gradient_bound, coordinates)
        return made

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        model = items.with_users(np.tile(beside["mean"], (own.n_users, 1)))
        solve_own_factors(model, own, self.regularization)
        return model

    variants = by_mode(Neighbours.LOCAL, published=Devices, corrected=DevicesOfOneReport)
    variants |= in_both_modes(user=DevicesOfWholeUsers)

    def cost(self, shape: Shape, grid: int) -> Cost:
        of_each = self.neighbours is Neighbours.LOCAL and self.mode is Mode.PUBLISHED
        reports = self.iterations * (shape.ratings if of_each else shape.users) + shape.ratings
        solved = self.iterations * shape.ratings * gram_entries(self.factors) * 2e-9 * len(groups(grid))
        rows = shape.rows * (self.factors + 1) * LINE * len(groups(grid))
        held = 4.0 * (grid + (padded_grid(grid) if of_each else 0)) + 40
        return Cost(reports * grid * SECONDS_PER_REPORT + solved, rows + shape.ratings * held)


def move_items_by(
    reports: local.PerturbedSigns, items: FactorModel, raters: Longs, method: PrivateGradientMF
) -> None:
    """q_ic ← q_ic + γ·d·G·(the mean report of c, over all of the item's raters), then ‖q_i‖ ≤ q_max, in place.

    This is the aggregator, which has no access to ratings or to users' factors: `items` is the model without them,
    and `raters` (n_items,), over how many users an item's reports are averaged, is public.
    """
    shape = len(raters), method.factors
    sums = sums_of_reports(reports.items, reports.coordinates, reports.weights, reports.numbers, shape)
    steps = method.learning_rate * method.factors * method.gradient_bound / np.maximum(raters, 1)
    move_factors(items, "items", slice(None), sums * steps[:, None, None])
    project_side(items, "items", method.item_norm)


def shrunk_mean(reports: local.PerturbedSigns) -> Doubles:
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
