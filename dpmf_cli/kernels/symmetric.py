"""Packed symmetric matrices times vectors, and their leading eigenpairs, without unpacking them.

A matrix is a packed upper triangle of float32, as in `kernels.covariance`. With `scaling` s, all functions work on
D·A·D, where D = diag(s), and A stays as it is.

Matrices of low rank are written to packed triangles. McSherry and Mironov 2009, section 4.6, "cleaning": Avg_ij is
multiplied by s_i·s_j, where s_i = √MCnt_i. The product is replaced by its best approximation of rank k
(`leading_eigenpairs` with that scaling). The approximation is divided by s_i·s_j (`rank_k`). So entries that rest
on many ratings weigh more in the approximation.
"""

from typing import Literal

import numpy as np
from scipy.linalg import eigh
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from dpmf_cli.core.arrays import Doubles, Floats, Singles
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.kernels.covariance import place
from dpmf_cli.kernels.examples import ROWS, example, numbers
from dpmf_cli.kernels.lane_math import cast, fma, total
from dpmf_cli.kernels.lanes import doubles, load, splat, store, zeros

TOLERANCE = 1e-4
"""Lanczos stops when the residual of every pair is below this fraction of its eigenvalue."""
SMALL = 400
"""Matrices of at most so many rows are solved densely. So are all if at least a quarter of the pairs are wanted."""
COLUMNS = 1024
"""How many columns are taken at a time. Four rows of them stay in the nearest cache while every vector uses them."""
ROWS_AT_ONCE = 4
WIDTH = (0,) * 16

Which = Literal["magnitude", "largest"]


def multiply(triangle: Singles, vectors: Floats, *, scaling: Floats | None = None) -> Doubles:
    """(n, b) float64 A·vectors, or D·A·D·vectors with `scaling` (n,), for vectors (n, b).

    The triangle is read once, whatever b is, at the speed of memory. Vectors are rounded to float32 and multiplied
    in float32. Sums of at most 4 products (down a column) or 64 (along a row, in each lane) are then added up in
    float64. So the result is that of the rounded vectors to about 1e-7, and costs the same as float32 throughout.
    """
    n, b = vectors.shape
    scale = None if scaling is None else np.asarray(scaling, np.float64)[:, None]
    right = np.ascontiguousarray((vectors if scale is None else vectors * scale).T, np.float32)
    out = np.zeros((b, n))
    _multiply(triangle, np.int64(n), right.ravel(), out.ravel(), WIDTH)
    return out.T if scale is None else out.T * scale


@compiled(example(right=numbers(2 * ROWS), out=np.zeros(2 * ROWS)))
def _multiply(triangle, n, right, out, width_of):
    """Adds A·right (b·n) to out (b·n), one vector after the other. Right of their corner, four rows go together."""
    w, like, wide = len(width_of), zeros(width_of), doubles(width_of)
    blocks = n // ROWS_AT_ONCE * ROWS_AT_ONCE
    for i in range(0, blocks, ROWS_AT_ONCE):
        row0, row1 = place(i, i, n) - i, place(i + 1, i + 1, n) - i - 1
        row2, row3 = place(i + 2, i + 2, n) - i - 2, place(i + 3, i + 3, n) - i - 3
        for first in range(i + ROWS_AT_ONCE, n, COLUMNS):
            last = min(first + COLUMNS, n)
            whole = first + (last - first) // w * w
            for base in range(0, len(out), n):
                v0, v1 = splat(right[base + i], like), splat(right[base + i + 1], like)
                v2, v3 = splat(right[base + i + 2], like), splat(right[base + i + 3], like)
                sum0, sum1, sum2, sum3 = like, like, like, like
                for j in range(first, whole, w):
                    v = load(right, base + j, like)
                    a0, a1 = load(triangle, row0 + j, like), load(triangle, row1 + j, like)
                    a2, a3 = load(triangle, row2 + j, like), load(triangle, row3 + j, like)
                    sum0, sum1 = fma(a0, v, sum0), fma(a1, v, sum1)
                    sum2, sum3 = fma(a2, v, sum2), fma(a3, v, sum3)
                    column = fma(a3, v3, fma(a2, v2, fma(a1, v1, fma(a0, v0, like))))
                    store(out, base + j, load(out, base + j, wide) + cast(column, wide))
                out[base + i] += total(sum0)
                out[base + i + 1] += total(sum1)
                out[base + i + 2] += total(sum2)
                out[base + i + 3] += total(sum3)
                _multiply_part(triangle, n, right, out, base, i, i + ROWS_AT_ONCE, whole, last)
        for base in range(0, len(out), n):
            _multiply_part(triangle, n, right, out, base, i, i + ROWS_AT_ONCE, i, i + ROWS_AT_ONCE)
    for base in range(0, len(out), n):
        _multiply_part(triangle, n, right, out, base, blocks, n, blocks, n)


@compiled()
def _multiply_part(triangle, n, right, out, base, first_row, last_row, first, last):
    """Multiplies by the elements on or above the diagonal of some rows and columns, one by one."""
    for i in range(first_row, last_row):
        row = place(i, i, n) - i
        for j in range(max(i, first), last):
            a = np.float64(triangle[row + j])
            out[base + i] += a * right[base + j]
            if i != j:
                out[base + j] += a * right[base + i]


def leading_eigenpairs(
    triangle: Singles, n: int, k: int, *, scaling: Floats | None = None, which: Which = "magnitude"
) -> tuple[Doubles, Doubles]:
    """(values (k,), orthonormal vectors (n, k)) of A, or of D·A·D with `scaling` (n,); n pairs if k > n.

    which  "magnitude": largest |λ| first, the best approximation of rank k in the Frobenius norm (Eckart and Young
           1936); "largest": largest λ first
    The component of a vector that is largest in magnitude is positive. The same input gives the same output: random
    numbers depend on n only.

    The method is Lanczos (ARPACK) with one vector at a time. On ML-1M's covariance times √(counts) it is two to three
    times as fast as power iterations or a block Krylov space. Each pair is right to 1e-6 of the largest eigenvalue;
    they leave 1e-4 and more. A block Krylov space is used only if ARPACK gives up. A dense matrix is used if n is
    small or k is at least a quarter of n.
    """
    k = min(k, n)
    if n <= SMALL or 4 * k >= n:
        dense = np.zeros((n, n))  # its upper triangle
        dense[np.tri(n, dtype=bool).T] = triangle
        if scaling is not None:
            scale = np.asarray(scaling, np.float64)
            dense *= scale[:, None] * scale
        values, vectors = eigh(dense, lower=False)
    else:

        def product(vector: Doubles) -> Doubles:
            return multiply(triangle, vector.reshape(n, 1), scaling=scaling)[:, 0]

        operator, rng = LinearOperator((n, n), matvec=product, dtype=np.float64), np.random.default_rng(n)
        given = {"v0": rng.standard_normal(n), "ncv": min(n, 2 * k + 20), "tol": TOLERANCE, "rng": rng}
        try:
            values, vectors = eigsh(operator, k, which="LM" if which == "magnitude" else "LA", **given)
        except ArpackError:
            values, vectors = _block_krylov(triangle, n, k, scaling)
    order = np.argsort(-np.abs(values) if which == "magnitude" else -values, kind="stable")[:k]
    return values[order], with_fixed_signs(vectors[:, order])


def _block_krylov(triangle: Singles, n: int, k: int, scaling: Floats | None) -> tuple[Doubles, Doubles]:
    """Returns Ritz pairs of span(AX, A²X, …) for a random block X of k + 4 vectors (Musco and Musco 2015).

    It makes no test of convergence and ends only after the last step. It finds both ends of the spectrum at once.
    """
    block = np.random.default_rng(n).standard_normal((n, k + 4))
    blocks = []
    for _ in range(min(8, n // (k + 4))):
        block, _ = np.linalg.qr(multiply(triangle, block, scaling=scaling))
        blocks.append(block)
    basis, _ = np.linalg.qr(np.hstack(blocks))
    inner = basis.T @ multiply(triangle, basis, scaling=scaling)
    values, vectors = eigh((inner + inner.T) / 2)
    return values, basis @ vectors


def with_fixed_signs(vectors: Doubles) -> Doubles:
    """The columns of `vectors` (n, k), each with the sign that makes its component of largest magnitude positive."""
    largest = np.abs(vectors).argmax(axis=0)
    return np.asarray(vectors * np.where(vectors[largest, np.arange(vectors.shape[1])] < 0, -1.0, 1.0))


def rank_k(
    triangle: Singles, n: int, values: Doubles, vectors: Doubles, scaling: Floats | None = None
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


def eigen_of_low_rank(values: Doubles, factors: Doubles) -> tuple[Doubles, Doubles]:
    """(λ (k,), orthonormal V (n, k)) with V·diag(λ)·Vᵀ = F·diag(values)·Fᵀ, for F = `factors` (n, k), k ≤ n.

    Largest |λ| first. F = Q·R reduces it to the k × k matrix R·diag(values)·Rᵀ. The vectors' signs are fixed as in
    `leading_eigenpairs`.
    """
    basis, upper = np.linalg.qr(factors)
    inner, rotation = np.linalg.eigh((upper * values) @ upper.T)
    order = np.argsort(-np.abs(inner), kind="stable")
    vectors = basis @ rotation[:, order]
    return inner[order], with_fixed_signs(vectors)
