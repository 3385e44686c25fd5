"""Own regression: released features of items, on which each user regresses that user's own ratings.

Features are estimated from released sums, and learned in rounds from users' own regressions on them. A user's
regression depends only on that user's ratings and on released numbers, and so does the user's contribution to the
sums of a round: one vector over all items, whose norm is clipped. Estimates are computed from released numbers and
the known scale of their noise, each ε by itself, and so cost no ε.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared import cost as costs
from dpmf_cli.algorithms.shared.averages import sums_and_counts
from dpmf_cli.algorithms.shared.base import Arrays, Choices, Paper, PrivateAlgorithm, by_mode
from dpmf_cli.algorithms.shared.budget import Delta
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.factorization import OwnFactors, public_features
from dpmf_cli.algorithms.shared.theta import Accounting, where_theta_is_mu
from dpmf_cli.core.arrays import Doubles, Longs
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.als import RowProblem, SideRatings, by_user, solve_rows
from dpmf_cli.kernels.factors import FactorModel, factor_model, set_effects, set_items
from dpmf_cli.kernels.gradients import clipped_item_sums
from dpmf_cli.kernels.normal_equations import isometric, whole
from dpmf_cli.kernels.sums import residual_sums_by_user, sums_by
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.accounting import moves, mu_of_epsilon
from dpmf_cli.privacy.covariance_sensitivity import user_rating_sums
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import gaussian, laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import clipped_contributions

QUALITY, TREND, CENTRE, PUBLIC = 0.4, 0.5, 1.0, 0.1
"""Prior deviations, in stars: of items' averages around the trend, of the trend's slope over popularity, of the
trend's centre, and of its slopes over public features."""
FARTHEST = 2.0
"""The limit of an item's popularity, in deviations from the mean over ratings."""
NODES = 96
"""Nodes of the quadrature of a count, over twelve deviations of its noise."""
LEAST = 1e-12
"""A lower bound of variances, for items with neither noise nor raters."""

Lanes = Doubles


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

        def of_a_lane(base: Lanes, weight: Lanes, popularity: Lanes) -> Lanes:
            base = standardised(base, weight)
            return standardised(base - popularity * _mean(base * popularity, weight), weight)

        return by_lane(of_a_lane, self.base, self.weight, self.popularity)


def by_lane(function: Callable[..., Lanes | tuple[Lanes, Lanes]], *arrays: Lanes) -> Lanes:
    """(…, E) what the function makes of each ε's columns of the arrays (n, E)."""
    lanes = zip(*(array.T for array in arrays), strict=True)
    return np.stack([function(*map(np.ascontiguousarray, lane)) for lane in lanes], axis=-1)


def counts_of(noisy: Lanes, deviation: Lanes, least: float) -> Lanes:
    """(2, n_items, E) the posterior means of counts, and of ln(count + offset), given noise of `deviation` (E,).

    The prior is Lomax, p(c) ∝ (c + m)⁻³, which is as long-tailed as popularity; m is the mean of the noisy counts.
    `offset` is the larger of `least` and 0.3 deviations. The noise is treated as normal; without noise, the posterior
    mean of a count is the count.
    """

    def of_a_lane(noisy: Lanes, deviation: Lanes) -> tuple[Lanes, Lanes]:
        offset = np.maximum(least, 0.3 * deviation)
        if deviation == 0:
            return np.maximum(noisy, 0), np.log(np.maximum(noisy, 0) + offset)
        lowest = np.maximum(noisy - 6 * deviation, 0)
        nodes = lowest[:, None] + deviation * 12 * (np.arange(NODES) + 0.5) / NODES
        exponents = -(((nodes - noisy[:, None]) / deviation) ** 2) / 2
        chances = np.exp(exponents - exponents.max(axis=1, keepdims=True))
        chances *= (nodes + np.maximum(noisy.mean(), 1e-3 * deviation)) ** -3.0
        chances /= chances.sum(axis=1, keepdims=True)
        return (chances * nodes).sum(axis=1), (chances * np.log(nodes + offset)).sum(axis=1)

    return by_lane(of_a_lane, noisy, deviation[None])


def popularity_of(logarithms: Lanes, counts: Lanes) -> Lanes:
    """(n_items, E) the logarithms, standardised over ratings and clipped to ±FARTHEST, which bounds the trend."""
    return np.clip(by_lane(standardised, logarithms, counts), -FARTHEST, FARTHEST)


def standardised(feature: Lanes, weight: Lanes) -> Lanes:
    """(n,) the feature, scaled to mean 0 and mean square 1 under weights (n,); 0 if the feature is constant."""
    centred = feature - _mean(feature, weight)
    square = _mean(centred**2, weight)
    return centred / np.sqrt(square) if square > LEAST else np.zeros_like(centred)


def _mean(feature: Lanes, weight: Lanes) -> float:
    total = float(weight.sum())
    return float((weight * feature).sum()) / total if total > 0 else 0.0


def averages_of(
    sums: Lanes,
    weight: Lanes,
    popularity: Lanes,
    variance: Lanes,
    centre: Lanes | float,
    scale: Scale,
    public: Lanes,
) -> tuple[Lanes, Lanes]:
    """The posterior means of items' averages, within the scale, and their variances, (n_items, E) each.

        sum_i = weight_i·(a + s·popularity_i + t·public_i + δ_i) + N(0, variance_i),   δ_i ~ N(0, QUALITY²)

    The sums are of ratings minus `centre`, one number or (n_items, E). `public` (n_items, k) are public features. The
    trend a, s, t is estimated from all items at once.
    """
    prior = np.diag([CENTRE**-2, TREND**-2, *[PUBLIC**-2] * public.shape[1]])

    def of_a_lane(sums: Lanes, weight: Lanes, popularity: Lanes, variance: Lanes) -> tuple[Lanes, Lanes]:
        variance = variance + LEAST
        trend = np.column_stack([np.ones_like(popularity), popularity, public])
        seen = trend * weight[:, None]
        precise = seen / (weight**2 * QUALITY**2 + variance)[:, None]
        trended = trend @ np.linalg.solve(precise.T @ seen + prior, precise.T @ sums)
        gain, spread = updated(QUALITY**2, weight, variance)
        return trended + gain * (sums - weight * trended), spread

    means, spreads = by_lane(of_a_lane, sums, weight, popularity, variance)
    return np.clip(centre + means, scale.minimum, scale.maximum), spreads


def updated(spread: float | Lanes, weight: Lanes, variance: Lanes) -> tuple[Lanes, Lanes]:
    """The gain of a Kalman update (1960), and the variance after it, for a number of prior variance `spread`.

    The observation is `weight` times the number, plus noise of `variance`.
    """
    gain = weight * spread / (weight**2 * spread + variance + LEAST)
    return gain, spread * (1 - gain * weight)


COUNTS, USER_MEANS, USERS_LEFT, SUMS = 0.30, 0.01, 0.01, 0.68
"""Fractions of μ² if neighbours differ in a user."""
FURTHEST, OFF = 1.0, 0.5
"""FURTHEST: the bound to which users' means are clipped, around a public guess. OFF: its prior deviation."""
ROOTS = 0.02
"""The fraction of ε for Σ_u √n_u if neighbours differ in the presence of a rating."""
PUBLIC_CENTRE, PUBLIC_TREND = 0.15, 0.25
"""A public guess of averages: PUBLIC_CENTRE scale widths above the scale's middle, plus PUBLIC_TREND times
popularity."""
OFFSET, RARE = 1.0, 30.0
"""Added to a count before its logarithm: OFFSET to a sum of weights, RARE to a number of ratings."""
OF_WEIGHTS, OF_RATINGS = 0.1, 1.5
"""The variance of a sum by item divided by its weight, without noise: for weighted residuals, and for ratings."""


def of_users(
    entry: "OwnRegression",
    train: Ratings,
    weights: Lanes,
    public: Lanes,
    epsilons: Lanes,
    share: Lanes,
    curator: Curator,
) -> Items:
    """Estimates of items, where neighbours differ in one user, with all ratings. All noise is Gaussian, on:

    Σ_u w_u by item, for popularity;   Σ_u mean_i(r_ui − guess_i), for the guess
    Σ_u clip_C((w_u·(r_ui − guess_i − own regression))_i), for averages;   Σ_u of the fraction that clipping leaves
    """
    theta, clip = entry.mu(epsilons) * np.sqrt(1 - share), entry.clip

    def noise(step: str, shape: tuple[int, ...], part: float, moves: sensitivity.Sensitivity) -> Release:
        return gaussian(step, shape, sensitivity=moves, theta=theta * math.sqrt(part), curator=curator)

    rows, everybody, ratings = (train.n_items,), np.ones((train.n_users, 1, len(theta))), by_user(train)
    reach, once, far = (clipped_contributions(each, 2, Neighbours.USER) for each in (clip, 1.0, FURTHEST))
    counts = noise("item counts", rows, COUNTS, user_rating_sums(1.0, 2))
    weight, popularity, guess = expected_items(
        train, weights, counts, noise("users' means", (), USER_MEANS, far)
    )

    guessed = Items(guess, *(np.zeros_like(guess) for _ in range(3)))
    means = regressed(fixed_features(guessed, entry, 0, public), train.n_users, ratings)
    sums, left = clipped_item_sums(means, train, clip, directions=everybody, weights=weights)
    kept = noise("users left by clipping", (), USERS_LEFT, once).added_to(_totals(left))
    of_sums = noise("item sums", rows, SUMS, reach)
    noisy_sums, seen = of_sums.added_to(sums[:, 0]), weight * np.clip(kept / train.n_users, 0.1, 1)
    variance = of_sums.scale**2 + OF_WEIGHTS * seen
    base, spread = averages_of(noisy_sums, seen, popularity, variance, guess, train.scale, public)
    return Items(base, spread, weight, popularity)


def expected_items(
    train: Ratings, weights: Lanes, of_counts: Release, of_means: Release
) -> tuple[Lanes, Lanes, Lanes]:
    """W_i = Σ_u w_u, popularity, and a guess of averages, (n_items, E) each, from two measurements of users:

    Σ_u w_u by item;   Σ_u mean_i(r_ui − guess_i), clipped to ±FURTHEST, for the guess that popularity leaves open
    """
    noisy = of_counts.added_to(sums_by(train.items, weights[train.users], train.n_items))
    weight, logarithms = counts_of(noisy, of_counts.scale, OFFSET)
    popularity = popularity_of(logarithms, weight)
    guess = train.scale.middle + PUBLIC_CENTRE * train.scale.width + PUBLIC_TREND * popularity
    own = residual_sums_by_user(train.users, train.items, train.values, guess, train.n_users)[:-1]
    users = np.clip(own / np.maximum(train.user_counts, 1)[:, None], -FURTHEST, FURTHEST)
    noisy_mean = of_means.added_to(_totals(users)) / train.n_users
    guess = guess + noisy_mean * OFF**2 / (OFF**2 + (of_means.scale / train.n_users) ** 2)
    return weight, popularity, guess


def of_presence(
    entry: "OwnRegression",
    train: Ratings,
    weights: Lanes,
    public: Lanes,
    epsilons: Lanes,
    share: Lanes,
    curator: Curator,
) -> Items:
    """Estimates of items, where neighbours differ in the presence of one rating. Averages have Laplace noise.

    The measurements are Σ (1 + x)/2 and Σ (1 − x)/2 by item, where x is the rating scaled to [−1, 1]. If features are
    learned, Σ_u √n_u is measured too, for the weights of ratings in later steps.

    The noise of a round hides a user's complete part of the sums, because any one rating of the user may change
    all of it.
    """
    epsilon, learning = epsilons * (1 - share), entry.factors > 0
    scale, of_roots = train.scale, ROOTS if learning else 0.0
    x = (train.values.astype(np.float64) - scale.middle) / (scale.width / 2)
    both = np.stack([sums_by(train.items, (1 + sign * x) / 2, train.n_items) for sign in (1, -1)], axis=1)
    sums, noisy, deviation = sums_and_counts("item halves", both, epsilon * (1 - of_roots), curator)
    counts, logarithms = counts_of(noisy, deviation, RARE)
    popularity = popularity_of(logarithms, counts)
    sums = sums * scale.width / 2
    variance = (deviation * scale.width / 2) ** 2 + OF_RATINGS * counts
    base, spread = averages_of(sums, counts, popularity, variance, scale.middle, scale, public)
    if not learning:
        return Items(base, spread, counts, popularity)
    step, moved, spent = "roots of users' counts", sensitivity.root_counts(), epsilon * of_roots
    roots = laplace(step, (), sensitivity=moved, epsilon=spent, curator=curator)
    total = roots.added_to(np.sqrt(train.user_counts).sum())
    return Items(base, spread, counts * np.clip(total / np.maximum(_totals(counts), 1), 0, 1), popularity)


def of_values(
    entry: "OwnRegression",
    train: Ratings,
    weights: Lanes,
    public: Lanes,
    epsilons: Lanes,
    share: Lanes,
    curator: Curator,
) -> Items:
    """Estimates of items, where neighbours differ in the value of one rating. Averages have Laplace noise.

    The only measurement is of sums by item, because who rated what is public, and with it all counts and weights. The
    noise of a round hides a user's complete part of the sums, as in `of_presence`.
    """
    epsilon = epsilons * (1 - share)
    scale, moved = train.scale, sensitivity.rating_sums(train.scale)
    release = laplace("item sums", (train.n_items,), sensitivity=moved, epsilon=epsilon, curator=curator)
    values = train.values.astype(np.float64) - scale.middle
    sums = release.added_to(sums_by(train.items, values, train.n_items))
    known = train.item_counts.astype(np.float64), sums_by(train.items, weights[train.users], train.n_items)
    counts, weight = (np.repeat(each[:, None], len(epsilon), axis=1) for each in known)
    popularity = popularity_of(np.log(counts + RARE), counts)
    variance = 2 * release.scale**2 + OF_RATINGS * counts
    base, spread = averages_of(sums, counts, popularity, variance, scale.middle, scale, public)
    return Items(base, spread, weight, popularity)


def _totals(rows: Lanes) -> Lanes:
    """(E,) sums over rows (n, E), each ε separately, by pairwise summation."""
    return np.array([np.ascontiguousarray(column).sum() for column in rows.T])


FIXED = 3
"""The number of features that are not learned: 1, popularity and quality."""
LONGEST = 2.0
"""Γ: the L2 norm to which a user's coefficients are shortened. Each coefficient has a prior deviation of 1."""
GRAMS, GROWTH = 0.03, 1.4
"""GRAMS: the fraction of μ² for the products of coefficients. GROWTH: of μ² for sums by item, from round to round."""
LEFT = 0.75
"""The fraction of users' weights that clipping leaves: a public guess."""
SAMPLING = 0.06
"""The variance of a round's sum divided by its weight, without noise: a public guess."""
DRIFT = 0.02
"""The deviation by which an item's average moves from one round to the next: a public guess."""
OF_A_USER = RowProblem(1.0, math.inf, per_rating=False)
"""A user's own regression. Features are scaled so that its ridge is 1."""


def fixed_features(items: Items, entry: "OwnRegression", learned: int, public: Lanes) -> FactorModel:
    """A model without users: items with their averages and fixed features, `learned` features that are 0, and the
    public ones (n_items, k)."""
    n_items, grid = items.base.shape
    features = np.zeros((n_items, FIXED + learned + public.shape[1], grid))
    model = factor_model(features[:0, :, 0], features[..., 0], np.zeros((0, grid)), items.base)
    fixed = np.ones_like(items.base), items.popularity, items.quality
    for place, (feature, ridge) in enumerate(zip(fixed, entry.ridges[:FIXED], strict=True)):
        features[:, place] = feature / math.sqrt(ridge)
    features[:, FIXED + learned :] = public[..., None] / math.sqrt(entry.item_features or 1)
    set_items(model, slice(None), features)
    return model


def regressed(model: FactorModel, n_users: int, ratings: SideRatings) -> FactorModel:
    """The model's items, and users whose own ratings were regressed on them. `ratings` are by user."""
    grid = model.groups[-1].part.stop
    beside = model.with_users(np.zeros((n_users, grid)))
    solve_rows(beside, ratings, OF_A_USER)
    return beside


def learn(
    entry: "OwnRegression",
    model: FactorModel,
    items: Items,
    train: Ratings,
    curator: Curator,
    *,
    weights: Lanes,
    ranks: Longs,
    theta: Lanes,
    start: Lanes,
) -> None:
    """Learns features q_i in place, in T rounds. z_u are user u's coefficients of the learned features; in the first
    round they are those of popularity and quality, and `start`.

        θ_u   ← own ridge regression of user u on the features φ_i
        G     = Σ_u z_u·z_uᵀ + noise, ‖z_u‖ ≤ Γ;  z_u ← G^(−½)·z_u, so that each coefficient has mean square 1
        b_i   = Σ_u clip_C((w_u·e_ui·(1, z_u))_i) + noise,   e_ui = r_ui − base_i − θ_u·φ_i
        base_i, q_i ← posterior means given b_i ≈ W_i·(error of base_i, error of q_i) + noise

    One Gram matrix G serves all items, because noise would drown a separate one for each item. Item i uses W_i·G,
    which is W_i·I after the change of coordinates. Because the prior variance of q_i in each direction is estimated
    from all b_i, less their noise, a direction that noise drowns stays at 0, and no rank has to be chosen for it.

    weights  (n_users,) w_u, which depend only on the user's own ratings
    ranks    (E,) how many features each model learns; the others stay 0
    theta    (E,) μ of all rounds together
    start    (n_users, d − 2) coefficients of the first round, independent of the ratings
    """
    times, learned, ratings = entry.iterations, entry.factors, by_user(train)
    base, spread, grid = items.base.copy(), items.spread.copy(), len(ranks)
    # C is in units of √(1 + rank).
    unit, entries = np.sqrt(1.0 + ranks), learned * (learned + 1) // 2
    of_products = sensitivity.pooled_products(LONGEST, entry.neighbours)
    of_sums = clipped_contributions(entry.clip, 2, entry.neighbours)
    for_products, growing = theta * math.sqrt(GRAMS / times), GROWTH ** np.arange(times)
    for t in range(times):
        users = regressed(model, train.n_users, ratings)
        own = _learning(users, learned, ranks, start if t == 0 else None, train)

        step = f"products of coefficients {t + 1}"
        grams = gaussian(step, (entries,), sensitivity=of_products, theta=for_products, curator=curator)
        columns = [np.ascontiguousarray(own[..., lane]) for lane in range(grid)]
        pooled = np.stack([(each.T @ each)[np.tril_indices(learned)] for each in columns], axis=1)
        products = whole(grams.added_to(isometric(pooled, learned)), learned) / train.n_users
        whiten = _whitening(products, ranks, grams.scale / train.n_users)

        turned = np.stack([column @ each for column, each in zip(columns, whiten, strict=True)], axis=2)
        directions = np.concatenate([np.ones((train.n_users, 1, grid)), turned], axis=1) / unit
        clipped, _ = clipped_item_sums(users, train, entry.clip, directions=directions, weights=weights)
        step, shape = f"item sums {t + 1}", (train.n_items, 1 + learned)
        for_sums = theta * math.sqrt((1 - GRAMS) * growing[t] / growing.sum())
        release = gaussian(step, shape, sensitivity=of_sums, theta=for_sums, curator=curator)
        sums, deviation = release.added_to(clipped) * unit, release.scale * unit

        features = model.published["items"][:, :-1].astype(np.float64)
        for lane, rank in enumerate(ranks):
            known = np.ascontiguousarray(items.weight[:, lane]) * LEFT
            variance = deviation[lane] ** 2 + SAMPLING * known
            gain, spread[:, lane] = updated(spread[:, lane] + DRIFT**2, known, variance)
            base[:, lane] += gain * sums[:, 0, lane]
            places = slice(FIXED, FIXED + rank)
            before = features[:, places, lane] @ np.linalg.inv(whiten[lane, :rank, :rank]).T
            seen = np.ascontiguousarray(sums[:, 1 : 1 + rank, lane]) + known[:, None] * before
            features[:, places, lane] = estimated(seen, known, variance) / math.sqrt(entry.ridges[FIXED])
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


def _learning(users: FactorModel, learned: int, ranks: Longs, start: Lanes | None, train: Ratings) -> Lanes:
    """(n_users, d, E) z: the coefficients of learned features, shortened to z·min(1, Γ/‖z‖); 0 if z is not finite.

    Each model has its first `ranks` (E,) of them. With `start`, they are the coefficients of popularity and quality,
    and then `start`. Users without ratings, who must add nothing to any sum, have coefficients 0.
    """
    coefficients = users.published["users"][:, :-1].astype(np.float64)
    z = coefficients[:, FIXED : FIXED + learned]
    if start is not None:
        present = np.where(train.user_counts[:, None] > 0, start, 0.0)
        begun = [coefficients[:, 1:FIXED], np.repeat(present[..., None], len(ranks), axis=2)]
        z = np.concatenate(begun, axis=1)[:, :learned]
    z = z * (np.arange(learned)[:, None] < ranks)
    lengths = np.sqrt((z**2).sum(axis=1, keepdims=True))
    with np.errstate(invalid="ignore"):
        shorter = z * np.minimum(1, LONGEST / np.maximum(lengths, LEAST))
    return np.where(np.isfinite(lengths), shorter, 0.0)


def _whitening(grams: Lanes, ranks: Longs, noise: Lanes) -> Lanes:
    """(E, d, d) maps that turn coefficients with mean products `grams` (E, d, d) into coefficients of mean square 1.

    A direction below 2·`noise` (E,), or below 0.02, is scaled less. `noise` is the deviation of the noise in `grams`.
    """
    maps = np.zeros_like(grams)
    for lane, rank in enumerate(ranks):
        values, vectors = np.linalg.eigh(grams[lane, :rank, :rank])
        maps[lane, :rank, :rank] = vectors / np.sqrt(np.maximum(values, max(0.02, 2 * noise[lane])))
    return maps


TYPICAL = 100
"""A public guess of how many ratings a user has."""
STRONG = 3.5
"""Features are learned from this strength on."""
NOTHING = 1e-6
"""The fraction of the budget for learned features at an ε at which none are learned: all ε have the same steps."""


Ridge = Annotated[float, Field(ge=1e-3, le=1e6)]


class OwnRegression(PrivateAlgorithm):
    """r̂_ui = base_i + θ_u·φ_i. The items' averages `base` and features φ = (1, popularity, quality, learned ones)
    are released. θ_u is user u's own ridge regression on φ, which only the user sees: *joint* differential privacy.

        noisy counts and sums of ratings by item: their posterior means are base, popularity, quality
        T rounds of `learned_features.learn`

    popularity and quality follow from the noisy counts and sums that the averages need anyway, so they cost nothing.
    How many features are learned depends on how much noise there is: on ε and on the numbers of users and items, all
    public. Constants were chosen on ML-100K and checked on one fold of ML-1M.
    """

    title = "Own regression"
    paper = Paper.DPMF
    averaged = False
    joint = True
    counts_users = True

    algorithm: Literal["own_regression"]
    neighbours: Neighbours = Neighbours.USER
    mode: Mode = Mode.CORRECTED
    factors: int = Field(
        6, ge=0, le=32, description="the most features that are learned; at 0, privacy per rating needs no δ"
    )
    iterations: int = Field(5, ge=1, le=100, description="T")
    clip: float = Field(
        0.6, ge=1e-3, le=1e3, description="C: the largest L2 norm of a user's part of the sums, in stars"
    )
    ridges: tuple[Ridge, Ridge, Ridge, Ridge] = Field(
        (10.0, 40.0, 60.0, 2.0),
        description="λ of a user's regression: for the mean, popularity, quality and learned features",
    )
    item_features: Ridge | None = Field(
        None,
        exclude_if=lambda ridge: ridge is None,
        description="λ of a user's regression for the public features of items, which the data set must have "
        "(`item_features: true`); without it they are not used",
    )
    delta: Delta = Field(1e-6, description="the δ of Gaussian noise")

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (({}, {"item_features": 50.0}),)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> OwnFactors:
        strength = self.strength(train, epsilons)
        share = self.share(strength)
        weights = 1 / np.sqrt(np.maximum(train.user_counts, 1))
        public = public_features(self, train)
        items: Items = self.variant(self, train, weights, public, epsilons, share, curator)
        model = fixed_features(items, self, self.factors, public)
        if self.factors:
            # If neighbours are users, averages have Gaussian noise too, and a share is one of μ² instead of ε.
            hides_users = self.neighbours is Neighbours.USER
            theta = self.mu(epsilons) * np.sqrt(share) if hides_users else self.mu(epsilons * share)
            shape, ranks = (train.n_users, max(self.factors - 2, 0)), self.ranks(strength)
            start = streams.start("coefficients").normal(0, 0.5, shape)
            learn(self, model, items, train, curator, weights=weights, ranks=ranks, theta=theta, start=start)
        return OwnFactors(self, model, {}, train)

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        return regressed(items, own.n_users, by_user(own))

    variants = (
        by_mode(Neighbours.USER, corrected=of_users)
        | by_mode(Neighbours.UNBOUNDED, corrected=of_presence)
        | by_mode(Neighbours.BOUNDED, corrected=of_values)
    )
    """They release averages and popularity of items, for the part of the budget that `share` (E,) leaves.

    `weights` (n_users,) are those of a rating of each user in later steps: n_u^(−½).
    """

    @property
    def accounting(self) -> Accounting:
        gaussian = self.factors or self.neighbours is Neighbours.USER
        return where_theta_is_mu(self.delta) if gaussian else super().accounting

    def mu(self, epsilons: Epsilons) -> Lanes:
        """(E,) μ of Gaussian noise at each ε."""
        return np.array([mu_of_epsilon(float(epsilon), self.delta) for epsilon in epsilons])

    def strength(self, train: Ratings, epsilons: Epsilons) -> Lanes:
        """(E,) a typical item's weighted count, √TYPICAL·n_users/n_items, over the deviation of noise of μ(ε)."""
        typical = math.sqrt(TYPICAL) * train.n_users / train.n_items
        return self.mu(epsilons) * typical / moves(self.neighbours)

    def share(self, strength: Lanes) -> Lanes:
        """(E,) the fraction of the budget for learned features. Averages have more noise if neighbours are users, and
        leave less of it."""
        if self.factors == 0:
            return np.zeros_like(strength)
        most = 0.8 if self.neighbours is Neighbours.USER else 0.95
        return np.where(strength < STRONG, NOTHING, most / (1 + STRONG / strength))

    def ranks(self, strength: Lanes) -> Longs:
        """(E,) how many features are learned: 0, or 2 and one more for each doubling of strength from 16 on."""
        more = np.floor(np.log2(np.clip(strength / 16, 1, 2.0**64)))
        return np.where(strength < STRONG, 0, np.minimum(2 + more, self.factors)).astype(np.int64)

    def cost(self, shape: Shape, grid: int) -> Cost:
        features = self.factors + FIXED + (20 if self.item_features else 0)
        passes = (self.iterations + 1) * len(groups(grid))
        rows_solved = shape.ratings + costs.ROW_IN_RATINGS * shape.users
        solved = rows_solved * costs.gram_entries(features) * costs.SOLVED_ENTRY
        summed = shape.ratings * costs.CLIPPED_VISIT * features / 2
        rows = shape.rows * features * costs.LINE * len(groups(grid))  # coefficients and sums are float64
        return costs.effects_cost(shape, grid) + Cost(passes * (solved + summed), 8 * rows)
