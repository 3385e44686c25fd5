"""Alternating least squares over lanes: normal equations and Cholesky factors of all models side by side."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.kernels.cholesky import add_to_diagonal, cholesky_solve, solve_in_ball
from dpmf_cli.kernels.factors import FactorLanes, Side
from dpmf_cli.kernels.lanes import (
    clamp,
    fma,
    load,
    mul,
    prefetch,
    splat,
    store,
    sub,
    zeros,
)
from dpmf_cli.kernels.order import item_major
from dpmf_cli.lane_groups import on_each_group, pad
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Publish, noisy_kernel
from dpmf_cli.ratings import Ratings

PREFETCHED = 4
"""How many ratings ahead a row of the other side is asked for: rows of 10⁵ users are in no near cache."""


@dataclass(frozen=True)
class RowProblem:
    """What is minimised for each row (a user, items fixed; or an item, users fixed):

        Σ (r̃ − p·q)² + w·‖p‖² + 2·b·p,   ‖p‖₂ ≤ ball,   r̃ = clamp(r − averages, [−bound, bound])

    with w = `regularization` times the row's number of ratings if `per_rating`, else `regularization` itself (every
    row is then solved, also without ratings); an array (E,) has one for each model of the grid. b = 0, or noise.
    Zhou et al. 2008 (ALS-WR); Friedman et al. 2016, equations 12 and 13; Chaudhuri et al. 2011 for b.
    """

    regularization: float | NDArray[np.float64]
    bound: float
    per_rating: bool = True
    ball: float = math.inf

    def weights(self, group: FactorLanes) -> NDArray[np.floating]:
        """(lanes,) w of each model of a group, times a row's number of ratings if `per_rating`."""
        ridge = self.regularization
        return ridge[group.part] if isinstance(ridge, np.ndarray) else np.full(group.lanes, ridge)


@dataclass(frozen=True)
class SideRatings:
    """The ratings of one side's rows, one row after the other.

    starts (rows + 1,); others (n_ratings,) the row of the other side; values (n_ratings,) rating scale
    """

    starts: NDArray[np.int64]
    others: NDArray[np.int32]
    values: NDArray[np.float32]


def by_user(train: Ratings) -> SideRatings:
    """What `solve_users` visits."""
    return SideRatings(train.user_starts, train.items, train.values)


def by_item(train: Ratings) -> SideRatings:
    """What `solve_items` visits."""
    return SideRatings(*item_major(train))


@on_each_group
def solve_users(group: FactorLanes, ratings: SideRatings, problem: RowProblem) -> None:
    """Solves every user's problem without noise, items fixed, in place; ratings by user."""
    _solve_side(group, "users", None, ratings, problem)


@on_each_group
def solve_items(group: FactorLanes, ratings: SideRatings, problem: RowProblem) -> None:
    """Solves every item's problem without noise, users fixed, in place; ratings by item."""
    _solve_side(group, "items", None, ratings, problem)


def _plain_solve(side: Side) -> Callable[..., None]:
    """The twin: the vectors −Σ r̃·q of a side's normal equations are what is measured."""

    def twin(group: FactorLanes, publish: Publish, ratings: SideRatings, problem: RowProblem) -> None:
        effects = [
            flat.reshape(-1, group.factors + 1, group.width)[:, -1, : group.lanes]
            for flat in (group.users, group.items)
        ]
        own, other = group.rows(side), group.rows("items" if side == "users" else "users")
        of_own, of_other = effects if side == "users" else effects[::-1]
        rows, counts = len(own), np.diff(ratings.starts)
        row_of = np.repeat(np.arange(rows), counts)
        targets = ratings.values[:, None] - of_other[ratings.others] - of_own[row_of]
        targets = np.clip(targets, -problem.bound, problem.bound)
        q = other[ratings.others].astype(np.float64)
        right, gram = np.zeros(own.shape), np.zeros((rows, group.factors, *own.shape[1:]))
        np.add.at(right, row_of, targets[:, None] * q)
        np.add.at(gram, row_of, q[:, :, None] * q[:, None])
        right = -publish(-right)
        for row, count in enumerate(counts):
            if count == 0 and problem.per_rating:
                continue
            ridge = problem.weights(group) * (count if problem.per_rating else 1)
            for lane in range(group.lanes):
                own[row, :, lane] = ridge_within(
                    gram[row, ..., lane], right[row, :, lane], ridge[lane], problem.ball
                )

    return twin


def ridge_within(
    gram: NDArray[np.float64], right: NDArray[np.float64], ridge: float, ball: float
) -> NDArray[np.float64]:
    """(d,) the minimiser of pᵀ·gram·p − 2·right·p + ridge·‖p‖² within ‖p‖ ≤ ball, by bisection of its multiplier."""
    values, vectors = np.linalg.eigh(gram)
    rotated = vectors.T @ right

    def solution(multiplier: float) -> NDArray[np.float64]:
        return np.asarray(vectors @ (rotated / (values + ridge + multiplier)))

    if np.linalg.norm(solution(0.0)) <= ball:
        return solution(0.0)
    low, high = 0.0, float(np.linalg.norm(right)) / ball
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (low, middle) if np.linalg.norm(solution(middle)) <= ball else (middle, high)
    return solution(high)


@noisy_kernel(_plain_solve("users"))
def solve_perturbed_users(
    group: FactorLanes, noise: LaneNoise, ratings: SideRatings, problem: RowProblem
) -> None:
    """Solves every user's problem with b = noise, items fixed, in place; noise unit (n_users, d), ratings by user."""
    _solve_side(group, "users", noise, ratings, problem)


@noisy_kernel(_plain_solve("items"))
def solve_perturbed_items(
    group: FactorLanes, noise: LaneNoise, ratings: SideRatings, problem: RowProblem
) -> None:
    """Solves every item's problem with b = noise, users fixed, in place; noise unit (n_items, d), ratings by item."""
    _solve_side(group, "items", noise, ratings, problem)


def _solve_side(
    group: FactorLanes,
    side: Side,
    noise: LaneNoise | None,
    ratings: SideRatings,
    problem: RowProblem,
) -> None:
    own, other = group.own_and_other(side)
    unit, scale = np.empty(0, np.float32), np.zeros(group.width, np.float32)
    if noise is not None:
        unit, scale = noise.unit.astype(np.float32).ravel(), pad(noise.scale, group.width)
    _solve(
        ratings.starts,
        ratings.others,
        ratings.values,
        own,
        other,
        pad(problem.weights(group), group.width),
        problem.per_rating,
        np.float32(problem.bound),
        np.float32(problem.ball),
        unit,
        scale,
        group.factors_of,
        group.width_of,
    )


@njit(cache=True, nogil=True)
def _solve(
    starts,
    others,
    values,
    P,
    Q,
    regularization,
    per_rating,
    bound,
    ball,
    unit,
    scale,
    factors_of,
    width_of,
):
    """Rows of P given Q. `gram` holds the lower triangle of Σ q·qᵀ + w·I row by row, `right` holds Σ r̃·q − b."""
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    low, high = splat(-bound, like), splat(bound, like)
    scales, weights = load(scale, 0, like), load(regularization, 0, like)
    gram, right = np.empty(d * (d + 1) // 2 * w, np.float32), np.empty(d * w, np.float32)
    factor, solution = np.empty_like(gram), np.empty_like(right)
    last = len(others) - 1
    for r in range(len(starts) - 1):
        count = starts[r + 1] - starts[r]
        if count == 0 and per_rating:
            continue
        gram[:] = 0
        right[:] = 0
        own = load(P, r * row + d * w, like)
        for x in range(starts[r], starts[r + 1]):
            q_at = np.int64(others[x]) * row
            ahead = np.int64(others[min(x + PREFETCHED, last)]) * row
            for f in range(d + 1):
                prefetch(Q, ahead + f * w)
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
        if len(unit) > 0:
            for i in range(d):
                noise = mul(splat(unit[r * d + i], like), scales)
                store(right, i * w, sub(load(right, i * w, like), noise))
        ridge = mul(weights, splat(np.float32(count), like)) if per_rating else weights
        factor[:] = gram
        solution[:] = right
        add_to_diagonal(factor, ridge, factors_of, width_of)
        cholesky_solve(factor, solution, factors_of, width_of)
        if ball < np.inf:
            solve_in_ball(gram, right, factor, solution, ridge, ball, factors_of, width_of)
        for i in range(d):
            store(P, r * row + i * w, load(solution, i * w, like))
