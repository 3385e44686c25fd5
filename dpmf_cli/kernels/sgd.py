"""Stochastic gradient descent over lanes: one visit of a rating updates every model of the grid."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.kernels.denormals import flushing
from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.kernels.lanes import clamp, fma, load, mul, pad, prefetch, splat, store, sub, zeros
from dpmf_cli.kernels.perturb import project


@flushing
def descend_perturbed(
    start: FactorLanes,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    noise: NDArray[np.float32],
    scale: NDArray[np.float64],
    *,
    learning_rate: float,
    regularization: float,
    bound: float,
    epochs: int,
) -> None:
    """SGD on perturbed residuals, in place, in the order of the ratings, `epochs` times.

    Each visit, for each model e:
        r′ = clamp(clamp(r_ui − IAvg(i) − UAvg(u)) + noise·scale_e)   both to [−bound, bound]
        e  = r′ − p_u·q_i;   p_u ← p_u + γ(e·q_i − λ·p_u);   q_i ← q_i + γ(e·p_u − λ·q_i)   simultaneously
    Friedman et al. 2016, equation 7, algorithm 3 lines 1-2, equation 2. The perturbed rating r′ is the same
    number in every epoch; it is recomputed from the unit noise, because that is cheaper than reading it.

    users, items, values, noise  (n_ratings,); scale (lanes,)
    """
    _descend_perturbed(
        users,
        items,
        values,
        noise,
        pad(scale, start.width),
        start.users,
        start.items,
        np.float32(learning_rate),
        np.float32(regularization),
        np.float32(bound),
        epochs,
        start.factors_of,
        start.width_of,
    )


@njit(cache=True, nogil=True)
def _descend_perturbed(
    users, items, values, noise, scale, P, Q, rate, regularization, bound, epochs, factors_of, width_of
):
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    scales, low, high = load(scale, 0, like), splat(-bound, like), splat(bound, like)
    step, keep = splat(rate, like), splat(np.float32(1) - rate * regularization, like)
    last = len(values) - 1
    for _ in range(epochs):
        for x in range(len(values)):
            p_at, q_at = np.int64(users[x]) * row, np.int64(items[x]) * row
            ahead = np.int64(items[min(x + 2, last)]) * row
            for f in range(d + 1):
                prefetch(Q, ahead + f * w)
            residual = sub(splat(values[x], like), load(Q, q_at + d * w, like))
            residual = clamp(sub(residual, load(P, p_at + d * w, like)), low, high)
            error = clamp(fma(splat(noise[x], like), scales, residual), low, high)
            dot = zeros(width_of)
            for f in range(d):
                dot = fma(load(P, p_at + f * w, like), load(Q, q_at + f * w, like), dot)
            move = mul(sub(error, dot), step)
            for f in range(d):
                p, q = load(P, p_at + f * w, like), load(Q, q_at + f * w, like)
                store(P, p_at + f * w, fma(move, q, mul(keep, p)))
                store(Q, q_at + f * w, fma(move, p, mul(keep, q)))


@flushing
def descend_noisy_errors(
    start: FactorLanes,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    noise: NDArray[np.float32],
    scale: NDArray[np.float64],
    *,
    learning_rate: float,
    regularization: float,
    bound: float,
    error_bound: float,
    user_limit: float,
    item_limit: float,
) -> None:
    """One pass of SGD whose errors are perturbed and clamped, in place, in the order of the ratings.

    Each visit, for each model e:
        e  = clamp(clamp(r_ui − IAvg(i) − UAvg(u), ±bound) − p_u·q_i + noise·scale_e, ±error_bound)
        p_u ← p_u + γ(e·q_i − λ·p_u);   q_i ← q_i + γ(e·p_u − λ·q_i)   simultaneously
        then ‖p_u‖ ≤ user_limit and ‖q_i‖ ≤ item_limit by scaling; inf for no limit
    Friedman et al. 2016, algorithm 4, lines 3-7, with the bounds of section 5.2; algorithm 5, lines 5-8, is the
    same without noise and limits.
    """
    _descend_noisy_errors(
        users,
        items,
        values,
        noise,
        pad(scale, start.width),
        start.users,
        start.items,
        np.float32(learning_rate),
        np.float32(regularization),
        np.float32(bound),
        np.float32(error_bound),
        np.float32(user_limit),
        np.float32(item_limit),
        start.factors_of,
        start.width_of,
    )


@njit(cache=True, nogil=True)
def _descend_noisy_errors(
    users,
    items,
    values,
    noise,
    scale,
    P,
    Q,
    rate,
    regularization,
    bound,
    error_bound,
    user_limit,
    item_limit,
    factors_of,
    width_of,
):
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    scales, low, high = load(scale, 0, like), splat(-bound, like), splat(bound, like)
    least, most = splat(-error_bound, like), splat(error_bound, like)
    step, keep = splat(rate, like), splat(np.float32(1) - rate * regularization, like)
    last = len(values) - 1
    for x in range(len(values)):
        p_at, q_at = np.int64(users[x]) * row, np.int64(items[x]) * row
        ahead = np.int64(items[min(x + 2, last)]) * row
        for f in range(d + 1):
            prefetch(Q, ahead + f * w)
        residual = sub(splat(values[x], like), load(Q, q_at + d * w, like))
        error = clamp(sub(residual, load(P, p_at + d * w, like)), low, high)
        dot = zeros(width_of)
        for f in range(d):
            dot = fma(load(P, p_at + f * w, like), load(Q, q_at + f * w, like), dot)
        error = clamp(fma(splat(noise[x], like), scales, sub(error, dot)), least, most)
        move = mul(error, step)
        for f in range(d):
            p, q = load(P, p_at + f * w, like), load(Q, q_at + f * w, like)
            store(P, p_at + f * w, fma(move, q, mul(keep, p)))
            store(Q, q_at + f * w, fma(move, p, mul(keep, q)))
        project(P, p_at, user_limit, factors_of, width_of)
        project(Q, q_at, item_limit, factors_of, width_of)


@flushing
def descend_values(
    start: FactorLanes,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    order: NDArray[np.int64],
    values: NDArray[np.float32],
    *,
    learning_rate: float,
    regularization: float,
    epochs: int,
) -> None:
    """SGD on ratings that each model has its own values of, in place, in the given order, `epochs` times.

        e = r_ui − p_u·q_i;   p_u ← p_u + γ(e·q_i − λ·p_u);   q_i ← q_i + γ(e·p_u − λ·q_i)   simultaneously

    users, items, order  (n_ratings,); values (n_ratings, width)
    """
    _descend_values(
        users,
        items,
        order,
        values.reshape(-1),
        start.users,
        start.items,
        np.float32(learning_rate),
        np.float32(regularization),
        epochs,
        start.factors_of,
        start.width_of,
    )


@njit(cache=True, nogil=True)
def _descend_values(users, items, order, values, P, Q, rate, regularization, epochs, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    step, keep = splat(rate, like), splat(np.float32(1) - rate * regularization, like)
    last = len(order) - 1
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
