"""Alternating least squares over lanes: normal equations and Cholesky factors of all models side by side.

A fit without noise sums and solves in float32. Where noise is added, sums and solutions are float64 until then, with
rounding errors:

    sums       Because the product of two float32 numbers is exact in float64, a sum of n products is off by at most
               n·2⁻⁵³·Σ|terms|, as is the change that one rating makes. For 10⁵ ratings that is n²·2⁻⁵³, or 10⁻⁶, of
               the largest term.
    solutions  Cholesky's p solves (A + E)p = b with ‖E‖ ≤ 2d²·2⁻⁵³·‖A‖, so p is off by at most ‖E‖·‖A⁻¹‖·‖p‖. If
               ‖q‖ ≤ q_max, then ‖A‖·‖A⁻¹‖ ≤ 1 + q_max²/λ for A ≥ nλI, and ≤ 1 + n·q_max²/μ for A ≥ μI.

As a fraction of the sensitivity, the error of a solution is at most

    n·d²·2⁻⁵³·(√λ + q_max²/√λ)/q_max   for the sensitivity q_max·Δr/(nλ), if ‖p‖ ≤ B/(2√λ)
    2n·d²·2⁻⁵³                         for the sensitivity q_max(B + p_max·q_max)/μ, if ‖p‖ ≤ p_max

For 10⁵ ratings, d = 10, q_max = 1 and λ ≥ 10⁻⁶ both fractions are below 2⁻¹⁹, and `privacy.grid.MARGIN` has room.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Doubles, Floats
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.examples import USERS, example
from dpmf_cli.kernels.factors import FactorLanes, Side
from dpmf_cli.kernels.lane_math import (
    any_below,
    below,
    clamp,
    fma,
    less_product,
    over_pivot,
    pivot_of,
    rint,
    sqrt,
)
from dpmf_cli.kernels.lanes import load, prefetch, splat, store, zeros, zeros_like
from dpmf_cli.kernels.releasing import (
    project,
    published_rows,
    release_row,
    store_within,
    unit_and_lanes,
    within,
    without_noise,
)
from dpmf_cli.kernels.sums import RatingsByRow, item_major
from dpmf_cli.privacy.grid import grid_of
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Perturbed, Publish, noisy_kernel

PREFETCHED = 4
"""How many ratings ahead a row of the other side is prefetched. The rows of 10⁵ users fit in no near cache."""

BLOCK = 8
"""How many ratings are added to the sums of a row at a time. Each sum is read and written once for all of these."""
TILE = 3
"""Sums are held in registers in tiles of 3 × 3, so that six loads serve nine products."""


@dataclass(frozen=True)
class RowProblem:
    """The problem that is minimised for each row: a user, items fixed; or an item, users fixed.

        Σ (r̃ − p·q)² + w·‖p‖² + 2·b·p,   ‖p‖₂ ≤ ball,   r̃ = clamp(r − averages, [−bound, bound])

    If `per_rating`, w is `regularization` times the row's number of ratings; otherwise w is `regularization` itself,
    and every row is solved, even without ratings. An array (E,) holds one `regularization` for each model of the
    grid. b is 0, or noise. If `private_raters`, who has rated is private too, and the solution of a problem with
    noise is released.

    Zhou et al. 2008 (ALS-WR); Friedman et al. 2016, equations 12 and 13; Chaudhuri et al. 2011 for b.
    """

    regularization: float | Doubles
    bound: float
    per_rating: bool = True
    ball: float = math.inf
    private_raters: bool = False


class Solving(NamedTuple):
    """A `RowProblem` as kernels take it. Solutions are rounded to multiples of `cell`, and shortened to `limit`."""

    regularization: Floats
    per_rating: bool
    bound: np.float32
    ball: np.floating
    row_factors: Floats
    cell: float
    limit: np.floating


@dataclass(frozen=True)
class SideRatings:
    """The ratings with which one side's rows are solved, the other side fixed."""

    side: Side
    rows: RatingsByRow


def by_user(train: Ratings) -> SideRatings:
    return SideRatings("users", RatingsByRow(train.user_starts, train.items, train.values))


def by_item(train: Ratings) -> SideRatings:
    rows = item_major(train)
    return SideRatings("items", rows._replace(values=train.values[rows.values]))


def _plain_sums(group: FactorLanes, ratings: SideRatings, problem: RowProblem) -> tuple[Doubles, Doubles]:
    """Σ q·qᵀ (rows, d, d, lanes) and Σ r̃·q (rows, d, lanes) of a side's rows."""
    starts, others, values = ratings.rows
    opposite: Side = "items" if ratings.side == "users" else "users"
    row_of, rows, d = np.repeat(np.arange(len(starts) - 1), np.diff(starts)), len(starts) - 1, group.factors
    own, other = group.table(ratings.side)[row_of], group.table(opposite)[others]
    bound, q = np.float32(problem.bound), other[:, :-1].astype(np.float64)
    targets = np.clip(values[:, None] - other[:, -1] - own[:, -1], -bound, bound).astype(np.float64)
    gram, right = np.zeros((rows, d, d, group.lanes)), np.zeros((rows, d, group.lanes))
    np.add.at(gram, row_of, q[:, :, None] * q[:, None])
    np.add.at(right, row_of, targets[:, None] * q)
    return gram, right


def _plain_solutions(
    group: FactorLanes, ratings: SideRatings, problem: RowProblem, gram: Doubles, right: Doubles
) -> Doubles:
    """(rows, d, lanes) the solutions; 0 in rows that are not solved."""
    solved, solutions = _solved_rows(ratings, problem), np.zeros(right.shape)
    times = np.diff(ratings.rows.starts)[solved, None] if problem.per_rating else 1
    ridge = np.broadcast_to(_weights(group, problem) * times, (len(solved), group.lanes))
    by_lane = np.moveaxis(gram[solved], -1, 1), np.moveaxis(right[solved], -1, 1)
    solutions[solved] = np.moveaxis(ridge_within(*by_lane, ridge, problem.ball), 1, -1)
    return solutions


def _plain_solve_perturbed(
    group: FactorLanes,
    publish: Publish,
    ratings: SideRatings,
    problem: RowProblem,
    limit: float = math.inf,
    factors: Doubles | None = None,
) -> None:
    """The Python reference, which measures −Σ r̃·q of the solved rows, the solutions if `private_raters`, or the
    solutions divided by their `factors`."""
    gram, right = _plain_sums(group, ratings, problem)
    solved = _solved_rows(ratings, problem)
    if factors is not None:
        solutions, factor = _plain_solutions(group, ratings, problem, gram, right), factors[:, None, None]
        solutions = published_rows(publish, solutions / factor, solved) * factor
    elif problem.private_raters:  # A·p = Σ r̃·q − b inside the ball, A = Σ q·qᵀ + w·I, b the noise
        hessian = gram + np.eye(group.factors)[..., None] * _weights(group, problem)
        solutions = publish.solutions(
            Perturbed(
                solve=lambda noise: _plain_solutions(group, ratings, problem, gram, right - noise),
                noise_of=lambda found: np.asarray(right - np.einsum("rijl,rjl->ril", hessian, found)),
                volume=lambda: np.asarray(np.linalg.slogdet(np.moveaxis(hessian, -1, 1)).logabsdet),
            )
        )
    else:
        right = -published_rows(publish, -right, solved)
        solutions = _plain_solutions(group, ratings, problem, gram, right)
    if factors is None and (cell := _cell(problem)):
        solutions = np.rint(solutions / cell) * cell
    group.rows(ratings.side)[solved] = within(solutions, limit)[solved]


def _solved_rows(ratings: SideRatings, problem: RowProblem) -> NDArray[np.intp]:
    """The rows that are solved: those with ratings if `per_rating`, else all."""
    return np.flatnonzero((np.diff(ratings.rows.starts) > 0) | (not problem.per_rating))


def _weights(group: FactorLanes, problem: RowProblem) -> Doubles:
    """(lanes,) w of each model of a group. If `per_rating`, callers multiply it by a row's number of ratings."""
    return group.of_grid(problem.regularization, np.float64)[: group.lanes]


def _cell(problem: RowProblem) -> float:
    """The cell width of the grid for solutions of noisy problems in a ball; 0 if there is no ball."""
    return float(grid_of(np.array([problem.ball]))[0]) if problem.ball < math.inf else 0.0


def ridge_within(gram: Doubles, right: Doubles, ridge: Doubles, ball: float) -> Doubles:
    """(…, d) the minimisers of pᵀ·gram·p − 2·right·p + ridge·‖p‖² within ‖p‖ ≤ ball, by bisection of the multipliers.

    gram (…, d, d), right (…, d), ridge (…)
    """
    values, vectors = np.linalg.eigh(gram)
    rotated = np.einsum("...ji,...j->...i", vectors, right)

    def solution(multiplier: Doubles) -> Doubles:
        scaled = rotated / (values + (ridge + multiplier)[..., None])
        return np.asarray(np.einsum("...ij,...j->...i", vectors, scaled))

    low, high = np.zeros(ridge.shape), np.linalg.norm(right, axis=-1) / ball
    inside = np.linalg.norm(solution(low), axis=-1) <= ball
    if inside.all():
        return solution(low)
    for _ in range(100):
        middle = (low + high) / 2
        short = np.linalg.norm(solution(middle), axis=-1) <= ball
        low, high = np.where(short, low, middle), np.where(short, middle, high)
    return solution(np.where(inside, 0.0, high))


@noisy_kernel(_plain_solve_perturbed)
def solve_perturbed(
    group: FactorLanes,
    noise: LaneNoise | None,
    ratings: SideRatings,
    problem: RowProblem,
    limit: float = math.inf,
    factors: Doubles | None = None,
) -> None:
    """Solves every row's problem with b = noise, the other side fixed, then projects to ‖p‖₂ ≤ limit, in place.

    The release is −Σ r̃·q + b. A solution in a ball is rounded to the grid of the ball's radius (`privacy.grid`).
    Without noise, it is `solve_rows`. With `factors`, b is 0, and p_r ← factors[r]·(p/factors[r] + noise). A row that
    is not solved stays, and gets no noise.

    noise    unit (rows, d)
    factors  (rows,) multipliers of the scale of each row's noise, public
    """
    kind = np.float32 if noise is None else np.float64
    nothing: NDArray[Any] = np.empty(0, kind)
    solving = Solving(
        group.of_grid(problem.regularization, kind),
        problem.per_rating,
        np.float32(problem.bound),
        kind(problem.ball),
        nothing if factors is None else factors,
        0.0 if noise is None else _cell(problem),
        kind(limit),
    )
    noisy = unit_and_lanes(noise, group.width)
    _solve(ratings.rows, *group.own_and_other(ratings.side), solving, *noisy, *group.shapes(kind))


solve_rows = without_noise(solve_perturbed)
"""(models, ratings, problem): solves every row's problem without noise, in place."""


_ROWS: dict[str, Any] = {
    "starts": [0, 5, 5, 8],
    "regularization": lambda s: np.linspace(0.1, 0.5, s.w),
    "per_rating": True,
    "cell": 2.0**-20,
}
"""Arguments of the examples."""


@compiled(
    example(row_factors=[], ball=0.5, **_ROWS),
    example(row_factors=np.linspace(0.5, 1, USERS), ball=np.inf, **_ROWS),
)
def _solve(ratings, P, Q, solving, unit, noise, factors_of, width_of, part_of, tile_of):
    """Solves rows of P given Q, in the number type of `solving`, which is float64 with noise.

    `sums` holds the lower triangle of Σ q·qᵀ row by row, then Σ r̃·q as one more row. Each part of the lanes has a
    stretch of `sums` of its own, so that it is summed and solved in the nearest cache. `block` holds the targets and
    factors of up to BLOCK ratings, which are added to `tiles` one after the other.
    """
    starts, others, values = ratings
    regularization, per_rating, bound, ball, row_factors, cell, limit = solving
    d, w, part = len(factors_of), len(width_of), zeros_like(regularization, part_of)
    row, wide = (d + 1) * w, zeros_like(regularization, width_of)
    few, few_kept, at_once = zeros(tile_of), zeros_like(regularization, tile_of), len(tile_of)
    low, high = splat(-bound, few), splat(bound, few)
    v, entries, triangle = len(part_of), d * (d + 3) // 2, d * (d + 1) // 2
    sums, solution = np.empty(entries * w, regularization.dtype), np.empty(d * w, regularization.dtype)
    factor, of_part = np.empty(entries * v, sums.dtype), np.empty(d * v, sums.dtype)
    last, (n, block, tiles) = len(others) - 1, tiled(sums, factors_of, width_of)
    for r in range(len(starts) - 1):
        count = starts[r + 1] - starts[r]
        if count == 0 and per_rating:
            continue
        tiles[:] = 0
        for first in range(starts[r], starts[r + 1], BLOCK):
            members = min(BLOCK, starts[r + 1] - first)
            for k in range(members):
                q_at, value = np.int64(others[first + k]) * row, splat(values[first + k], few)
                ahead = np.int64(others[min(first + k + PREFETCHED, last)]) * row
                for f in range(d + 1):
                    prefetch(Q, ahead + f * w)
                for lane in range(0, w, at_once):
                    to, own = (lane * BLOCK + k * at_once) * n, load(P, r * row + d * w + lane, few)
                    target = value - load(Q, q_at + d * w + lane, few) - own
                    store(block, to, clamp(target, low, high))
                    for f in range(d):
                        store(block, to + (f + 1) * at_once, load(Q, q_at + f * w + lane, few_kept))
            add_products(block, block, members, tiles, True, width_of, tile_of)
        collect(tiles, sums, True, factors_of, width_of, part_of, tile_of)
        if unit is not None and len(row_factors) == 0:
            for lane in range(0, w, v):
                for i in range(d):
                    store(solution, i * w + lane, load(sums, entries * lane + (triangle + i) * v, part))
            release_row(solution, -1.0, unit, r * d, noise, factors_of, width_of)
            for lane in range(0, w, v):
                for i in range(d):
                    store(sums, entries * lane + (triangle + i) * v, load(solution, i * w + lane, part))
        for lane in range(0, w, v):
            of_lanes = sums[entries * lane : entries * (lane + v)]
            ridge = load(regularization, lane, part)
            if per_rating:
                ridge = ridge * splat(count, part)
            cholesky_solve(of_lanes, ridge, factor, of_part, factors_of, part_of)
            if ball < np.inf:
                solve_in_ball(of_lanes, ridge, ball, factor, of_part, factors_of, part_of)
            for i in range(d):
                store(solution, i * w + lane, load(of_part, i * v, part))
        if unit is not None and len(row_factors) > 0:
            release_row(solution, row_factors[r], unit, r * d, noise, factors_of, width_of)
        elif cell > 0:
            for i in range(d):
                value = rint(load(solution, i * w, wide) * splat(1 / cell, wide))
                store(solution, i * w, value * splat(cell, wide))
        store_within(P, r * row, solution, limit, factors_of, width_of)


@compiled()
def tiled(sums, factors_of, width_of):
    """`n`, a block of zeros for BLOCK members of n vectors, a multiple of `TILE`, and room for its tiles."""
    w, n = len(width_of), (len(factors_of) + TILE) // TILE * TILE
    return n, np.zeros(BLOCK * n * w, sums.dtype), np.empty(n * (n + TILE) // 2 * w, sums.dtype)


@compiled()
def add_products(weighted, block, members, tiles, with_gram, width_of, tile_of):
    """Adds the products of the rows of `weighted` with the rows of `block` to `tiles`, for each member of a block.

    A member has vectors of lanes: its target, its factors, and zeros. `weighted` holds the factors times
    weights, and is `block` itself if all weights are 1. Each register of lanes has a stretch of these of its own, for
    the nearest cache, and one of `tiles`: the 3 × 3 tiles on and below the diagonal, row by row. Without `with_gram`,
    only the products with targets count.
    """
    w, v, part = len(width_of), len(tile_of), zeros_like(tiles, tile_of)
    n = len(block) // (BLOCK * w)
    for lane in range(0, w, v):
        t, first = len(tiles) // w * lane, len(block) // w * lane
        for i in range(0, n, TILE):
            for j in range(0, i + 1 if with_gram else 1, TILE):
                s0, s1, s2 = load(tiles, t, part), load(tiles, t + v, part), load(tiles, t + 2 * v, part)
                u = t + 3 * v
                s3, s4, s5 = load(tiles, u, part), load(tiles, u + v, part), load(tiles, u + 2 * v, part)
                u = t + 6 * v
                s6, s7, s8 = load(tiles, u, part), load(tiles, u + v, part), load(tiles, u + 2 * v, part)
                for k in range(members):
                    a, b = first + (k * n + i) * v, first + (k * n + j) * v
                    b0, b1, b2 = load(block, b, part), load(block, b + v, part), load(block, b + 2 * v, part)
                    a0 = load(weighted, a, part)
                    s0, s1, s2 = fma(a0, b0, s0), fma(a0, b1, s1), fma(a0, b2, s2)
                    a0 = load(weighted, a + v, part)
                    s3, s4, s5 = fma(a0, b0, s3), fma(a0, b1, s4), fma(a0, b2, s5)
                    a0 = load(weighted, a + 2 * v, part)
                    s6, s7, s8 = fma(a0, b0, s6), fma(a0, b1, s7), fma(a0, b2, s8)
                for place, s in enumerate((s0, s1, s2, s3, s4, s5, s6, s7, s8)):
                    store(tiles, t + place * v, s)
                t += TILE * TILE * v if with_gram else (i // TILE + 1) * TILE * TILE * v


@compiled()
def collect(tiles, sums, with_gram, factors_of, width_of, part_of, tile_of):
    """Sets `sums` to what is summed in `tiles`: for each part, a triangle row by row, then the sums of targets."""
    d, w, z, v, few = len(factors_of), len(width_of), len(part_of), len(tile_of), zeros_like(tiles, tile_of)
    for lane in range(0, w, v):
        to, t = len(sums) // w * (lane // z * z) + lane % z, len(tiles) // w * lane
        right = to + (len(sums) // w - d) * z
        for i in range(1, d + 1):
            row = t + (i // TILE * (i // TILE + 1) // 2 * TILE + i % TILE) * TILE * v
            store(sums, right + (i - 1) * z, load(tiles, row, few))
            for j in range(1, i + 1 if with_gram else 1):
                store(sums, to, load(tiles, row + (j // TILE * TILE * TILE + j % TILE) * v, few))
                to += z


MOST_ITERATIONS = 50
"""Limit of Newton's iterations in `solve_in_ball`. About five suffice, but rounding may keep them from ending."""


# A system is (A + ridge·I)p = b. Its flat array `sums` holds the lower triangle of A row by row, then b as one more
# row, with a vector of lanes for each entry. The arrays of a call are all float32 or all float64.
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
