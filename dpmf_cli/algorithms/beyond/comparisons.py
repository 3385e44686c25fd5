"""Variants of papers' methods: what these have to beat, and what Friedman et al. 2016, section 7, name.

Predictors with public numbers for a covariance are what private ones have to beat. Averages and factors of the
ratings that an aggregator received are what a local method has to beat, and noisy counts any private order of items.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared import cost as costs, item_covariance, private_factorization as shared
from dpmf_cli.algorithms.shared.averages import Effects, EffectsModel, OwnMeansAlgorithm, averages_of
from dpmf_cli.algorithms.shared.base import Arrays, Choices, Paper, PrivateAlgorithm, by_mode, in_both_modes
from dpmf_cli.algorithms.shared.budget import AveragesBudget, Delta, ItemAveragesBudget, Size
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.factorization import at_most
from dpmf_cli.algorithms.shared.local_model import LocalAlgorithm, LocalFactorization
from dpmf_cli.algorithms.shared.neighbourhood import CERTIFIED, PrivateNeighbourhood
from dpmf_cli.algorithms.shared.theta import Accounting, Measurer, NoiseKind
from dpmf_cli.core.arrays import Doubles, Ints, Longs, Singles
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels import mixture
from dpmf_cli.kernels.covariance import weighted_products
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.gradients import step_batch
from dpmf_cli.kernels.neighbours import nearest
from dpmf_cli.kernels.sgd import Sgd
from dpmf_cli.kernels.similarities import NeighbourhoodModel
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.local import PerturbedRatings
from dpmf_cli.privacy.local_mechanisms import Mechanism
from dpmf_cli.privacy.mechanisms import repeated_k_norm
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity


@dataclass(frozen=True)
class AllAlike:
    """Averages, and a matrix with one public number on the diagonal and another elsewhere, in units of B².
    Predictions use all items that the user rated, except the target item.

    own      the ratings of every user who may ask; a prediction for user u uses only those of u
    effects  averages for each ε; the users' part may be unreleased
    entry    has the public numbers: `variance` and `ridge` on the diagonal, `covariance` elsewhere
    """

    own: Ratings
    effects: Effects
    entry: "PublicKNN | OwnMeanFixedCovariance"

    def neighbours(self, users: Ints, items: Ints) -> tuple[Longs, Callable[[Doubles], Doubles]]:
        """(n,) the number of neighbours of each pair, and the function that sums their residuals (n,) for one ε,
        given those of all ratings and a 0 at the end."""
        own = self.own
        # A sentinel after the last rating: the search for a greater pair ends there, and no pair equals it.
        keys = np.append(own.users.astype(np.int64) * own.n_items + own.items, own.n_users * own.n_items)
        asked = users.astype(np.int64) * own.n_items + items
        places = np.searchsorted(keys, asked)
        itself = keys[places] == asked

        def total(residuals: Doubles) -> Doubles:
            sums = np.bincount(own.users, residuals[:-1], own.n_users)
            return np.asarray(sums[users] - np.where(itself, residuals[places], 0.0))

        return own.user_counts[users] - itself, total

    def predict(self, users: Ints, items: Ints) -> Doubles:
        out = np.asarray(self.effects.items[items] + self.effects.users[users])
        counts, total = self.neighbours(users, items)
        covariance = self.entry.covariance
        spread = self.entry.variance + self.entry.ridge + (counts - 1) * covariance
        # Without neighbours `spread` may be 0 or less; their sum is 0, so the weight does not matter.
        weight = np.where(counts > 0, covariance / np.where(counts > 0, spread, 1.0), 0.0)
        for lane in range(out.shape[1]):
            residuals = item_covariance.own_residuals(self.own, self.effects, lane)
            out[:, lane] += weight * total(np.append(residuals, 0.0))
        return out

    @property
    def published(self) -> Arrays:
        return self.effects.published

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any, own: Ratings) -> Self:
        others = (array for name, array in arrays.items() if name == "weight")
        return cls(own, Effects.restored(arrays, entry, own), entry, *others)


@dataclass(frozen=True)
class NearestAlike(AllAlike):
    """The same, with predictions from the k of the user's items that share the most raters with the target item, by
    Wgt. Who rated what must be public.

    weight  Wgt: a packed triangle
    """

    weight: Singles

    def neighbours(self, users: Ints, items: Ints) -> tuple[Longs, Callable[[Doubles], Doubles]]:
        assert isinstance(self.entry, PublicKNN)
        found = nearest(self.own, users, items, self.weight, self.entry.k)
        # A user with fewer than k items has place −1, which is the 0 after the last residual.
        return (found >= 0).sum(axis=1), lambda residuals: np.asarray(residuals[found].sum(axis=1))

    @property
    def published(self) -> Arrays:
        return {**super().published, "weight": self.weight}


class PublicKNN(PrivateAlgorithm):
    """`PrivateKNN` with Avg_ii = v and Avg_ij = c for all items, where v and c are public. The averages get all of ε.

        r̂_ui = IAvg(i) + UAvg(u) + c/(v + ridge + (m − 1)·c) · Σ_{j ∈ N} (r_uj − IAvg(j) − UAvg(u)),   m = |N|

    The factor before the sum is the value of (Avg_NN + ridge·I)⁻¹ Avg_Ni. The difference from this method shows what
    a private covariance is worth. Like private kNN, it uses the target user's own ratings without noise: *joint*
    differential privacy.

    Neighbours are chosen from public data: bounded, who rated what is public, and the neighbours are the k items j of
    the user with the largest Wgt_ij, as in private kNN. Unbounded, nothing is public, and the neighbours are all
    other items that the user rated.
    """

    title = "kNN, fixed covariance"
    about = "The comparison for private kNN: the same predictor with a fixed covariance, which needs no data."
    paper = Paper.DPMF
    joint = True
    new_users = False
    revision = 3

    algorithm: Literal["public_knn"]
    budget: AveragesBudget = AveragesBudget(global_averages=0.02, item_averages=0.54, user_averages=0.44)
    k: int = Field(20, ge=1, le=1000, description="the most neighbours of a prediction; bounded only")
    ridge: float = Field(0.2, gt=0, description="as in private kNN, in units of B²")
    variance: float = Field(0.5, gt=0, le=1, description="v, in units of B²")
    covariance: float = Field(0.05, ge=0, le=1, description="c, in units of B²")

    def bounded(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> NearestAlike:
        """Who rated what is public. The neighbours are the k nearest items by Wgt."""
        everything = self.unbounded(train, epsilons, streams, curator)
        ones = np.ones(len(train))
        weights = weighted_products(train, ones, item_covariance.inverse_counts(train))
        return NearestAlike(train, everything.effects, self, weights.astype(np.float32))

    def unbounded(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> AllAlike:
        """Nothing is public. The neighbours are all other items that the user rated."""
        return AllAlike(train, averages_of(self, train, self.budget.for_effects(epsilons), curator), self)

    variants = in_both_modes(bounded=bounded, unbounded=unbounded)

    def cost(self, shape: Shape, grid: int) -> Cost:
        sums = Cost(5e-9 * grid * (1 + self.k * costs.ASKED) * shape.ratings, 40.0 * shape.ratings)
        cost = costs.effects_cost(shape, grid) + sums
        if self.neighbours is not Neighbours.BOUNDED:
            return cost
        weights = item_covariance.covariance_cost(shape, 0, private_weights=False)
        return cost + weights + item_covariance.search_cost(shape, self.k, searches=1)

    def predictions_cost(self, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
        sums = Cost(pairs * grid * self.k * 5e-9, 8.0 * self.k * pairs / calls)
        return costs.pairs_cost(grid, pairs) + sums


class AveragesAndOwnMean(OwnMeansAlgorithm):
    """r̂_ui = MAvg_i + r̄_u: released item averages, and the user's own mean, which only the user sees."""

    title = "MM averages"
    about = "Private item averages and the user's own mean: the covariance methods without their covariance."
    paper = Paper.DPMF
    revision = 2

    algorithm: Literal["mm_averages"]
    budget: ItemAveragesBudget = ItemAveragesBudget()

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> Effects:
        return self.own_means(train, self.released_averages(train, self.measurer(epsilons, curator)))


class OwnMeanFixedCovariance(OwnMeansAlgorithm):
    """`CovarianceKNN` over all the user's other ratings, with Avg_ii = v and Avg_ij = c, both public.

        r̂_ui = MAvg_i + r̄_u + c/(v + ridge + (m − 1)·c) · Σ_j (r_uj − MAvg_j − r̄_u)

    m is the number of u's other ratings. `CovarianceSVD` on this covariance predicts the same, because the only
    direction that counts has the same coordinate for all items.
    """

    title = "MM fixed covariance"
    about = "The covariance methods of McSherry and Mironov 2009 with a covariance that needs no data."
    paper = Paper.DPMF
    revision = 2

    algorithm: Literal["mm_public"]
    budget: ItemAveragesBudget = ItemAveragesBudget()
    ridge: Size = Field(0.2, description="as in mm_knn, in units of B²")
    variance: float = Field(0.5, gt=0, le=1, description="v, in units of B²")
    covariance: float = Field(0.05, ge=0, le=1, description="c, in units of B²")

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> AllAlike:
        averages = self.released_averages(train, self.measurer(epsilons, curator))
        return AllAlike(train, self.own_means(train, averages), self)

    def cost(self, shape: Shape, grid: int) -> Cost:
        return costs.effects_cost(shape, grid) + Cost(5e-9 * grid * shape.ratings, 40.0 * shape.ratings)


class PrivateConstantNeighbourhood(PrivateNeighbourhood):
    """`ConstantNeighbourhood` with private item averages, which get all of ε. The difference from it at the same
    ε shows what a privately learned similarity is worth."""

    title = "Constant similarity, private averages"
    about = "The neighbourhood model with a constant similarity and private averages."
    paper = Paper.DPMF
    variants = by_mode(*CERTIFIED, corrected=None)
    revision = 2

    algorithm: Literal["private_constant_nbm"]
    mode: Mode = Mode.CORRECTED
    budget: ItemAveragesBudget = ItemAveragesBudget()

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        return self.start(train, epsilons, curator, 1.0)[0]


class PrivatePopularity(PrivateAlgorithm):
    """score_ui = c_i + noise, c_i the number of ratings of item i: every user gets the same order.

    At most k ratings of each user, chosen at random, are counted. As in `Popularity`, scores have no errors.
    """

    title = "Private popularity"
    about = "The most rated items first, by noisy counts: what a private order of items has to beat."
    paper = Paper.DPMF
    variants = by_mode(Neighbours.USER, corrected=None)
    scores_only = True
    averaged = False
    small: ClassVar[Mapping[str, Any]] = {"most_ratings": 4}

    algorithm: Literal["private_popularity"]
    neighbours: Neighbours = Neighbours.USER
    mode: Mode = Mode.CORRECTED
    noise: NoiseKind = Field(NoiseKind.GAUSSIAN, description="laplace: pure ε; gaussian: (ε, δ)")
    delta: Delta = Field(1e-6, description="the δ of Gaussian noise")
    most_ratings: int = Field(20, ge=1, le=10_000, description="k")
    at_least: float | None = Field(
        None, description="count only ratings at or above it, in stars; null counts all"
    )

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (tuple({"noise": kind.value} for kind in NoiseKind),)

    @property
    def accounting(self) -> Accounting:
        return Accounting(self.noise, self.mode, {"counts": 1.0}, self.delta)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        counted = train.values >= (-np.inf if self.at_least is None else self.at_least)
        draws = streams.of_ratings("ratings kept", train)
        kept = at_most(train.select(counted), self.most_ratings, draws[counted])
        moves = sensitivity.sampled_counts(self.most_ratings, self.noise.norm)
        measurer = Measurer(self.accounting, {"counts": 1}, epsilons, curator)
        noise = measurer.noise("counts", "item counts", (train.n_items,), moves)
        return EffectsModel(noise.added_to(kept.item_counts), np.zeros((train.n_users, len(epsilons))))

    def cost(self, shape: Shape, grid: int) -> Cost:
        return costs.effects_cost(shape, grid)


class LocalMean(LocalAlgorithm):
    """r̂_ui = the mean of all perturbed ratings: a method that does worse has learned nothing."""

    title = "mean of perturbed ratings"
    about = "The mean of all perturbed ratings: what a local method has to beat."
    paper = Paper.DPMF
    revision = 2

    algorithm: Literal["local_mean"]

    def aggregate(self, received: PerturbedRatings, streams: Streams) -> EffectsModel:
        items = np.broadcast_to(received.means, (received.n_items, len(received.epsilons)))
        return EffectsModel(items, np.zeros((received.n_users, len(received.epsilons))))


def spread(sums: Doubles, counts: Longs, squares: float) -> tuple[float, float]:
    """The variances of one message within its group, and between the groups' true means; the latter is 0 if the
    messages show no difference.

    Analysis of variance with unequal groups: `sums` and `counts` (groups,), and `squares`, the sum of all squares.
    Searle, Casella, McCulloch 1992, "Variance components", section 3.6: the within mean square estimates σ², and the
    between mean square estimates σ² + n₀τ², n₀ = (N − Σn²/N)/(groups − 1). Two standard errors are subtracted from
    the between mean square: if messages are mostly noise, a τ² positive by chance would bring it into the means.
    """
    counted = counts[counts > 0].astype(np.float64)
    total, others = counted.sum(), max(len(counted) - 1, 1)
    groups = float(np.sum(sums[counts > 0] ** 2 / counted))
    within = max(squares - groups, 0.0) / max(total - len(counted), 1)
    between = (groups - sums.sum() ** 2 / max(total, 1)) / others
    typical = (total - (counted**2).sum() / max(total, 1)) / others
    chance = 2 * within * np.sqrt(2 / others)
    # With one message in each group, noise and differences cannot be told apart.
    seen = typical > 0 and total > len(counted)
    return within, max(between - within - chance, 0.0) / typical if seen else 0.0


def shrunk_means(residuals: Singles, groups: Ints, counts: Longs) -> Doubles:
    """(groups,) the means of residuals (n,) by group (n,), shrunk to 0 as if by σ²/τ² more messages of 0."""
    sums = np.bincount(groups, residuals, len(counts)).astype(np.float64)
    within, between = spread(sums, counts, float(np.sum(np.square(residuals, dtype=np.float64))))
    if between == 0:
        return np.zeros(len(counts))
    return np.asarray(sums / (np.maximum(counts, 1) + within / between))


def item_and_user_means(received: PerturbedRatings) -> EffectsModel:
    """The estimates of `LocalMeans` for each ε."""
    grid = len(received.epsilons)
    items, users = np.empty((received.n_items, grid)), np.empty((received.n_users, grid))
    for e, mean in enumerate(np.clip(received.means, 0, 1)):
        residuals = received.values.column(e) - np.float32(mean)
        offsets = shrunk_means(residuals, received.items, received.item_counts)
        residuals -= offsets[received.items].astype(np.float32)
        items[:, e] = mean + offsets
        users[:, e] = shrunk_means(residuals, received.users, received.user_counts)
    return EffectsModel(items, users)


class LocalMeans(LocalAlgorithm):
    """r̂_ui = item mean + user mean, debiased and shrunk by how noisy the messages are.

        item_i = m + (Σ_u (r*_ui − m))/(n_i + σ²/τ²),   user_u = (Σ_i (r*_ui − item_i))/(n_u + σ′²/τ′²)

    These are the best linear estimates if the items' true means have variance τ² around m, and messages have variance
    σ² around their item's mean. Both variances are estimated from the messages themselves (`spread`), so nothing is
    tuned. Where noise hides all differences between items (or users), τ² = 0 and the prediction is the mean m, which
    is clipped to [0, 1].
    """

    title = "item and user means"
    about = "Item and user means of perturbed ratings, debiased and shrunk."
    paper = Paper.DPMF
    revision = 2

    algorithm: Literal["local_means"]
    debias: bool = Field(True, description="read messages as ½ + (p − ½)/s, so that their mean is the rating")

    def aggregate(self, received: PerturbedRatings, streams: Streams) -> EffectsModel:
        return item_and_user_means(received)

    def cost(self, shape: Shape, grid: int) -> Cost:
        sums = shape.rows * grid * 16.0 + 24.0 * shape.ratings
        return super().cost(shape, grid) + Cost(shape.ratings * grid * 3e-8, sums)


class LocalMatrixFactorization(LocalFactorization):
    """Alternating least squares on the perturbed ratings, with equal weights; ‖·‖² is weighted by n as in ALS-WR:

        p_u ← argmin Σ_i (r*_ui − p·q_i)² + n_u·λ‖p‖²,  then the same for items,  `iterations` times

    The difference between `MixtureFactorization` and this method shows what a mixture of Gaussians adds.

    With `means`, it factorises the residuals of `LocalMeans`, and the ridge grows with their variance, so that λ is
    the same prior for every mechanism and ε. Without `means`, messages of large variance (unbiased ones at small ε)
    are overfitted.
    """

    title = "MF of perturbed ratings"
    about = "Matrix factorisation of perturbed ratings by unweighted ALS."
    paper = Paper.DPMF
    revision = 2
    by_rating = True

    algorithm: Literal["local_mf"]
    means: bool = Field(
        False,
        description="factorise the residuals of shrunk item and user means, with λ in units of their variance",
    )
    iterations: int = Field(20, ge=1, description="how often users, then items, are solved")

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (tuple({"mechanism": kind.value} for kind in Mechanism),)

    def averages_of(self, received: PerturbedRatings) -> EffectsModel:
        return item_and_user_means(received) if self.means else super().averages_of(received)

    def factorise(self, model: FactorModel, received: PerturbedRatings, streams: Streams) -> None:
        values, users, items = received.values, mixture.by_user(received), mixture.by_item(received)
        variances = np.full(len(received.epsilons), mixture.REFERENCE)
        if self.means:
            variances = mixture.residual_variances(model, received, values) + mixture.LEAST_VARIANCE
        alone, ridge = mixture.Mixture(np.ones((1, len(variances))), variances[None]), self.regularization
        everything = np.ones(len(variances), np.bool_)
        for _ in range(self.iterations):
            for side in (users, items):
                mixture.solve_mixture(model, side, values, alone, regularization=ridge, active=everything)

    def cost(self, shape: Shape, grid: int) -> Cost:
        solved = 2 * self.iterations * shape.ratings * costs.gram_entries(self.factors)
        seconds = solved * costs.SOLVED_ENTRY * len(groups(grid))
        return super().cost(shape, grid) + Cost(seconds, 12.0 * shape.ratings)


class ObjectivePrivateALS(shared.PrivateLeastSquares):
    """ALS with objective perturbation (Chaudhuri et al. 2011), as the paper's conclusion suggests. Bounded.

        p_u ← argmin J_Q(p_u) + 2·b·p_u = A⁻¹(Σ_i r̃_ui·q_i − b),  A = Σ_i q_i·q_iᵀ + n_u·λ·I

    A is public given the released Q, so this is K-norm noise on the vector Σ r̃·q, whose sensitivity is q_max·Δr
    (`sensitivity.least_squares_right_hand_side`). Since A ≥ n_u·λ·I, the noise on p_u is never larger than that of
    output perturbation at the same ε, and it is smaller the more items the user rated.
    """

    title = "PALS, objective"
    about = "ALS with objective perturbation, which Friedman et al. 2016, section 7, suggest."
    paper = Paper.DPMF
    variants = in_both_modes(Neighbours.BOUNDED)
    revision = 2

    algorithm: Literal["pals_objective"]

    def moves(self, side: shared.Side, scale: Scale) -> Sensitivity:
        of_others = self.norms(side)[1]
        return sensitivity.least_squares_right_hand_side(of_others, self.bound(scale), scale)


class PrivateBatchGradientDescent(shared.NormBoundedFactorization):
    """In each of k steps, errors e are clamped so that ‖e·q_i‖ + ‖e·p_u‖ ≤ C for every rating:

        p_u ← (1 − γλ)·p_u + γ(Σ_i e·q_i + noise),   q_i ← (1 − γλ)·q_i + γ(Σ_u e·p_u + noise),   then the norm bounds

    One rating touches only two rows. K-norm noise for the sum of the rows' L2 norms has length Gamma(d, k·Δ/ε) in
    every row, with Δ = C unbounded and 2C bounded (`sensitivity.clipped_gradients`). It covers both sides at once.
    Because every row gets noise, rated or not, and no scale depends on private counts, ε is provable for both kinds
    of neighbours.
    """

    title = "PBGD"
    about = (
        "PBGD: batch gradient descent with joint clipping, a direction that Friedman et al. 2016 name in "
        "section 7."
    )
    paper = Paper.DPMF
    variants = in_both_modes(Neighbours.BOUNDED, Neighbours.UNBOUNDED)
    revision = 2

    algorithm: Literal["pbgd"]
    learning_rate: float = Field(0.02, gt=0, le=1, description="γ, on sums of gradients")
    epochs: int = Field(5, ge=1, description="k: steps, each with ε/k")
    clip: Size = Field(0.5, description="C: the most that one rating may add to both gradients together")

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> FactorModel:
        effects = self.measure_effects(train, epsilons, curator)
        shape, epsilon = (train.n_users + train.n_items, self.factors), self.for_factors(epsilons)
        draw = partial(repeated_k_norm, "gradients", shape, repetitions=self.epochs, curator=curator)
        moves = sensitivity.clipped_gradients(self.clip, self.neighbours)
        model = self.start_within_norms(train, effects, streams)
        norms: dict[str, Any] = {"user_limit": self.user_norm, "item_limit": self.item_norm}
        bound = self.bound(train.scale)
        sgd = Sgd(self.learning_rate, self.regularization, bound, clip=self.clip, **norms)
        for gradients in draw(sensitivity=moves, epsilon=epsilon):
            gradients.inside(step_batch, model, train, sgd)
        return model

    def cost(self, shape: Shape, grid: int) -> Cost:
        visits = shape.ratings * self.epochs * len(groups(grid)) * self.factors * 8e-9
        factors = 2 * shape.rows * (self.factors + 1) * costs.LINE * len(groups(grid))
        return costs.effects_cost(shape, grid) + Cost(visits, factors)
