"""Gradients of which each device reports one coordinate, and sums of these reports."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.examples import ITEMS, RATED, example, numbers
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
    _gradients(
        users,
        items,
        coordinates,
        values,
        group.users,
        group.items,
        np.float32(bound),
        out,
        group.factors_of,
        group.width_of,
    )
    return out.reshape(len(users), group.width)[:, : group.lanes]


@compiled(example(coordinates=lambda s: RATED % s.d, out=lambda s: np.zeros(len(RATED) * s.w)))
def _gradients(users, items, coordinates, values, P, Q, bound, out, factors_of, width_of):
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
