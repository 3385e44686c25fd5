"""Measurements: for each row of a side, sums of clamped residuals times the other side's public features."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.als import SideRatings
from dpmf_cli.kernels.examples import ITEMS, USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes, Side
from dpmf_cli.lane_groups import Grouped


def clamped_sums(
    models: Grouped[FactorLanes],
    side: Side,
    ratings: SideRatings,
    features: NDArray[np.float64],
    bound: float,
) -> NDArray[np.float64]:
    """(rows, k, E) Σ clamp(r − r̂_ui, ±B)/B·z over the ratings of each row of a side; r̂ is a model's prediction.

    ratings   the ratings of the side's rows
    features  (rows of the other side, k) z

    Everything from the residual on is in double precision. So each term is at most |z|, to the last bit.
    """
    return np.concatenate(
        [_sums(group, side, ratings, features, bound)[..., : group.lanes] for group in models.groups], axis=-1
    )


def _sums(
    group: FactorLanes, side: Side, ratings: SideRatings, features: NDArray[np.float64], bound: float
) -> NDArray[np.float64]:
    """(rows, k, width) the `clamped_sums` of one group of models."""
    own, other = (each.reshape(-1, group.factors + 1, group.width) for each in group.own_and_other(side))
    features = np.ascontiguousarray(features)
    sums = np.zeros((len(ratings.starts) - 1, features.shape[1], group.width))
    _add_clamped(ratings.starts, ratings.others, ratings.values, own, other, features, bound, sums)
    return sums


@compiled(
    example(
        own=numbers(USERS, 3, 8),
        other=numbers(ITEMS, 3, 8),
        features=numbers(ITEMS, 2),
        bound=1.5,
        sums=np.zeros((USERS, 2, 8)),
    )
)
def _add_clamped(starts, others, values, own, other, features, bound, sums):
    d, w = own.shape[1] - 1, own.shape[2]
    left, mine = np.empty(w), np.empty((d + 1, w))
    for r in range(len(starts) - 1):
        to = sums[r]
        for f in range(d + 1):
            for e in range(w):
                mine[f, e] = own[r, f, e]
        for x in range(starts[r], starts[r + 1]):
            theirs, z = other[others[x]], features[others[x]]
            for e in range(w):
                left[e] = values[x] - np.float64(theirs[d, e]) - mine[d, e]
            for f in range(d):
                for e in range(w):
                    left[e] -= mine[f, e] * theirs[f, e]
            for e in range(w):
                left[e] = min(max(left[e] / bound, -1.0), 1.0)
            for k in range(len(z)):
                for e in range(w):
                    to[k, e] += left[e] * z[k]
