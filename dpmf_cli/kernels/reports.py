"""What devices report: gradients at one coordinate and clamped residuals, with their sums."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.compiled.decorator import compiled
from dpmf_cli.core.compiled.lane_groups import of_all_groups
from dpmf_cli.kernels.als import SideRatings
from dpmf_cli.kernels.examples import ITEMS, RATED, USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes, FactorModel, predicted
from dpmf_cli.kernels.lanes import load, splat, store, zeros

Indices = NDArray[np.integer]


def coordinate_gradients(
    model: FactorModel,
    users: Indices,
    items: Indices,
    coordinates: Indices,
    values: NDArray[np.float32],
    bound: float,
) -> NDArray[np.float32]:
    """(n, E) (r_ui − r̂_ui)·p_uc/bound of n ratings, where c is the coordinate of each."""
    found = []
    for group in model.groups:
        out = np.empty(len(users) * group.width, np.float32)
        _gradients(users, items, coordinates, values, np.float32(bound), out, *group.arguments)
        found.append(out.reshape(len(users), group.width)[:, : group.lanes])
    return found[0] if len(found) == 1 else np.concatenate(found, axis=1)


@compiled(example(coordinates=lambda s: RATED % s.d, out=lambda s: np.zeros(len(RATED) * s.w)))
def _gradients(users, items, coordinates, values, bound, out, P, Q, factors_of, width_of):
    w, like = len(width_of), zeros(width_of)
    row = (len(factors_of) + 1) * w
    for x in range(len(users)):
        p_at, q_at = np.int64(users[x]) * row, np.int64(items[x]) * row
        error = splat(values[x], like) - predicted(p_at, q_at, P, Q, factors_of, width_of)
        coordinate = load(P, p_at + np.int64(coordinates[x]) * w, like)
        store(out, x * w, error * coordinate / splat(bound, like))


def sums_of_reports(
    items: Indices,
    coordinates: Indices,
    weights: Indices,
    reported: NDArray[np.float32],
    shape: tuple[int, int],
) -> NDArray[np.float64]:
    """(n_items, d, E) the sums by item and coordinate of the reports (n, E), each report times its weight (n,).

    shape  (n_items, d)
    """
    sums = np.zeros((*shape, reported.shape[1]))
    _add_reports(items, coordinates, weights, reported, sums)
    return sums


@compiled(
    example(
        coordinates=RATED % 2,
        weights=RATED + 1,
        reported=numbers(len(RATED), 3),
        sums=np.zeros((ITEMS, 2, 3)),
    )
)
def _add_reports(items, coordinates, weights, reported, sums):
    for x in range(len(items)):
        for e in range(reported.shape[1]):
            sums[items[x], coordinates[x], e] += reported[x, e] * weights[x]


@of_all_groups
def clamped_sums(
    group: FactorLanes, ratings: SideRatings, features: NDArray[np.float64], bound: float
) -> NDArray[np.float64]:
    """(rows, k, E) Σ clamp(r − r̂_ui, ±B)/B·z over the ratings of each row of a side; r̂ is a model's prediction.

    features  (rows of the other side, k) z

    Everything from the residual on is in double precision. So each term is at most |z|, to the last bit.
    """
    sides = group.padded("users"), group.padded("items")
    own, other = sides if ratings.side == "users" else sides[::-1]
    sums = np.zeros((len(ratings.rows.starts) - 1, features.shape[1], group.width))
    _add_clamped(ratings.rows, own, other, np.ascontiguousarray(features), bound, sums)
    return sums[..., : group.lanes]


@compiled(
    example(
        own=numbers(USERS, 3, 8),
        other=numbers(ITEMS, 3, 8),
        features=numbers(ITEMS, 2),
        bound=1.5,
        sums=np.zeros((USERS, 2, 8)),
    )
)
def _add_clamped(ratings, own, other, features, bound, sums):
    starts, others, values = ratings
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
