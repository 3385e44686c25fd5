"""Alternating least squares over lanes: normal equations and Cholesky factors of all models side by side."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.kernels.lanes import add, clamp, div, fma, load, mul, splat, sqrt, store, sub, zeros


def solve_users(
    factors: FactorLanes,
    starts: NDArray[np.int64],
    items: NDArray[np.int32],
    values: NDArray[np.float32],
    *,
    regularization: float,
    bound: float,
) -> None:
    """p_u ← argmin Σ_i (r̃_ui − p·q_i)² + n_u·λ·‖p‖² for every user with ratings, items fixed, in place.

    r̃_ui = clamp(r_ui − IAvg(i) − UAvg(u), [−bound, bound]). Zhou et al. 2008 (ALS-WR); Friedman et al. 2016,
    equations 12 and 13. starts (n_users + 1,), items and values (n_ratings,) by user.
    """
    _solve(
        starts,
        items,
        values,
        factors.users,
        factors.items,
        np.float32(regularization),
        np.float32(bound),
        factors.factors_of,
        factors.width_of,
    )


def solve_items(
    factors: FactorLanes,
    starts: NDArray[np.int64],
    users: NDArray[np.int32],
    values: NDArray[np.float32],
    *,
    regularization: float,
    bound: float,
) -> None:
    """The same for items, users fixed. starts (n_items + 1,), users and values (n_ratings,) by item."""
    _solve(
        starts,
        users,
        values,
        factors.items,
        factors.users,
        np.float32(regularization),
        np.float32(bound),
        factors.factors_of,
        factors.width_of,
    )


@njit(cache=True)
def _solve(starts, others, values, P, Q, regularization, bound, factors_of, width_of):
    """Rows of P given Q. `gram` holds the lower triangle of Σ q·qᵀ row by row, `right` holds Σ r̃·q."""
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    low, high = splat(-bound, like), splat(bound, like)
    gram = np.empty(d * (d + 1) // 2 * w, np.float32)
    right = np.empty(d * w, np.float32)
    for r in range(len(starts) - 1):
        count = starts[r + 1] - starts[r]
        if count == 0:
            continue
        gram[:] = 0
        right[:] = 0
        own = load(P, r * row + d * w, like)
        for x in range(starts[r], starts[r + 1]):
            q_at = np.int64(others[x]) * row
            target = sub(sub(splat(values[x], like), load(Q, q_at + d * w, like)), own)
            target = clamp(target, low, high)
            entry = 0
            for i in range(d):
                q = load(Q, q_at + i * w, like)
                store(right, i * w, fma(target, q, load(right, i * w, like)))
                for j in range(i + 1):
                    product = fma(q, load(Q, q_at + j * w, like), load(gram, entry, like))
                    store(gram, entry, product)
                    entry += w
        ridge = splat(regularization * np.float32(count), like)
        for i in range(d):
            diagonal = (i * (i + 1) // 2 + i) * w
            store(gram, diagonal, add(load(gram, diagonal, like), ridge))
        _cholesky_solve(gram, right, factors_of, width_of)
        for i in range(d):
            store(P, r * row + i * w, load(right, i * w, like))


@njit(cache=True)
def _cholesky_solve(gram, right, factors_of, width_of):
    """right ← gram⁻¹·right in every lane; gram (a packed lower triangle) becomes its Cholesky factor."""
    d, w = len(factors_of), len(width_of)
    like = zeros(width_of)
    for i in range(d):
        row_i = i * (i + 1) // 2
        for j in range(i + 1):
            row_j = j * (j + 1) // 2
            value = load(gram, (row_i + j) * w, like)
            for k in range(j):
                product = mul(load(gram, (row_i + k) * w, like), load(gram, (row_j + k) * w, like))
                value = sub(value, product)
            pivot = sqrt(value) if i == j else div(value, load(gram, (row_j + j) * w, like))
            store(gram, (row_i + j) * w, pivot)
        forward = load(right, i * w, like)
        for k in range(i):
            forward = sub(forward, mul(load(gram, (row_i + k) * w, like), load(right, k * w, like)))
        store(right, i * w, div(forward, load(gram, (row_i + i) * w, like)))
    for back in range(d):
        i = d - 1 - back
        value = load(right, i * w, like)
        for k in range(i + 1, d):
            value = sub(value, mul(load(gram, (k * (k + 1) // 2 + i) * w, like), load(right, k * w, like)))
        store(right, i * w, div(value, load(gram, (i * (i + 1) // 2 + i) * w, like)))
