"""Small symmetric systems over lanes, those of all models side by side: Cholesky factors, solutions in a ball.

Arrays are flat, float32 or float64 alike, and all of one call hold the same kind of number.
"""

import numpy as np
from numba import njit

from dpmf_cli.kernels.lanes import (
    add,
    any_below,
    below,
    div,
    fma,
    load,
    mul,
    splat,
    sqrt,
    store,
    sub,
    zeros_like,
)
from dpmf_cli.kernels.perturb import project

MOST_ITERATIONS = 50
"""Of Newton's method for a solution in a ball, which takes about five; rounding may hold it from ending by itself."""


@njit(cache=True, nogil=True)
def solve_in_ball(gram, right, factor, solution, ridge, ball, factors_of, width_of):
    """solution ← the minimiser within ‖p‖ ≤ ball, in the lanes where the free one is outside.

    It is p(μ) = (A + μI)⁻¹b for the μ ≥ 0 with ‖p(μ)‖ = ball. Newton's method on 1/‖p(μ)‖ − 1/ball, which is concave
    in μ, so that from μ = 0 it rises to the root without passing it (Moré and Sorensen 1983); a last scaling removes
    what is left of the excess.

    gram, right       A without `ridge` (a packed lower triangle), and b
    factor, solution  the Cholesky factor of A, and the free minimiser; both are changed
    """
    d, w = len(factors_of), len(width_of)
    like = zeros_like(gram, width_of)
    limit, one = splat(ball, like), splat(1.0, like)
    outside = mul(limit, mul(limit, splat(1 + 8 * np.finfo(gram.dtype).eps, like)))
    extra = like
    for _ in range(MOST_ITERATIONS):
        square, slope = like, like
        for i in range(d):
            value = load(solution, i * w, like)
            square = fma(value, value, square)
        if not any_below(outside, square):
            break
        # slope = ‖L⁻¹p‖² = pᵀ(A + μI)⁻¹p; the forward substitution reuses the rows of `solution`
        for i in range(d):
            value = load(solution, i * w, like)
            for k in range(i):
                value = sub(
                    value, mul(load(factor, (i * (i + 1) // 2 + k) * w, like), load(solution, k * w, like))
                )
            value = div(value, load(factor, (i * (i + 1) // 2 + i) * w, like))
            store(solution, i * w, value)
            slope = fma(value, value, slope)
        rise = mul(div(square, slope), sub(div(sqrt(square), limit), one))
        extra = add(extra, below(outside, square, rise, like))
        factor[:] = gram
        solution[:] = right
        cholesky_solve(factor, solution, add(ridge, extra), factors_of, width_of)
    project(solution, 0, ball, factors_of, width_of)


@njit(cache=True, nogil=True)
def cholesky_solve(gram, right, ridge, factors_of, width_of):
    """right ← (gram + ridge·I)⁻¹·right in every lane; gram (a packed lower triangle) becomes the Cholesky factor.

    The square of a pivot is `ridge` at least. Where it falls below half of that, or below what rounding leaves of its
    diagonal entry, floats cannot tell the matrix from a singular one. It is raised to that: nothing becomes a NaN.
    """
    d, w = len(factors_of), len(width_of)
    like = zeros_like(gram, width_of)
    half, left = mul(ridge, splat(0.5, like)), splat(16 * np.finfo(gram.dtype).eps, like)
    least = half
    for i in range(d):
        row_i = i * (i + 1) // 2
        for j in range(i + 1):
            row_j = j * (j + 1) // 2
            value = load(gram, (row_i + j) * w, like)
            if i == j:
                value = add(value, ridge)
                rounding = mul(value, left)
                least = below(half, rounding, rounding, half)
            for k in range(j):
                product = mul(load(gram, (row_i + k) * w, like), load(gram, (row_j + k) * w, like))
                value = sub(value, product)
            if i == j:
                value = sqrt(below(value, least, least, value))
            else:
                value = div(value, load(gram, (row_j + j) * w, like))
            store(gram, (row_i + j) * w, value)
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
