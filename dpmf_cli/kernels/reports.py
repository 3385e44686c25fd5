"""What devices report: gradients at one coordinate and clamped residuals, with their sums."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Doubles, Singles
from dpmf_cli.core.compiled.decorator import compiled
from dpmf_cli.core.compiled.lane_groups import of_all_groups
from dpmf_cli.kernels.als import SideRatings
from dpmf_cli.kernels.examples import ITEMS, RATED, USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes, FactorModel, predicted
from dpmf_cli.kernels.lane_math import clamp
from dpmf_cli.kernels.lanes import doubles, load, splat, store, zeros

Indices = NDArray[np.integer]


def coordinate_gradients(
    model: FactorModel, users: Indices, items: Indices, coordinates: Indices, values: Singles, bound: float
) -> Singles:
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
    items: Indices, coordinates: Indices, weights: Indices, reported: Singles, shape: tuple[int, int]
) -> Doubles:
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
def clamped_sums(group: FactorLanes, ratings: SideRatings, features: Doubles, bound: float) -> Doubles:
    """(rows, k, E) Σ clamp(r − r̂_ui, ±B)/B·z over the ratings of each row of a side; r̂ is a model's prediction.

    features  (rows of the other side, k) z

    Everything from the residual on is in double precision. So each term is at most |z|, to the last bit.
    """
    flat, count = np.ascontiguousarray(features).ravel(), features.shape[1]
    sums, shapes = (
        np.zeros((len(ratings.rows.starts) - 1, count, group.width)),
        (group.factors_of, group.width_of),
    )
    _add_clamped(ratings.rows, flat, bound, sums.reshape(-1), *group.own_and_other(ratings.side), *shapes)
    return sums[..., : group.lanes]


@compiled(example(features=numbers(2 * ITEMS), bound=1.5, sums=lambda s: np.zeros(USERS * 2 * s.w)))
def _add_clamped(ratings, features, bound, sums, P, Q, factors_of, width_of):
    starts, others, values = ratings
    d, w, wide = len(factors_of), len(width_of), doubles(width_of)
    row, count, one = (d + 1) * w, len(sums) // w // max(len(starts) - 1, 1), splat(1.0, wide)
    for r in range(len(starts) - 1):
        for x in range(starts[r], starts[r + 1]):
            q_at = np.int64(others[x]) * row
            left = splat(values[x], wide) - load(Q, q_at + d * w, wide) - load(P, r * row + d * w, wide)
            for at in range(0, d * w, w):
                left = left - load(P, r * row + at, wide) * load(Q, q_at + at, wide)
            left = clamp(left / splat(bound, wide), wide - one, one)
            for k in range(count):
                to, z = (r * count + k) * w, splat(features[others[x] * count + k], wide)
                store(sums, to, load(sums, to, wide) + left * z)
