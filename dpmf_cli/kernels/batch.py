"""Batch gradients of a factorisation, each rating's contribution clipped, for all models of a grid."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.kernels.lanes import add, clamp, div, fma, load, splat, sqrt, store, sub, zeros
from dpmf_cli.lane_groups import on_each_group


@njit(cache=True, nogil=True)
def _length(P, at, factors_of, width_of):
    """The L2 norm of the row at `at`, in every lane."""
    d, w = len(factors_of), len(width_of)
    like = zeros(width_of)
    square = zeros(width_of)
    for f in range(d):
        x = load(P, at + f * w, like)
        square = fma(x, x, square)
    return sqrt(square)


@njit(cache=True, nogil=True)
def _step(users, items, values, P, Q, to_P, to_Q, rate, keep, bound, clip, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    low, high = splat(-bound, like), splat(bound, like)
    limit, tiny, step = splat(clip, like), splat(np.float32(1e-12), like), splat(rate, like)
    for at in range(len(P)):
        to_P[at] = P[at]
    for at in range(len(Q)):
        to_Q[at] = Q[at]
    for at in range(0, len(P), row):
        for k in range(at, at + d * w):
            to_P[k] *= keep
    for at in range(0, len(Q), row):
        for k in range(at, at + d * w):
            to_Q[k] *= keep
    for x in range(len(values)):
        p_at, q_at = np.int64(users[x]) * row, np.int64(items[x]) * row
        residual = sub(splat(values[x], like), load(Q, q_at + d * w, like))
        error = clamp(sub(residual, load(P, p_at + d * w, like)), low, high)
        for f in range(d):
            error = sub(error, fma(load(P, p_at + f * w, like), load(Q, q_at + f * w, like), zeros(width_of)))
        lengths = add(_length(P, p_at, factors_of, width_of), _length(Q, q_at, factors_of, width_of))
        most = div(limit, add(lengths, tiny))
        move = fma(clamp(error, sub(like, most), most), step, zeros(width_of))
        for f in range(d):
            p, q = load(P, p_at + f * w, like), load(Q, q_at + f * w, like)
            store(to_P, p_at + f * w, fma(move, q, load(to_P, p_at + f * w, like)))
            store(to_Q, q_at + f * w, fma(move, p, load(to_Q, q_at + f * w, like)))


@on_each_group
def batch_step(
    factors: FactorLanes,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    *,
    learning_rate: float,
    regularization: float,
    bound: float,
    clip: float,
) -> None:
    """One step of batch gradient descent, in place; the same ratings' order gives the same bytes.

        e   = clamp(r_ui − IAvg(i) − UAvg(u), ±bound) − p_u·q_i,  clamped to ±C/(‖p_u‖ + ‖q_i‖)
        p_u ← (1 − γλ)·p_u + γ·Σ_i e·q_i,   q_i ← (1 − γλ)·q_i + γ·Σ_u e·p_u,   both from the old factors

    So that ‖e·q_i‖ + ‖e·p_u‖ ≤ C: no rating moves the two sums by more. users, items, values (n_ratings,)
    """
    to_users, to_items = np.empty_like(factors.users), np.empty_like(factors.items)
    _step(
        users,
        items,
        values,
        factors.users,
        factors.items,
        to_users,
        to_items,
        np.float32(learning_rate),
        np.float32(1 - learning_rate * regularization),
        np.float32(bound),
        np.float32(clip),
        factors.factors_of,
        factors.width_of,
    )
    factors.users[:] = to_users
    factors.items[:] = to_items
