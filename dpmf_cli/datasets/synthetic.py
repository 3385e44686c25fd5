"""Makes synthetic ratings that resemble a real data set: for tests, for scale, and if the real one is missing.

A rating is   quantise(a + s·(b_i + b_u + p_u·q_i + e)),   with an item effect b_i that rises with popularity,
a user effect b_u, tastes p_u, q_i of rank 4, and noise e. The numbers a, s are set so that mean and variance equal
the original's. Users' numbers of ratings and items' popularities are lognormal; each user draws the rated items
without replacement, by popularity. The ratings copy nobody's data: only the counts, the mean and the variance of the
original go into them.
"""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.datasets import pairs
from dpmf_cli.datasets.canonical import Canonical
from dpmf_cli.datasets.entry import Counts, TwinShape
from dpmf_cli.ratings import Ratings, Scale
from dpmf_cli.streams import named_generator

RANK = 4
# Correlation of an item's effect with its (log) popularity: items that are liked more are seen more often.
_POPULAR_IS_GOOD = 0.5
_CHUNK = 1 << 22
_SAMPLE = 1_000_000
_STEPS = 40
_CLOSE = 1e-5


def generate(key: str, target: Counts, shape: TwinShape, scale: Scale, *, seed: int) -> Canonical:
    """Makes exactly `target.ratings` distinct pairs; every user and item has a rating; ids count from 1.

    The mean and variance of `target` are met to within sampling error (the variance as far as the scale
    allows). The result depends only on the arguments.
    """
    n_users, n_items = target.users, target.items
    weights = pairs.popularity(shape, n_items, named_generator(seed, key, "popularity"))
    counts = pairs.activity(target, shape, named_generator(seed, key, "activity"))
    users, items = pairs.sample(counts, weights, (seed, key, "pairs"))
    values = _latent(key, shape, users, items, n_users, weights, seed)
    _fit_to_scale(values, target, scale)
    ratings = Ratings(users, items, values, n_users, n_items, scale)
    return Canonical(ratings, np.arange(1, n_users + 1), np.arange(1, n_items + 1))


def _latent(
    key: str,
    shape: TwinShape,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    n_users: int,
    weights: NDArray[np.float64],
    seed: int,
) -> NDArray[np.float32]:
    """Draws (n_ratings,) float32 ratings of about unit variance, with the parts of the variance as in `shape`."""
    rng = named_generator(seed, key, "effects")
    n_items = len(weights)
    fame = np.log(weights)
    fame = (fame - fame.mean()) / (fame.std() or 1.0)
    own = np.sqrt(1 - _POPULAR_IS_GOOD**2) * rng.standard_normal(n_items)
    item_effects = np.sqrt(shape.item_share) * (_POPULAR_IS_GOOD * fame + own)
    user_effects = np.sqrt(shape.user_share) * rng.standard_normal(n_users)
    # Each taste is weaker than the one before, as with singular values; their variances add up to the share.
    strength = 0.75 ** np.arange(RANK)
    strength *= np.sqrt(shape.taste_share / (strength**2).sum())
    user_tastes = (strength * rng.standard_normal((n_users, RANK))).astype(np.float32)
    item_tastes = rng.standard_normal((n_items, RANK)).astype(np.float32)
    noise = np.sqrt(1 - shape.item_share - shape.user_share - shape.taste_share)

    values = named_generator(seed, key, "noise").standard_normal(len(users), dtype=np.float32)
    for start in range(0, len(users), _CHUNK):
        u, i = users[start : start + _CHUNK], items[start : start + _CHUNK]
        part = values[start : start + _CHUNK]
        part *= np.float32(noise)
        part += user_effects.astype(np.float32)[u]
        part += item_effects.astype(np.float32)[i]
        part += np.einsum("nd,nd->n", user_tastes[u], item_tastes[i])
    return values


def _fit_to_scale(values: NDArray[np.float32], target: Counts, scale: Scale) -> None:
    """Shifts, stretches, rounds and clips `values` in place to the scale and to the target's mean and variance.

    Rounding and clipping change mean and variance, so the shift and the factor are found by repeated correction, on
    an evenly spread sample.
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


def _on_scale(values: NDArray[np.floating], scale: Scale) -> NDArray[np.floating]:
    """Rounds values to the grid, if there is one, and clips them to the scale."""
    if scale.step:
        values = scale.minimum + scale.step * np.rint((values - scale.minimum) / scale.step)
    clipped: NDArray[np.floating] = np.clip(values, scale.minimum, scale.maximum)
    return clipped
