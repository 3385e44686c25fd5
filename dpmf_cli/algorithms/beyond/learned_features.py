"""Features of items: estimated from released sums, and learned in rounds from users' own regressions on them.

A user's regression depends only on that user's ratings and on released numbers. So does the user's contribution to
the sums of a round: one vector over all items, whose norm is clipped. Estimates are computed from released numbers
and the known scale of their noise, each ε by itself, and so cost no ε.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.kernels.als import RowProblem, SideRatings, by_user, solve_rows
from dpmf_cli.kernels.clipped_gradients import clipped_item_sums
from dpmf_cli.kernels.factors import FactorModel, factor_model, set_effects, set_items
from dpmf_cli.kernels.normal_equations import isometric, whole
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.mechanisms import gaussian
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.sensitivity import clipped_contributions, pooled_products

QUALITY, TREND, CENTRE = 0.4, 0.5, 1.0
"""Prior deviations, in stars: of items' averages around the trend, of the trend's slope over popularity, and of the
trend's centre."""
FARTHEST = 2.0
"""The limit of an item's popularity, in deviations from the mean over ratings."""
NODES = 96
"""Nodes of the quadrature of a count, over twelve deviations of its noise."""
LEAST = 1e-12
"""A lower bound of variances, for items with neither noise nor raters."""

Lanes = NDArray[np.float64]


@dataclass(frozen=True)
class Items:
    """Estimates of items for each ε of the grid; all (n_items, E).

    base        the average, rating scale
    spread      the variance of the true average around `base`
    weight      Σ_u w_u over the raters, where w_u is the weight of each rating of user u in the sums of later steps
    popularity  the standardised logarithm of how often the item is rated
    """

    base: Lanes
    spread: Lanes
    weight: Lanes
    popularity: Lanes

    @property
    def quality(self) -> Lanes:
        """(n_items, E) the part of the average that popularity does not explain, standardised."""
        rest = (
            (weight, standardised(base, weight), popularity)
            for base, weight, popularity in zip(self.base.T, self.weight.T, self.popularity.T, strict=True)
        )
        return np.stack(
            [
                standardised(base - popularity * _mean(base * popularity, weight), weight)
                for weight, base, popularity in rest
            ],
            axis=1,
        )


def counts_of(noisy: Lanes, deviation: Lanes, least: float) -> tuple[Lanes, Lanes]:
    """The posterior means of counts, and of ln(count + offset), (n_items, E) each, given noise of `deviation` (E,).

    The prior is Lomax, p(c) ∝ (c + m)⁻³, which is as long-tailed as popularity; m is the mean of the noisy counts.
    `offset` is the larger of `least` and 0.3 deviations. The noise is treated as normal. Without noise, the posterior
    mean of a count is the count.
    """
    lanes = [_counts(column, s, least) for column, s in zip(noisy.T, deviation, strict=True)]
    means, logarithms = (np.stack(each, axis=1) for each in zip(*lanes, strict=True))
    return means, logarithms


def _counts(noisy: Lanes, deviation: float, least: float) -> tuple[Lanes, Lanes]:
    noisy, offset = np.ascontiguousarray(noisy), max(least, 0.3 * deviation)
    if deviation == 0:
        return np.maximum(noisy, 0), np.log(np.maximum(noisy, 0) + offset)
    lowest = np.maximum(noisy - 6 * deviation, 0)
    nodes = lowest[:, None] + deviation * 12 * (np.arange(NODES) + 0.5) / NODES
    exponents = -(((nodes - noisy[:, None]) / deviation) ** 2) / 2
    chances = np.exp(exponents - exponents.max(axis=1, keepdims=True))
    chances *= (nodes + max(float(noisy.mean()), 1e-3 * deviation)) ** -3.0
    chances /= chances.sum(axis=1, keepdims=True)
    return (chances * nodes).sum(axis=1), (chances * np.log(nodes + offset)).sum(axis=1)


def popularity_of(logarithms: Lanes, counts: Lanes) -> Lanes:
    """(n_items, E) the logarithms, standardised over ratings and clipped to ±FARTHEST, which bounds the trend."""
    lanes = zip(logarithms.T, counts.T, strict=True)
    popularity = np.stack([standardised(column, weight) for column, weight in lanes], axis=1)
    return np.clip(popularity, -FARTHEST, FARTHEST)


def standardised(feature: Lanes, weight: Lanes) -> Lanes:
    """(n,) the feature, scaled to mean 0 and mean square 1 under weights (n,); 0 if the feature is constant."""
    centred = np.ascontiguousarray(feature) - _mean(feature, weight)
    square = _mean(centred**2, weight)
    return centred / np.sqrt(square) if square > LEAST else np.zeros_like(centred)


def _mean(feature: Lanes, weight: Lanes) -> float:
    total = float(np.ascontiguousarray(weight).sum())
    return float((np.ascontiguousarray(weight) * feature).sum()) / total if total > 0 else 0.0


def averages_of(
    sums: Lanes, weight: Lanes, popularity: Lanes, variance: Lanes, centre: Lanes, scale: Scale
) -> tuple[Lanes, Lanes]:
    """The posterior means of items' averages, within the scale, and their variances, (n_items, E) each.

        sum_i = weight_i·(a + s·popularity_i + δ_i) + N(0, variance_i),   δ_i ~ N(0, QUALITY²)

    The sums are of ratings minus `centre` (n_items, E). The trend a, s is estimated from all items at once.
    """
    lanes = [
        _averages(*map(np.ascontiguousarray, each))
        for each in zip(sums.T, weight.T, popularity.T, variance.T, strict=True)
    ]
    means, spreads = (np.stack(each, axis=1) for each in zip(*lanes, strict=True))
    return np.clip(centre + means, scale.minimum, scale.maximum), spreads


def _averages(sums: Lanes, weight: Lanes, popularity: Lanes, variance: Lanes) -> tuple[Lanes, Lanes]:
    variance = variance + LEAST
    trend = np.stack([np.ones_like(popularity), popularity], axis=1)
    seen = trend * weight[:, None]
    precise = seen / (weight**2 * QUALITY**2 + variance)[:, None]
    prior = np.diag([CENTRE**-2, TREND**-2])
    trended = trend @ np.linalg.solve(precise.T @ seen + prior, precise.T @ sums)
    gain, spread = updated(QUALITY**2, weight, variance)
    return trended + gain * (sums - weight * trended), spread


def updated(spread: float | Lanes, weight: Lanes, variance: Lanes) -> tuple[Lanes, Lanes]:
    """Returns the gain of an update, and the variance after it. Kalman 1960.

    The prior variance of a number is `spread`. The observation is `weight` times that number, with noise of variance
    `variance`.
    """
    gain = weight * spread / (weight**2 * spread + variance + LEAST)
    return gain, spread * (1 - gain * weight)


FIXED = 3
"""The number of features that are not learned: 1, popularity and quality."""
LONGEST = 2.0
"""Γ: the L2 norm to which a user's coefficients are shortened. Each coefficient has a prior deviation of 1."""
GRAMS, GROWTH = 0.03, 1.4
"""GRAMS: the fraction of μ² for the products of coefficients. GROWTH: the factor by which each later round's μ² for
sums by item is larger."""
LEFT = 0.75
"""The fraction of users' weights that clipping leaves: a public guess."""
SAMPLING = 0.06
"""The variance of a round's sum divided by its weight, without noise: a public guess."""
DRIFT = 0.02
"""The deviation by which an item's average moves from one round to the next: a public guess."""
OF_A_USER = RowProblem(1.0, math.inf, per_rating=False)
"""A user's own regression. Features are scaled so that its ridge is 1."""


@dataclass(frozen=True)
class Ridges:
    """λ of a user's regression: for the coefficient of each fixed feature, and for each learned feature."""

    fixed: tuple[float, float, float]
    learned: float


@dataclass(frozen=True)
class Rounds:
    """The settings of the rounds of learning.

    times       T
    ranks       (E,) how many features each model learns; the others stay 0
    clip        C, in units of √(1 + rank)
    theta       (E,) μ of all rounds together
    neighbours  the kind of neighbours
    """

    times: int
    ranks: NDArray[np.int64]
    clip: float
    theta: NDArray[np.float64]
    neighbours: Neighbours

    def shares(self, t: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """μ of the products of coefficients in round t = 0, 1, …, and μ of the sums by item, (E,) each."""
        powers = GROWTH ** np.arange(self.times)
        return (
            self.theta * math.sqrt(GRAMS / self.times),
            self.theta * math.sqrt((1 - GRAMS) * powers[t] / powers.sum()),
        )


def fixed_features(items: Items, ridges: Ridges, learned: int) -> FactorModel:
    """A model without users: items with their averages and fixed features, and `learned` features that are 0."""
    n_items, grid = items.base.shape
    nobody = np.zeros((0, grid))
    model = factor_model(
        np.zeros((0, FIXED + learned)), np.zeros((n_items, FIXED + learned)), nobody, items.base
    )
    features = np.zeros((n_items, FIXED + learned, grid))
    fixed = np.ones_like(items.base), items.popularity, items.quality
    for place, (feature, ridge) in enumerate(zip(fixed, ridges.fixed, strict=True)):
        features[:, place] = feature / math.sqrt(ridge)
    set_items(model, slice(None), features)
    return model


def regressed(model: FactorModel, n_users: int, ratings: SideRatings) -> FactorModel:
    """The model's items, and users whose own ratings were regressed on them. `ratings` are by user."""
    grid = model.groups[-1].part.stop
    beside = model.with_users(np.zeros((n_users, grid)))
    solve_rows(beside, ratings, OF_A_USER)
    return beside


def learn(
    model: FactorModel,
    items: Items,
    train: Ratings,
    weights: NDArray[np.float64],
    rounds: Rounds,
    ridges: Ridges,
    start: NDArray[np.float64],
    curator: Curator,
) -> None:
    """Learns features q_i in place, in T rounds. z_u are user u's coefficients of the learned features; in the first
    round they are those of popularity and quality, and `start`.

        θ_u   ← own ridge regression of user u on the features φ_i
        G     = Σ_u z_u·z_uᵀ + noise, ‖z_u‖ ≤ Γ;  z_u ← G^(−½)·z_u, so that each coefficient has mean square 1
        b_i   = Σ_u clip_C((w_u·e_ui·(1, z_u))_i) + noise,   e_ui = r_ui − base_i − θ_u·φ_i
        base_i, q_i ← posterior means given b_i ≈ W_i·(error of base_i, error of q_i) + noise

    One Gram matrix G serves all items, because noise would drown a separate one for each item. Item i uses W_i·G,
    which is W_i·I after the change of coordinates. The prior variance of q_i in each direction is estimated from all
    b_i, less their noise. A direction that noise drowns therefore stays at 0, and no rank has to be chosen for it.

    weights  (n_users,) w_u, which depend only on the user's own ratings
    start    (n_users, d − 2) coefficients of the first round, independent of the ratings
    """
    ratings, learned = by_user(train), model.groups[0].factors - FIXED
    base, spread, grid = items.base.copy(), items.spread.copy(), len(rounds.ranks)
    unit, entries = np.sqrt(1.0 + rounds.ranks), learned * (learned + 1) // 2
    of_products = pooled_products(LONGEST, rounds.neighbours)
    of_sums = clipped_contributions(rounds.clip, 2, rounds.neighbours)
    for t in range(rounds.times):
        for_products, for_sums = rounds.shares(t)
        users = regressed(model, train.n_users, ratings)
        own = _learning(_own(users), rounds.ranks, start if t == 0 else None, train)

        step = f"products of coefficients {t + 1}"
        grams = gaussian(step, (entries,), sensitivity=of_products, theta=for_products, curator=curator)
        products = whole(grams.added_to(isometric(_pooled(own), learned)), learned) / train.n_users
        whiten = _whitening(products, rounds.ranks, grams.scale / train.n_users)

        directions = np.concatenate([np.ones((train.n_users, 1, grid)), _turned(own, whiten)], axis=1) / unit
        clipped, _ = clipped_item_sums(users, directions, train, weights, np.full(grid, rounds.clip))
        step, shape = f"item sums {t + 1}", (train.n_items, 1 + learned)
        release = gaussian(step, shape, sensitivity=of_sums, theta=for_sums, curator=curator)
        sums, deviation = release.added_to(clipped) * unit, release.scale * unit

        features = _all(group.rows("items") for group in model.groups)
        for lane, rank in enumerate(rounds.ranks):
            known = np.ascontiguousarray(items.weight[:, lane]) * LEFT
            variance = deviation[lane] ** 2 + SAMPLING * known
            gain, spread[:, lane] = updated(spread[:, lane] + DRIFT**2, known, variance)
            base[:, lane] += gain * sums[:, 0, lane]
            places = slice(FIXED, FIXED + rank)
            before = features[:, places, lane] @ np.linalg.inv(whiten[lane, :rank, :rank]).T
            seen = np.ascontiguousarray(sums[:, 1 : 1 + rank, lane]) + known[:, None] * before
            features[:, places, lane] = estimated(seen, known, variance) / math.sqrt(ridges.learned)
        set_items(model, slice(None), features)
        set_effects(model, "items", base)


def estimated(sums: Lanes, weight: Lanes, variance: Lanes) -> Lanes:
    """(n, d) the posterior means of q_i, given sums_i = weight_i·q_i + N(0, variance_i·I), up to one rotation of all.

    The prior q_i ~ N(0, Σ_d τ_d²·v_d·v_dᵀ) is estimated by moments: Σ_i (weight_i/variance_i)·(sums_i·sums_iᵀ −
    variance_i·I) is on average Σ_i weight_i³/variance_i times its covariance. A direction without a positive τ² stays
    at 0.
    """
    variance = variance + LEAST
    ratio = weight / variance
    moments = (sums.T * ratio) @ sums - np.eye(sums.shape[1]) * weight.sum()
    spread, directions = np.linalg.eigh(moments / max(float((weight**2 * ratio).sum()), LEAST))
    gain, _ = updated(np.maximum(spread, 0), weight[:, None], variance[:, None])
    return np.asarray(gain * (sums @ directions))


def _own(model: FactorModel) -> Lanes:
    """(n_users, k, E) the users' coefficients."""
    return _all(group.rows("users") for group in model.groups)


def _all(groups: Iterable[NDArray[np.float32]]) -> Lanes:
    """(n, k, E) joined from arrays (n, k, lanes)."""
    return np.concatenate(list(groups), axis=2).astype(np.float64)


def _learning(
    coefficients: Lanes, ranks: NDArray[np.int64], start: NDArray[np.float64] | None, train: Ratings
) -> Lanes:
    """(n_users, d, E) z: the coefficients of learned features, shortened. Each model has its first `ranks` (E,) of
    them. With `start`, they are the coefficients of popularity and quality, and then `start`.

    Users without ratings have coefficients 0: they take no part, so they must add nothing to any sum.
    """
    learned = coefficients.shape[1] - FIXED
    z = coefficients[:, FIXED:]
    if start is not None:
        present = np.where(train.user_counts[:, None] > 0, start, 0.0)
        begun = [coefficients[:, 1:FIXED], np.repeat(present[..., None], len(ranks), axis=2)]
        z = np.concatenate(begun, axis=1)[:, :learned]
    return _shortened(z * (np.arange(learned)[:, None] < ranks))


def _shortened(coefficients: Lanes) -> Lanes:
    """(n_users, d, E) z·min(1, Γ/‖z‖); 0 if z is not finite."""
    lengths = np.sqrt((coefficients**2).sum(axis=1, keepdims=True))
    with np.errstate(invalid="ignore"):
        shorter = coefficients * np.minimum(1, LONGEST / np.maximum(lengths, LEAST))
    return np.where(np.isfinite(lengths), shorter, 0.0)


def _pooled(coefficients: Lanes) -> Lanes:
    """(d(d+1)/2, E) Σ_u z_u·z_uᵀ: packed lower triangles."""
    below = np.tril_indices(coefficients.shape[1])
    columns = (np.ascontiguousarray(coefficients[..., lane]) for lane in range(coefficients.shape[2]))
    return np.stack([(own.T @ own)[below] for own in columns], axis=1)


def _whitening(grams: Lanes, ranks: NDArray[np.int64], noise: Lanes) -> Lanes:
    """(E, d, d) maps that turn coefficients with mean products `grams` (E, d, d) into coefficients of mean square 1.

    A direction below 2·`noise` (E,), or below 0.02, is scaled less. `noise` is the deviation of the noise in `grams`.
    """
    maps = np.zeros_like(grams)
    for lane, rank in enumerate(ranks):
        values, vectors = np.linalg.eigh(grams[lane, :rank, :rank])
        maps[lane, :rank, :rank] = vectors / np.sqrt(np.maximum(values, max(0.02, 2 * noise[lane])))
    return maps


def _turned(coefficients: Lanes, maps: Lanes) -> Lanes:
    """(n_users, d, E) each lane's coefficients, in the coordinates of that lane's map."""
    lanes = (np.ascontiguousarray(coefficients[..., lane]) @ each for lane, each in enumerate(maps))
    return np.stack(list(lanes), axis=2)
