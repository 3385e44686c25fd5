"""Averages of the ratings that an aggregator received: the baselines that a local method has to beat."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.privacy.local import PerturbedRatings


def item_and_user_means(received: PerturbedRatings) -> EffectsModel:
    """Computes the estimates of `LocalMeans` for each ε."""
    grid = len(received.epsilons)
    items, users = np.empty((received.n_items, grid)), np.empty((received.n_users, grid))
    for e, mean in enumerate(np.clip(received.means, 0, 1)):
        residuals = received.values.column(e) - np.float32(mean)
        offsets = shrunk_means(residuals, received.items, received.item_counts)
        residuals -= offsets[received.items].astype(np.float32)
        items[:, e] = mean + offsets
        users[:, e] = shrunk_means(residuals, received.users, received.user_counts)
    return EffectsModel(items, users)


@dataclass(frozen=True)
class Spread:
    """Two variances: of one message `within` its group, and `between` the groups' true means.

    `between` is 0 if the messages show no difference.
    """

    within: float
    between: float


def spread(sums: NDArray[np.float64], counts: NDArray[np.int64], squares: float) -> Spread:
    """Analysis of variance with unequal groups: `sums` and `counts` (groups,), and `squares`, the sum of all squares.

    Searle, Casella, McCulloch 1992, "Variance components", section 3.6: the within mean square estimates σ², and the
    between mean square estimates σ² + n₀τ², n₀ = (N − Σn²/N)/(groups − 1). Two standard errors are subtracted from
    the between mean square: if messages are mostly noise, a τ² that is positive by chance would bring that noise into
    the means.
    """
    counted = counts[counts > 0].astype(np.float64)
    total = counted.sum()
    groups = float(np.sum(sums[counts > 0] ** 2 / counted))
    within = max(squares - groups, 0.0) / max(total - len(counted), 1)
    between = (groups - sums.sum() ** 2 / max(total, 1)) / max(len(counted) - 1, 1)
    typical = (total - (counted**2).sum() / max(total, 1)) / max(len(counted) - 1, 1)
    chance = 2 * within * np.sqrt(2 / max(len(counted) - 1, 1))
    # With one message in each group, noise and differences cannot be told apart.
    seen = typical > 0 and total > len(counted)
    return Spread(within, max(between - within - chance, 0.0) / typical if seen else 0.0)


def shrunk_means(
    residuals: NDArray[np.float32], groups: NDArray[np.int32], counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """(groups,) the means of residuals (n,) by group (n,), shrunk to 0 as if by σ²/τ² more messages of 0."""
    sums = np.bincount(groups, residuals, len(counts)).astype(np.float64)
    found = spread(sums, counts, float(np.sum(np.square(residuals, dtype=np.float64))))
    if found.between == 0:
        return np.zeros(len(counts))
    return np.asarray(sums / (np.maximum(counts, 1) + found.within / found.between))
