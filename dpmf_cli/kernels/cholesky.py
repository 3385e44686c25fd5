"""Small symmetric systems over lanes, those of all models side by side: Cholesky factors, solutions in a ball.

A system is (A + ridge·I)p = b. Its flat array `sums` holds the lower triangle of A row by row, then b as one more
row, with a vector of lanes for each entry. The arrays of a call are all float32 or all float64.
"""

import numpy as np

from dpmf_cli.core.compiled.decorator import compiled
from dpmf_cli.kernels.lanes import (
    any_below,
    below,
    fma,
    less_product,
    load,
    over_pivot,
    pivot_of,
    splat,
    sqrt,
    store,
    zeros_like,
)
from dpmf_cli.kernels.releasing import project

MOST_ITERATIONS = 50
"""Limit of Newton's iterations in `solve_in_ball`. About five suffice, but rounding may keep them from ending."""


@compiled()
def solve_in_ball(sums, ridge, ball, factor, solution, factors_of, width_of):
    """Sets `solution` to the minimiser within ‖p‖ ≤ ball, in the lanes where the free minimiser is outside the ball.

    The minimiser is p(μ) = (A + μI)⁻¹b for the μ ≥ 0 with ‖p(μ)‖ = ball. Newton's method finds μ as the root of
    1/‖p(μ)‖ − 1/ball. This function is concave in μ, so from μ = 0 the method rises to the root without passing it
    (Moré and Sorensen 1983). A last scaling removes the remaining excess.

    factor, solution  those of the free minimiser, as `cholesky_solve` leaves them; both are changed
    """
    d, w = len(factors_of), len(width_of)
    like = zeros_like(sums, width_of)
    limit, one = splat(ball, like), splat(1.0, like)
    outside = limit * (limit * splat(1 + 8 * np.finfo(sums.dtype).eps, like))
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
            row_i = i * (i + 1) // 2
            value = load(solution, i * w, like)
            for k in range(i):
                value = less_product(load(factor, (row_i + k) * w, like), load(solution, k * w, like), value)
            value = over_pivot(value, load(factor, (row_i + i) * w, like))
            store(solution, i * w, value)
            slope = fma(value, value, slope)
        rise = square / slope * (sqrt(square) / limit - one)
        extra = extra + below(outside, square, rise, like)
        cholesky_solve(sums, ridge + extra, factor, solution, factors_of, width_of)
    project(solution, 0, ball, factors_of, width_of)


@compiled()
def cholesky_solve(sums, ridge, factor, solution, factors_of, width_of):
    """Sets solution ← (A + ridge·I)⁻¹·b in every lane, and factor ← the Cholesky factor, with L⁻¹b as one more row.

    The square of a pivot is at least `ridge` in real numbers. If it falls below half of `ridge`, or below the
    rounding error of its diagonal entry, floats cannot tell the matrix from a singular one. The square is then raised
    to the larger of these two bounds, so that nothing becomes a NaN.

    A column is solved for four rows at a time, so that an entry of the pivot's row is loaded once for all four.
    """
    d, w = len(factors_of), len(width_of)
    like = zeros_like(sums, width_of)
    half, left = ridge * splat(0.5, like), splat(16 * np.finfo(sums.dtype).eps, like)
    for j in range(d):
        row_j = j * (j + 1) // 2
        value = load(sums, (row_j + j) * w, like) + ridge
        rounding = value * left
        least = below(half, rounding, rounding, half)
        for k in range(j):
            entry = load(factor, (row_j + k) * w, like)
            value = less_product(entry, entry, value)
        pivot = pivot_of(below(value, least, least, value))
        store(factor, (row_j + j) * w, pivot)
        i = j + 1
        while i + 3 <= d:
            row_a = i * (i + 1) // 2
            row_b, row_c, row_e = row_a + i + 1, row_a + 2 * i + 3, row_a + 3 * i + 6
            a = load(sums, (row_a + j) * w, like)
            b = load(sums, (row_b + j) * w, like)
            c = load(sums, (row_c + j) * w, like)
            e = load(sums, (row_e + j) * w, like)
            for k in range(j):
                entry = load(factor, (row_j + k) * w, like)
                a = less_product(load(factor, (row_a + k) * w, like), entry, a)
                b = less_product(load(factor, (row_b + k) * w, like), entry, b)
                c = less_product(load(factor, (row_c + k) * w, like), entry, c)
                e = less_product(load(factor, (row_e + k) * w, like), entry, e)
            store(factor, (row_a + j) * w, over_pivot(a, pivot))
            store(factor, (row_b + j) * w, over_pivot(b, pivot))
            store(factor, (row_c + j) * w, over_pivot(c, pivot))
            store(factor, (row_e + j) * w, over_pivot(e, pivot))
            i += 4
        while i <= d:
            row_i = i * (i + 1) // 2
            value = load(sums, (row_i + j) * w, like)
            for k in range(j):
                entry = load(factor, (row_j + k) * w, like)
                value = less_product(load(factor, (row_i + k) * w, like), entry, value)
            store(factor, (row_i + j) * w, over_pivot(value, pivot))
            i += 1
    last = d * (d + 1) // 2
    for back in range(d):
        i = d - 1 - back
        value = load(factor, (last + i) * w, like)
        for k in range(i + 1, d):
            at = (k * (k + 1) // 2 + i) * w
            value = less_product(load(factor, at, like), load(solution, k * w, like), value)
        store(solution, i * w, over_pivot(value, load(factor, (i * (i + 1) // 2 + i) * w, like)))
