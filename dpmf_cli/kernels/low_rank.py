"""Symmetric matrices of low rank: writes them to packed triangles, and finds the eigenpairs of factored ones.

McSherry and Mironov 2009, section 4.6, "cleaning": Avg_ij is multiplied by s_i·s_j, where s_i = √MCnt_i. The product
is replaced by its best approximation of rank k (`symmetric.leading_eigenpairs` with that scaling). The approximation
is divided by s_i·s_j (`rank_k`). So entries that rest on many ratings weigh more in the approximation.
"""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.covariance import place
from dpmf_cli.kernels.examples import ROWS, example, numbers
from dpmf_cli.kernels.lanes import fma, load, splat, store, zeros
from dpmf_cli.kernels.symmetric import with_fixed_signs

ROWS_AT_ONCE = 4
WIDTH = (0,) * 16


def rank_k(
    triangle: NDArray[np.float32],
    n: int,
    values: NDArray[np.float64],
    vectors: NDArray[np.float64],
    scaling: NDArray[np.floating] | None = None,
) -> None:
    """Overwrites the packed triangle with Σ_a λ_a·v_ia·v_ja/(s_i·s_j).

    values λ (k,); vectors v (n, k); scaling s (n,) > 0, or 1 for every item. Sums of k products in float32.
    """
    factors = vectors if scaling is None else vectors / np.asarray(scaling, np.float64)[:, None]
    width = len(WIDTH)
    right = np.zeros((-(-n // width) * width, len(values)), np.float32)
    right[:n] = factors
    panels = np.ascontiguousarray(right.reshape(-1, width, len(values)).transpose(0, 2, 1))
    left = (factors * values).astype(np.float32)
    _rank_k(triangle, np.int64(n), np.int64(len(values)), left.ravel(), panels.ravel(), WIDTH)


@compiled(example(k=2, left=numbers(ROWS * 2), panels=numbers(-(-ROWS // 16) * 16 * 2)))
def _rank_k(triangle, n, k, left, panels, width_of):
    """Fills the triangle. `panels` hold the factors of w items each, as k vectors of w lanes.

    Panels to the right of four rows' corner take these four rows together. The last rows, if fewer than four, have no
    panel to their right.
    """
    w, like = len(width_of), zeros(width_of)
    whole = n // w * w
    for i in range(0, n, ROWS_AT_ONCE):
        rows = min(ROWS_AT_ONCE, n - i)
        first = min(-(-(i + rows) // w) * w, n)
        for r in range(rows):
            row = place(i + r, i + r, n) - i - r
            _scalar_part(triangle, row, k, left, panels, i + r, i + r, first, w)
            _scalar_part(triangle, row, k, left, panels, i + r, max(first, whole), n, w)
        row0, row1 = place(i, i, n) - i, place(i + 1, i + 1, n) - i - 1
        row2, row3 = place(i + 2, i + 2, n) - i - 2, place(i + 3, i + 3, n) - i - 3
        for j in range(first, whole, w):
            sum0, sum1, sum2, sum3 = like, like, like, like
            for a in range(k):
                v, at = load(panels, j * k + a * w, like), i * k + a
                sum0, sum1 = fma(splat(left[at], like), v, sum0), fma(splat(left[at + k], like), v, sum1)
                at += 2 * k
                sum2, sum3 = fma(splat(left[at], like), v, sum2), fma(splat(left[at + k], like), v, sum3)
            store(triangle, row0 + j, sum0)
            store(triangle, row1 + j, sum1)
            store(triangle, row2 + j, sum2)
            store(triangle, row3 + j, sum3)


@compiled()
def _scalar_part(triangle, row, k, left, panels, i, first, last, w):
    for j in range(first, last):
        panel, value = j // w * w * k + j % w, np.float32(0)
        for a in range(k):
            value += left[i * k + a] * panels[panel + a * w]
        triangle[row + j] = value


def eigen_of_low_rank(
    values: NDArray[np.float64], factors: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(λ (k,), orthonormal V (n, k)) with V·diag(λ)·Vᵀ = F·diag(values)·Fᵀ, for F = `factors` (n, k), k ≤ n.

    Largest |λ| first. F = Q·R reduces it to the k × k matrix R·diag(values)·Rᵀ. The vectors' signs are fixed as in
    `leading_eigenpairs`.
    """
    basis, upper = np.linalg.qr(factors)
    inner, rotation = np.linalg.eigh((upper * values) @ upper.T)
    order = np.argsort(-np.abs(inner), kind="stable")
    vectors = basis @ rotation[:, order]
    return inner[order], with_fixed_signs(vectors)
