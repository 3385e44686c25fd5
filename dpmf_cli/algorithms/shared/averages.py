"""Averages of items and of users under every kind of neighbours: what is summed, how far it moves, its noise.

Friedman, Berkovsky, Kaafar 2016, section 4.1, algorithms 1 and 2. McSherry and Mironov 2009, sections 4.2 and 4.3,
for means that only the user sees.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import KEYS_OF_NOISE, Arrays, Choices, PrivateAlgorithm, in_both_modes
from dpmf_cli.algorithms.shared.budget import Delta, EffectsParameters, Fractions, Part, Shrinkage, stabilised
from dpmf_cli.algorithms.shared.cost import Cost, Shape, effects_cost
from dpmf_cli.algorithms.shared.theta import Accounting, Measurer, NoiseKind
from dpmf_cli.core.arrays import Doubles, Ints, Longs
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.kernels.sums import residual_sums_by_user, sums_by
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.covariance_sensitivity import residual_range, user_rating_sums
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import laplace, without_noise
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity

_CHUNK = 1 << 18

_GUESS = "a public guess of how many ratings a user has; sets the weight of a typical rater"
TypicalCount = Annotated[float, Field(ge=1, le=1e9, description=_GUESS)]


@dataclass(frozen=True)
class EffectsModel:
    """Predictions from averages alone: the sum of `items` (n_items, E) and `users` (n_users, E)."""

    items: Doubles
    users: Doubles

    def predict(self, users: Ints, items: Ints) -> Doubles:
        out = self.items[items]
        for start in range(0, len(out), _CHUNK):
            out[start : start + _CHUNK] += self.users[users[start : start + _CHUNK]]
        return out

    @property
    def published(self) -> Arrays:
        return {"items": self.items, "users": self.users}

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any = None, own: Any = None) -> "EffectsModel":
        return EffectsModel(arrays["items"], arrays["users"])


@dataclass(frozen=True)
class Effects(EffectsModel):
    """Averages for each ε of the grid. A prediction from effects alone is items[i] + users[u].

    overall (E,), items (n_items, E): rating scale; users (n_users, E): offsets from the item averages.
    residual  (E,) the released average of r − items[i], if `users` are each user's own unreleased mean; None if
              `users` are released
    """

    overall: Doubles
    residual: Doubles | None = None

    @property
    def published(self) -> Arrays:
        """The released arrays. From `residual`, users can compute their own means again from their ratings."""
        rest = {"users": self.users} if self.residual is None else {"residual": self.residual}
        return {"overall": self.overall, "items": self.items, **rest}

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any = None, own: Any = None) -> "Effects":
        if "users" in arrays:
            return Effects(arrays["items"], arrays["users"], arrays["overall"])
        none = np.zeros((0, len(arrays["overall"])))
        released = Effects(arrays["items"], none, arrays["overall"], arrays["residual"])
        effects: Effects = entry.own_means(own, released)
        return effects


StepNoise = Callable[..., Release]
"""Draws a step's noise from (part, step, shape, moves), and charges that part of the budget."""


class Moves(NamedTuple):
    """The sensitivities of sums of ratings minus `origin`, of counts, and of sums of residuals."""

    ratings: Sensitivity
    counts: Sensitivity
    residuals: Sensitivity
    origin: float


def origin_of_sums(mode: Mode, scale: Scale) -> float:
    """What is subtracted from each rating before summing: 0, or the middle, which makes summands smaller."""
    return 0.0 if mode is Mode.PUBLISHED else scale.middle


def moves_of(neighbours: Neighbours, mode: Mode, scale: Scale, norm: int = 1) -> Moves:
    """How far sums and counts move in the norm of the noise, if neighbours differ in a user or in the presence of one
    rating. With users, a rating of user u weighs 1/‖e_u‖ in sums by item, and 1/c_u in a sum over all items (section
    4.5). Raises ValueError for other neighbours."""
    if neighbours not in (Neighbours.USER, Neighbours.UNBOUNDED):
        raise ValueError(f"no sum moves by this under {neighbours} neighbours")
    origin = origin_of_sums(mode, scale)
    if neighbours is Neighbours.USER:
        largest = max(abs(scale.minimum - origin), abs(scale.maximum - origin))
        ratings, counts, residuals = (user_rating_sums(bound, norm) for bound in (largest, 1.0, scale.width))
        return Moves(ratings, counts, residuals, origin)
    raw, centred = sensitivity.raw_rating_sums_unbounded, sensitivity.centred_rating_sums_unbounded
    ratings = (raw if mode is Mode.PUBLISHED else centred)(scale, norm)
    counts = sensitivity.rating_counts_unbounded(norm)
    return Moves(ratings, counts, sensitivity.residual_sums_unbounded(scale, norm), origin)


@dataclass(frozen=True, kw_only=True)
class ItemAverages(Effects):
    """The released averages without users.

    counts    (n_items, E) noisy and not below 0; released
    own_sums  (n_users, E) each user's Σ_i (r_ui − MAvg_i); not released
    """

    residual: Doubles
    counts: Doubles
    own_sums: Doubles


def measure_item_averages(
    train: Ratings,
    of_sum: StepNoise,
    of_count: StepNoise,
    moves: Moves,
    *,
    shrinkage: Shrinkage,
    weights: tuple[Doubles, Doubles] | None = None,
) -> ItemAverages:
    """The released item averages, and the average of their residuals, from noisy sums and counts.

        G = GSum/GCnt,   MAvg_i = (MSum_i + β_m·G)/(MCnt_i + β_m), clamped to the scale,   G again, of r − MAvg_i

    Every item gets noise, rated or not. Noisy counts are clamped at 0 (the global ones at 1), so that a
    denominator is at least β_m. β_m comes from `shrinkage`, in units of `weights`: the weight of each of a user's
    ratings in the sums by item, and in the sums over all items, (n_users,) each.
    """
    values = train.values.astype(np.float64) - moves.origin
    if weights is None:
        count, total, totals = float(len(train)), values.sum(), train.item_counts.astype(np.float64)
    else:
        own, of_all = (each[train.users] for each in weights)
        count, total, values = of_all.sum(), (of_all * values).sum(), own * values
        totals = sums_by(train.items, own, train.n_items)
    sums, rows = sums_by(train.items, values, train.n_items), (train.n_items,)

    overall_sum = of_sum(Part.OVERALL, "global sum", (), moves.ratings).added_to(total)
    overall_count = of_count(Part.OVERALL, "global count", (), moves.counts).added_to(count)
    overall = overall_sum / np.maximum(overall_count, 1)

    of_sums = of_sum(Part.ITEMS, "item sums", rows, moves.ratings)
    item_counts = of_count(Part.ITEMS, "item counts", rows, moves.counts).added_to(totals)
    items = moves.origin + stabilised(of_sums.added_to(sums), item_counts, shrinkage.under(of_sums), overall)
    items = np.clip(items, train.scale.minimum, train.scale.maximum)

    own_sums = residual_sums_by_user(train.users, train.items, train.values, items, train.n_users)
    everything = own_sums[-1]
    if weights is not None:  # each ε is summed separately, so that its sum does not depend on the other ε
        everything = np.array([np.sum(weights[1] * each) for each in np.ascontiguousarray(own_sums[:-1].T)])
    residual_sum = of_sum(Part.OVERALL, "global sum of residuals", (), moves.residuals).added_to(everything)
    residual_count = of_count(Part.OVERALL, "global count of residuals", (), moves.counts).added_to(count)
    return ItemAverages(
        items,
        own_sums[:0],
        overall=moves.origin + overall,
        residual=residual_sum / np.maximum(residual_count, 1),
        counts=np.maximum(item_counts, 0),
        own_sums=own_sums[:-1],
    )


def bounded_item_averages(
    train: Ratings,
    noise: StepNoise,
    moves: Sensitivity,
    shrinkage: Shrinkage,
    *,
    noise_on_unrated: bool = False,
) -> tuple[Doubles, Doubles]:
    """GAvg (E,) and IAvg (n_items, E), rating scale, where who rated what is public. Algorithm 1, lines 1 to 7.

        GAvg = (Σ r_ui + noise)/|R|,   IAvg(i) = (Σ_{R_i} r_ui + β_m·GAvg + noise)/(|R_i| + β_m), clamped to the scale

    An item without ratings has nothing to hide, so it gets no noise, and its average is the global one. The paper's
    listing, and `noise_on_unrated`, add noise to it too.
    """
    total = np.asarray(train.values.sum(dtype=np.float64))
    overall = noise(Part.OVERALL, "global average", (), moves).added_to(total) / max(len(train), 1)
    sums = sums_by(train.items, train.values, train.n_items)
    of_sums = noise(Part.ITEMS, "item averages", (train.n_items,), moves)
    beta = shrinkage.under(of_sums)
    items = averages_of_the_rated(
        of_sums.added_to(sums), train.item_counts, beta, overall, unrated_too=noise_on_unrated
    )
    return overall, np.clip(items, train.scale.minimum, train.scale.maximum)


def averages_of_the_rated(
    sums: Doubles, counts: Longs, beta: float | Doubles, centre: Doubles, *, unrated_too: bool = False
) -> Doubles:
    """(n, E) stabilised averages. Where the public count is 0, it is the centre, unless `unrated_too`."""
    averages = stabilised(sums, counts[:, None].astype(np.float64), beta, centre)
    return averages if unrated_too else np.where(counts[:, None] > 0, averages, centre)


def laplace_steps(shares: Mapping[Part, Doubles], curator: Curator, fraction: float = 1.0) -> StepNoise:
    """Laplace noise for the steps of each part. Each step spends `fraction` of the ε of its part, `shares` (E,)."""

    def noise(part: Part, step: str, shape: tuple[int, ...], moves: Sensitivity) -> Release:
        return laplace(step, shape, sensitivity=moves, epsilon=fraction * shares[part], curator=curator)

    return noise


def bounded_effects(
    train: Ratings, parameters: EffectsParameters, shares: Mapping[Part, Epsilons], curator: Curator
) -> Effects:
    """Algorithms 1 and 2, for neighbours that differ in the value of one rating (counts are public).

        GAvg and IAvg with noise Laplace(Δr/ε₁) and Laplace(Δr/ε₂): `bounded_item_averages`
        GAvg′   = (Σ (r_ui − IAvg(i)) + Laplace(Δr/ε₁)) / |R|
        UAvg(u) = (Σ_{R_u} (r_ui − IAvg(i)) + β_u·GAvg′ + Laplace(Δr/ε₃)) / (|R_u| + β_u), clamped

    Each step spends the ε of its part in `shares`, ε₁ to ε₃. Unless `noise_on_unrated`, a user without ratings gets
    the global average GAvg′ and no further noise.
    """
    noise, moves = laplace_steps(shares, curator), sensitivity.rating_sums(train.scale)
    of_items, unrated_too = parameters.of_items, parameters.noise_on_unrated
    overall, items = bounded_item_averages(train, noise, moves, of_items, noise_on_unrated=unrated_too)
    moves = sensitivity.residual_sums(train.scale)
    residuals = residual_sums_by_user(train.users, train.items, train.values, items, train.n_users)
    residual_sum = noise(Part.OVERALL, "global average of residuals", (), moves).added_to(residuals[-1])
    of_users = noise(Part.USERS, "user averages", (train.n_users,), moves)
    beta, centre = parameters.of_users.under(of_users), residual_sum / max(len(train), 1)
    users = averages_of_the_rated(
        of_users.added_to(residuals[:-1]), train.user_counts, beta, centre, unrated_too=unrated_too
    )
    return Effects(items, np.clip(users, -parameters.user_clamp, parameters.user_clamp), overall)


def averages_of(
    entry: PrivateAlgorithm, train: Ratings, shares: Mapping[Part, Epsilons], curator: Curator
) -> Effects:
    """Algorithms 1 and 2 under an entry's mode and neighbours, which differ in a rating's value or its presence.

    Raises ValueError for other neighbours, for which these averages have no noise. If presence is hidden, every count
    is noisy too (a sum gets the fraction `sum_share` of its average's ε, and the count the rest), and every user and
    item gets noise, rated or not. Published, the noise of sums of ratings is scaled to Δr, which a rating of r_max
    exceeds.
    """
    parameters = entry.effects
    if entry.neighbours is Neighbours.BOUNDED:
        return bounded_effects(train, parameters, shares, curator)
    if entry.neighbours is not Neighbours.UNBOUNDED:
        raise ValueError(f"averages for {entry.neighbours} neighbours are not these")
    share = parameters.sum_share
    of_sum, of_count = (laplace_steps(shares, curator, fraction) for fraction in (share, 1 - share))
    moves = moves_of(entry.neighbours, entry.mode, train.scale)
    stated = sensitivity.published_rating_sums_unbounded(train.scale)
    moves = moves._replace(ratings=entry.calibrated(moves.ratings, stated))
    averages = measure_item_averages(train, of_sum, of_count, moves, shrinkage=parameters.of_items)
    rows = (train.n_users,)
    of_users = of_sum(Part.USERS, "user sums", rows, moves.residuals)
    counts = of_count(Part.USERS, "user counts", rows, moves.counts)
    beta, sums = parameters.of_users.under(of_users), of_users.added_to(averages.own_sums)
    numbers = counts.added_to(train.user_counts.astype(np.float64))
    users = stabilised(sums, numbers, beta, averages.residual)
    users = np.clip(users, -parameters.user_clamp, parameters.user_clamp)
    return Effects(averages.items, users, averages.overall)


def side_by_side(effects: Sequence[Effects]) -> Effects:
    """The averages of several grids as those of one grid. The users' part must be released in all of them."""
    each = zip(*((one.items, one.users, one.overall) for one in effects), strict=True)
    return Effects(*(np.concatenate(arrays, axis=-1) for arrays in each))


def sums_and_counts(
    step: str, halves: Doubles, epsilons: Epsilons, curator: Curator
) -> tuple[Doubles, Doubles, Doubles]:
    """The released Σ x′ and their number, |x′| ≤ 1, (rows, E) each, at the noise of one number each, from `halves`:
    Σ (1 + x′)/2 and Σ (1 − x′)/2, (rows, 2) or (rows, 2, E); and (E,) the standard deviation of that noise."""
    moves = sensitivity.weights_of_signs_unbounded()
    noise = laplace(step, halves.shape[:2], sensitivity=moves, epsilon=epsilons, curator=curator)
    positive, negative = np.moveaxis(noise.added_to(halves), 1, 0)
    return positive - negative, positive + negative, 2 * noise.scale


class OwnMeansAlgorithm(PrivateAlgorithm):
    """MAvg_i + r̄_u, and what a subclass adds. `budget` has the fractions of θ that its measurements get.

    *Joint* differential privacy: predictions for a user use that user's own mean without noise.
    """

    variants = in_both_modes(Neighbours.UNBOUNDED, Neighbours.USER)
    joint = True

    neighbours: Neighbours = Neighbours.UNBOUNDED
    effects: EffectsParameters = EffectsParameters(beta_m=15, beta_u=20)
    budget: Fractions
    noise: NoiseKind = Field(
        NoiseKind.GAUSSIAN, description="laplace: pure ε; gaussian: (ε, δ), and far less noise"
    )
    delta: Delta = Field(1e-6, description="the δ of Gaussian noise")
    typical_count: TypicalCount = 100.0

    def parameters(self) -> dict[str, Any]:
        return {
            key: each for key, each in super().parameters().items() if key != "delta" or self.spends_delta
        }

    @property
    def charges_averages(self) -> bool:
        """Whether item averages have noise and are paid for. Otherwise the method claims ε with δ = 0."""
        return True

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (tuple({"noise": kind.value} for kind in NoiseKind),)

    @property
    def ignored(self) -> frozenset[str]:
        return KEYS_OF_NOISE

    @property
    def reserved(self) -> float:
        """The fraction of the total ε that is not spent on θ."""
        return 0.0

    @property
    def accounting(self) -> Accounting:
        """The accounting of θ under this entry's noise and mode."""
        if not self.charges_averages:
            return super().accounting
        return Accounting(self.noise, self.mode, self.budget.fractions, self.delta, self.reserved)

    def rating_weights(self, counts: NDArray[Any]) -> Doubles:
        """(n,) 1/‖e_u‖ in the norm of the noise, from numbers of ratings (n,); 1 for a user without ratings."""
        counts = np.maximum(counts, 1).astype(np.float64)
        return 1 / (counts if self.noise.norm == 1 else np.sqrt(counts))

    def measurer(self, epsilons: Epsilons, curator: Curator, **pieces: int) -> Measurer:
        """The source of noise. Both global averages have a sum and a count each, and item averages have sums and
        counts; `pieces` are those of the other measurements."""
        return Measurer(self.accounting, {Part.OVERALL: 4, Part.ITEMS: 2, **pieces}, epsilons, curator)

    def widest(self, scale: Scale) -> float:
        """The true α: the width of the interval of item-centred ratings and their average."""
        return residual_range(scale)

    def released_averages(self, train: Ratings, measurer: Measurer) -> ItemAverages:
        """MAvg, with counts in typical raters. If neighbours differ in a user, ratings are weighted as in `moves_of`,
        and β_m is scaled by the weight of a typical user's rating."""
        unit, weights = 1.0, None
        if self.neighbours is Neighbours.USER:
            unit = float(self.rating_weights(np.array([self.typical_count]))[0])
            weights = self.rating_weights(train.user_counts), 1 / np.maximum(train.user_counts, 1)
        moves, noise = moves_of(self.neighbours, self.mode, train.scale, self.noise.norm), measurer.noise
        shrinkage = replace(self.effects.of_items, beta=self.effects.beta_m * unit)
        averages = measure_item_averages(train, noise, noise, moves, shrinkage=shrinkage, weights=weights)
        return replace(averages, counts=averages.counts / unit)

    def uncharged_averages(self, train: Ratings, grid: int, curator: Curator, beta_m: float) -> Doubles:
        """(n_items, E) r̄_i without noise, the same for all E = `grid` ε. No ε can then be proved for the fit."""
        unknown = sensitivity.no_bound_known(1, self.neighbours, "item averages without noise")
        as_they_are = without_noise("item averages", sensitivity=unknown, grid=grid, curator=curator)
        bound, noise = (
            sensitivity.rating_sums(train.scale),
            lambda part, step, shape, moves: as_they_are(shape),
        )
        return bounded_item_averages(train, noise, bound, Shrinkage(beta_m))[1]

    def own_means(self, train: Ratings, averages: Effects) -> Effects:
        """The averages with r̄_u = (Σ_i x_ui + β_p·G)/(c_u + β_p); x_ui = r_ui − MAvg_i and G are within ±α/2.

        The users' part is not released. `train` may be other ratings than those of the averages.
        """
        limit = self.widest(train.scale) / 2
        sums = np.empty((train.n_users, averages.items.shape[1]))
        for lane in range(sums.shape[1]):
            centred = np.clip(train.values - averages.items[train.items, lane], -limit, limit)
            sums[:, lane] = np.bincount(train.users, centred, train.n_users)
        counts, centre = train.user_counts[:, None].astype(np.float64), averages.residual
        assert centre is not None
        users = stabilised(sums, counts, self.effects.beta_u, np.clip(centre, -limit, limit))
        return Effects(averages.items, users, averages.overall, averages.residual)

    def cost(self, shape: Shape, grid: int) -> Cost:
        return effects_cost(shape, grid)
