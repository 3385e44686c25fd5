"""Synthetic ratings that resemble a real data set: for tests, for scale, and if the real one is missing.

A rating is   quantise(a + s·(b_i + b_u + p_u·q_i + e)),   with an item effect b_i that rises with popularity,
a user effect b_u, tastes p_u, q_i of rank 4, and noise e. The numbers a, s are set so that mean and variance equal
the original's. Users' numbers of ratings and items' popularities are lognormal; each user draws the rated items
without replacement, by popularity, and no dense matrix is made. The ratings copy no data: only the counts, the mean
and the variance of the original go into them.
"""

import numpy as np

from dpmf_cli.core.arrays import Doubles, Floats, Ints, Longs, Singles
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import named_generator
from dpmf_cli.datasets.canonical import Canonical
from dpmf_cli.datasets.catalog import Counts, SyntheticShape

_BLOCK = 1 << 22
# A user with more than this share of all items draws them all at once; other users draw items one by one.
_HEAVY = 0.1


def _activity(target: Counts, shape: SyntheticShape, rng: np.random.Generator) -> Longs:
    """(n_users,) drawn numbers of ratings: lognormal above the least, at most n_items, summing to the target."""
    n_users, n_items, n_ratings = target.users, target.items, target.ratings
    # A publisher's lower bound cannot hold in a set made much sparser than the original.
    least = max(1, min(shape.least_per_user, n_ratings // (2 * n_users)))
    least = min(least, n_items)
    weights = np.exp(shape.user_spread * rng.standard_normal(n_users))
    room = np.full(n_users, n_items - least, dtype=np.int64)
    extra = np.zeros(n_users, dtype=np.int64)
    left = n_ratings - least * n_users
    while left > 0:
        open_ = extra < room
        share = np.where(open_, weights, 0.0)
        more = np.minimum(np.floor(left * share / share.sum()).astype(np.int64), room - extra)
        if not more.any():
            # Each share is less than one rating: give single ratings by chance, in proportion to activity.
            some = min(left, int(open_.sum()))
            chosen = rng.choice(n_users, size=some, replace=False, p=share / share.sum())
            more[chosen] = 1
        extra += more
        left -= int(more.sum())
    return extra + least


def _pairs(counts: Longs, weights: Doubles, stream: tuple[int, str, str]) -> tuple[Ints, Ints]:
    """Drawn users and items (n_ratings,) int32 in (user, item) order: `counts[u]` distinct items for user u.

    Items are drawn by weight without replacement. First, each item is given to one random rating, so that every
    item is rated. Needs sum(counts) ≥ n_items and counts ≤ n_items. Users go in blocks; each block has a random
    stream of its own, named by `stream` and the block's number.
    """
    n_users, n_items = len(counts), len(weights)
    starts = np.concatenate([[0], np.cumsum(counts)])
    users = np.repeat(np.arange(n_users, dtype=np.int32), counts)
    items = np.empty(len(users), dtype=np.int32)
    rng = named_generator(*stream, "first")
    slots = rng.choice(len(users), size=n_items, replace=False, shuffle=False)
    owners = users[slots]
    given = np.sort(owners.astype(np.int64) * n_items + rng.permutation(n_items))
    first, number = 0, 0
    while first < n_users:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + _BLOCK, side="right")) - 1)
        low, high = np.searchsorted(given, [first * n_items, last * n_items])
        rng = named_generator(*stream, number)
        local = given[low:high] - first * n_items
        keys = _block(counts[first:last], local, weights, rng)
        items[starts[first] : starts[last]] = keys % n_items
        first, number = last, number + 1
    return users, items


def _block(counts: Longs, given: Longs, weights: Doubles, rng: np.random.Generator) -> Longs:
    """Sorted keys user·n_items + item of one block of users, its users numbered from 0."""
    n_items, cumulative = len(weights), np.cumsum(weights / weights.sum())
    heavy = counts > _HEAVY * n_items
    keys = []
    for user in np.flatnonzero(heavy).tolist():
        # All of the user's items at once: the first of exponential clocks that run at rate weight.
        clocks = rng.standard_exponential(n_items) / weights
        low, high = np.searchsorted(given, [user * n_items, (user + 1) * n_items])
        clocks[given[low:high] - user * n_items] = -1.0
        count = int(counts[user])
        keys.append(user * n_items + np.argpartition(clocks, count - 1)[:count])
    # Many light users together: draws the missing number, drops items drawn before, until none is missing.
    light = given[~heavy[given // n_items]]
    missing = np.where(heavy, 0, counts) - np.bincount(light // n_items, minlength=len(counts))
    while missing.any():
        users = np.repeat(np.arange(len(counts)), missing)
        drawn = np.searchsorted(cumulative, rng.random(len(users)) * cumulative[-1], side="right")
        fresh = users * n_items + np.minimum(drawn, n_items - 1)
        fresh.sort()
        # np.unique does the same, but it hashes first and takes three times as long.
        fresh = fresh[np.diff(fresh, prepend=-1) > 0]
        if len(light):
            at = np.minimum(np.searchsorted(light, fresh), len(light) - 1)
            fresh = fresh[light[at] != fresh]
        light = np.sort(np.concatenate([light, fresh]), kind="stable")
        missing -= np.bincount(fresh // n_items, minlength=len(counts))
    return np.sort(np.concatenate([*keys, light]))


RANK = 4
# Correlation of an item's effect with its (log) popularity: items that are liked more are seen more often.
_POPULAR_IS_GOOD = 0.5
_CHUNK = 1 << 22
_SAMPLE = 1_000_000
_STEPS = 40
_CLOSE = 1e-5


def generate(key: str, target: Counts, shape: SyntheticShape, scale: Scale, *, seed: int) -> Canonical:
    """Exactly `target.ratings` distinct pairs; every user and item has a rating; ids count from 1.

    The mean and variance of `target` are met to within sampling error (the variance as far as the scale
    allows). The result depends only on the arguments.
    """
    # (n_items,) the relative chance of each item to be rated
    rng = named_generator(seed, key, "popularity")
    weights: Doubles = np.exp(shape.item_spread * rng.standard_normal(target.items))
    counts = _activity(target, shape, named_generator(seed, key, "activity"))
    users, items = _pairs(counts, weights, (seed, key, "pairs"))
    # Ratings of about unit variance, with the parts of the variance as in `shape`.
    rng = named_generator(seed, key, "effects")
    fame = np.log(weights)
    fame = (fame - fame.mean()) / (fame.std() or 1.0)
    own = np.sqrt(1 - _POPULAR_IS_GOOD**2) * rng.standard_normal(target.items)
    item_effects = np.sqrt(shape.item_share) * (_POPULAR_IS_GOOD * fame + own)
    user_effects = np.sqrt(shape.user_share) * rng.standard_normal(target.users)
    # Each taste is weaker than the one before, as with singular values; their variances add up to the share.
    strength = 0.75 ** np.arange(RANK)
    strength *= np.sqrt(shape.taste_share / (strength**2).sum())
    user_tastes = (strength * rng.standard_normal((target.users, RANK))).astype(np.float32)
    item_tastes = rng.standard_normal((target.items, RANK)).astype(np.float32)
    noise = np.sqrt(1 - shape.item_share - shape.user_share - shape.taste_share)
    values = named_generator(seed, key, "noise").standard_normal(len(users), dtype=np.float32)
    for start in range(0, len(users), _CHUNK):
        u, i = users[start : start + _CHUNK], items[start : start + _CHUNK]
        part = values[start : start + _CHUNK]
        part *= np.float32(noise)
        part += user_effects.astype(np.float32)[u]
        part += item_effects.astype(np.float32)[i]
        part += np.einsum("nd,nd->n", user_tastes[u], item_tastes[i])
    _fit_to_scale(values, target, scale)
    ratings = Ratings(users, items, values, target.users, target.items, scale)
    return Canonical(ratings, np.arange(1, target.users + 1), np.arange(1, target.items + 1))


def _fit_to_scale(values: Singles, target: Counts, scale: Scale) -> None:
    """Shifts, stretches, rounds and clips `values` in place to the scale and to the target's mean and variance.

    Rounding and clipping change mean and variance, so the shift and the factor are corrected repeatedly, on a sample.
    """
    sample = values[:: max(1, len(values) // _SAMPLE)].astype(np.float64)
    deviation = np.sqrt(target.variance)
    factor = deviation / (sample.std() or 1.0)
    shift = target.mean - factor * sample.mean()
    for _ in range(_STEPS):
        rated = _on_scale(shift + factor * sample, scale)
        mean, spread = rated.mean(), rated.std() or deviation
        if abs(mean - target.mean) < _CLOSE and abs(spread - deviation) < _CLOSE:
            break
        # The factor stretches about the mean, so that the two corrections do not undo each other.
        ratio = np.clip(deviation / spread, 0.8, 1.25)
        shift = target.mean + ratio * (shift - mean)
        factor *= ratio
    for start in range(0, len(values), _CHUNK):
        part = values[start : start + _CHUNK]
        part[:] = _on_scale(shift + factor * part, scale)


def _on_scale(values: Floats, scale: Scale) -> Floats:
    """The values rounded to the grid, if there is one, and clipped to the scale."""
    if scale.step:
        values = scale.minimum + scale.step * np.rint((values - scale.minimum) / scale.step)
    clipped: Floats = np.clip(values, scale.minimum, scale.maximum)
    return clipped
