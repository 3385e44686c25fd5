"""What devices report: gradients at one coordinate and clamped residuals, with their sums."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.compiled.decorator import compiled
from dpmf_cli.core.compiled.lane_groups import Grouped
from dpmf_cli.kernels.als import SideRatings
from dpmf_cli.kernels.examples import ITEMS, RATED, USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes, FactorModel
from dpmf_cli.kernels.lanes import add, div, fma, load, mul, splat, store, sub, zeros

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
    found = [_of_group(group, users, items, coordinates, values, bound) for group in model.groups]
    return found[0] if len(found) == 1 else np.concatenate(found, axis=1)


def _of_group(
    group: FactorLanes,
    users: Indices,
    items: Indices,
    coordinates: Indices,
    values: NDArray[np.float32],
    bound: float,
) -> NDArray[np.float32]:
    """(n, lanes) the `coordinate_gradients` of one group of models."""
    out = np.empty(len(users) * group.width, np.float32)
    _gradients(users, items, coordinates, values, np.float32(bound), out, *group.arguments)
    return out.reshape(len(users), group.width)[:, : group.lanes]


@compiled(example(coordinates=lambda s: RATED % s.d, out=lambda s: np.zeros(len(RATED) * s.w)))
def _gradients(users, items, coordinates, values, bound, out, P, Q, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    for x in range(len(users)):
        p, q = np.int64(users[x]) * row, np.int64(items[x]) * row
        predicted = add(load(Q, q + d * w, like), load(P, p + d * w, like))
        for f in range(d):
            predicted = fma(load(P, p + f * w, like), load(Q, q + f * w, like), predicted)
        error = sub(splat(values[x], like), predicted)
        coordinate = load(P, p + np.int64(coordinates[x]) * w, like)
        store(out, x * w, div(mul(error, coordinate), splat(bound, like)))


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


def clamped_sums(
    models: Grouped[FactorLanes],
    ratings: SideRatings,
    features: NDArray[np.float64],
    bound: float,
) -> NDArray[np.float64]:
    """(rows, k, E) Σ clamp(r − r̂_ui, ±B)/B·z over the ratings of each row of a side; r̂ is a model's prediction.

    features  (rows of the other side, k) z

    Everything from the residual on is in double precision. So each term is at most |z|, to the last bit.
    """
    return np.concatenate(
        [_sums(group, ratings, features, bound)[..., : group.lanes] for group in models.groups], axis=-1
    )


def _sums(
    group: FactorLanes, ratings: SideRatings, features: NDArray[np.float64], bound: float
) -> NDArray[np.float64]:
    """(rows, k, width) the `clamped_sums` of one group of models."""
    own, other = (
        each.reshape(-1, group.factors + 1, group.width) for each in group.own_and_other(ratings.side)
    )
    features = np.ascontiguousarray(features)
    sums = np.zeros((len(ratings.rows.starts) - 1, features.shape[1], group.width))
    _add_clamped(ratings.rows, own, other, features, bound, sums)
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
