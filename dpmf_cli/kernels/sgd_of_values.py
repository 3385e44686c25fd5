"""Stochastic gradient descent on ratings whose values differ between the models of a grid."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.denormals import flush_denormals, restore_denormals
from dpmf_cli.kernels.examples import RATED, example, numbers
from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.kernels.lanes import fma, load, mul, prefetch, splat, store, sub, zeros
from dpmf_cli.lane_groups import LaneValues, on_each_group


@on_each_group
def descend_values(
    group: FactorLanes,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    order: NDArray[np.int64],
    values: LaneValues,
    *,
    learning_rate: float,
    regularization: float,
    epochs: int,
) -> None:
    """Runs SGD on ratings whose values differ between models, in place, in the given order, `epochs` times.

        e = r_ui − p_u·q_i;   p_u ← p_u + γ(e·q_i − λ·p_u);   q_i ← q_i + γ(e·p_u − λ·q_i)   simultaneously

    users, items, order  (n_ratings,)
    """
    _descend_values(
        users,
        items,
        order,
        values.of(group.part).reshape(-1),
        group.users,
        group.items,
        np.float32(learning_rate),
        np.float32(regularization),
        epochs,
        group.factors_of,
        group.width_of,
    )


@compiled(example(values=lambda s: numbers(len(RATED) * s.w)))
def _descend_values(users, items, order, values, P, Q, rate, regularization, epochs, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    step, keep = splat(rate, like), splat(np.float32(1) - rate * regularization, like)
    last = len(order) - 1
    before = flush_denormals()
    for _ in range(epochs):
        for x in range(len(order)):
            at, ahead = order[x], order[min(x + 2, last)]
            prefetch(values, ahead * w)
            for f in range(d + 1):
                prefetch(Q, np.int64(items[ahead]) * row + f * w)
            p_at, q_at = np.int64(users[at]) * row, np.int64(items[at]) * row
            dot = zeros(width_of)
            for f in range(d):
                dot = fma(load(P, p_at + f * w, like), load(Q, q_at + f * w, like), dot)
            move = mul(sub(load(values, at * w, like), dot), step)
            for f in range(d):
                p, q = load(P, p_at + f * w, like), load(Q, q_at + f * w, like)
                store(P, p_at + f * w, fma(move, q, mul(keep, p)))
                store(Q, q_at + f * w, fma(move, p, mul(keep, q)))
    restore_denormals(before)
