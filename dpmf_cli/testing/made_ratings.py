"""Makes small data sets with something to learn in them."""

import numpy as np

from dpmf_cli.core.ratings import Ratings, Scale


def make_ratings(
    seed: int = 0, n_users: int = 60, n_items: int = 40, density: float = 0.3, scale: Scale | None = None
) -> Ratings:
    """Returns ratings with user effects, item effects and one latent factor. Every user and item has a rating."""
    scale = scale or Scale(1, 5, 1)
    rng = np.random.default_rng(seed)
    rated = rng.random((n_users, n_items)) < density
    rated[np.arange(n_users), rng.integers(n_items, size=n_users)] = True
    rated[rng.integers(n_users, size=n_items), np.arange(n_items)] = True
    users, items = np.nonzero(rated)
    signal = rng.normal(0, 0.4, n_users)[users] + rng.normal(0, 0.6, n_items)[items]
    signal += rng.normal(0, 0.7, n_users)[users] * rng.normal(0, 0.7, n_items)[items]
    raw = scale.middle + 0.1 * scale.width + scale.width / 4 * (signal + rng.normal(0, 0.4, len(users)))
    values = np.clip(
        raw if not scale.step else np.round(raw / scale.step) * scale.step, scale.minimum, scale.maximum
    )
    return Ratings(
        users.astype(np.int32), items.astype(np.int32), values.astype(np.float32), n_users, n_items, scale
    )
