"""Averages and popularity of items, measured for each kind of neighbours, before users regress on them."""

import math

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.item_posteriors import Items, Lanes, averages_of, counts_of, popularity_of
from dpmf_cli.algorithms.shared.learned_features import Ridges, fixed_features, regressed
from dpmf_cli.algorithms.shared.sums_and_counts import sums_and_counts
from dpmf_cli.kernels.als import by_user
from dpmf_cli.kernels.clipped_gradients import clipped_item_sums
from dpmf_cli.kernels.sums import residual_sums_by_user, sums_by
from dpmf_cli.privacy.covariance_sensitivity import user_rating_sums
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import gaussian, laplace
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity, clipped_contributions, rating_sums, root_counts
from dpmf_cli.ratings import Ratings

COUNTS, USER_MEANS, USERS_LEFT, SUMS = 0.30, 0.01, 0.01, 0.68
"""Fractions of μ² if neighbours differ in a user."""
FURTHEST, OFF = 1.0, 0.5
"""FURTHEST: the bound to which users' means are clipped, around a public guess. OFF: the prior deviation of that
guess."""
ROOTS = 0.02
"""The fraction of ε for Σ_u √n_u if neighbours differ in the presence of a rating."""
CENTRE, TREND = 0.15, 0.25
"""A public guess of averages: CENTRE scale widths above the scale's middle, plus TREND times popularity."""
OFFSET, RARE = 1.0, 30.0
"""Added to a count before its logarithm: OFFSET to a sum of weights, RARE to a number of ratings."""
OF_WEIGHTS, OF_RATINGS = 0.1, 1.5
"""The variance of a sum by item divided by its weight, without noise: for weighted residuals, and for ratings."""


def measured_of_users(
    train: Ratings,
    weights: NDArray[np.float64],
    theta: NDArray[np.float64],
    clip: float,
    ridges: Ridges,
    curator: Curator,
) -> Items:
    """Measures items if neighbours differ in a user, with all ratings. The measurements are:

        Σ_u w_u by item, for popularity;   Σ_u mean_i(r_ui − guess_i), for the guess
        Σ_u clip_C((w_u·(r_ui − guess_i − own mean_u))_i), for averages;   Σ_u of the fraction that clipping leaves

    weights  (n_users,) w_u = n_u^(−½)
    theta    (E,) μ of all steps
    clip     C
    ridges   the first is for a user's own mean
    """

    def noise(step: str, shape: tuple[int, ...], part: float, moves: Sensitivity) -> Release:
        return gaussian(step, shape, sensitivity=moves, theta=theta * math.sqrt(part), curator=curator)

    rows, everybody = (train.n_items,), np.ones((train.n_users, 1, len(theta)))
    reach, once = (clipped_contributions(each, 2, Neighbours.USER) for each in (clip, 1.0))
    counts = noise("item counts", rows, COUNTS, user_rating_sums(1.0, 2))
    noisy = counts.added_to(sums_by(train.items, weights[train.users], train.n_items))
    weight, logarithms = counts_of(noisy, counts.scale, OFFSET)
    popularity = popularity_of(logarithms, weight)
    guess = train.scale.middle + CENTRE * train.scale.width + TREND * popularity
    of_means = noise("users' means", (), USER_MEANS, clipped_contributions(FURTHEST, 2, Neighbours.USER))
    guess = guess + _offset(train, guess, of_means)
    unknown = Items(guess, np.zeros_like(guess), np.zeros_like(guess), np.zeros_like(guess))
    means = regressed(fixed_features(unknown, ridges, 0), train.n_users, by_user(train))
    sums, left = clipped_item_sums(means, everybody, train, weights, np.full(len(theta), clip))
    kept = noise("users left by clipping", (), USERS_LEFT, once).added_to(_totals(left))
    of_sums = noise("item sums", rows, SUMS, reach)
    noisy_sums, seen = of_sums.added_to(sums[:, 0]), weight * np.clip(kept / train.n_users, 0.1, 1)
    variance = of_sums.scale**2 + OF_WEIGHTS * seen
    base, spread = averages_of(noisy_sums, seen, popularity, variance, guess, train.scale)
    return Items(base, spread, weight, popularity)


def _offset(train: Ratings, guess: Lanes, release: Release) -> NDArray[np.float64]:
    """(E,) the posterior mean, given noise, of the difference between users' mean ratings and the guess."""
    own = residual_sums_by_user(train.users, train.items, train.values, guess, train.n_users)[:-1]
    means = np.clip(own / np.maximum(train.user_counts, 1)[:, None], -FURTHEST, FURTHEST)
    noisy = release.added_to(_totals(means)) / train.n_users
    return np.asarray(noisy * OFF**2 / (OFF**2 + (release.scale / train.n_users) ** 2))


def measured_of_presence(train: Ratings, epsilon: Epsilons, curator: Curator, *, learning: bool) -> Items:
    """Measures items if neighbours differ in the presence of a rating.

    The measurements are Σ (1 + x)/2 and Σ (1 − x)/2 by item, where x is the rating scaled to [−1, 1]. If features are
    learned, Σ_u √n_u is measured too, for the weights of ratings in later steps. All steps together spend `epsilon`
    (E,).
    """
    scale, of_roots = train.scale, ROOTS if learning else 0.0
    x = (train.values.astype(np.float64) - scale.middle) / (scale.width / 2)
    both = [sums_by(train.items, (1 + sign * x) / 2, train.n_items) for sign in (1, -1)]
    found = sums_and_counts("item halves", np.stack(both, axis=1), epsilon * (1 - of_roots), curator)
    counts, logarithms = counts_of(found.counts, found.deviation, RARE)
    popularity = popularity_of(logarithms, counts)
    sums = found.sums * scale.width / 2
    variance = (found.deviation * scale.width / 2) ** 2 + OF_RATINGS * counts
    base, spread = averages_of(sums, counts, popularity, variance, np.full_like(sums, scale.middle), scale)
    if not learning:
        return Items(base, spread, counts, popularity)
    roots = laplace(
        "roots of users' counts",
        (),
        sensitivity=root_counts(),
        epsilon=epsilon * of_roots,
        curator=curator,
    ).added_to(np.sqrt(train.user_counts).sum())
    return Items(base, spread, counts * np.clip(roots / np.maximum(_totals(counts), 1), 0, 1), popularity)


def measured_of_values(
    train: Ratings, weights: NDArray[np.float64], epsilon: Epsilons, curator: Curator
) -> Items:
    """Measures items if neighbours differ in the value of a rating.

    The only measurement, of sums by item, spends `epsilon` (E,). Who rated what is public. So are all counts, and
    `weights` (n_users,), the weight of a rating in later steps.
    """
    scale, moved = train.scale, rating_sums(train.scale)
    release = laplace("item sums", (train.n_items,), sensitivity=moved, epsilon=epsilon, curator=curator)
    values = train.values.astype(np.float64) - scale.middle
    sums = release.added_to(sums_by(train.items, values, train.n_items))
    public = train.item_counts.astype(np.float64), sums_by(train.items, weights[train.users], train.n_items)
    counts, weight = (np.repeat(each[:, None], len(epsilon), axis=1) for each in public)
    popularity = popularity_of(np.log(counts + RARE), counts)
    variance = 2 * release.scale**2 + OF_RATINGS * counts
    base, spread = averages_of(sums, counts, popularity, variance, np.full_like(sums, scale.middle), scale)
    return Items(base, spread, weight, popularity)


def _totals(rows: Lanes) -> NDArray[np.float64]:
    """(E,) sums over rows (n, E), each ε separately, by pairwise summation."""
    return np.array([np.ascontiguousarray(column).sum() for column in rows.T])
