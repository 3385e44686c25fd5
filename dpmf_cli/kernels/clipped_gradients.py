"""Batch gradients of a factorisation for all models of a grid, clipped by rating or by user.

Clipped by rating, a rating's error e is float32, and e·q and e·p are exact in float64. So a sum of n of them is
off by at most n·2⁻⁵³·Σ|terms|, which is at most n²·2⁻⁵³·C. For 10⁵ ratings of one row that is 10⁻⁶ of C.
`privacy.grid.MARGIN` has room for it. Clipped by user, what one user adds to the gradients of the item factors has
a bounded L2 norm.
"""

from typing import NamedTuple

import numpy as np

from dpmf_cli.core.arrays import Doubles, Floats, Longs
from dpmf_cli.core.compiled.decorator import compiled
from dpmf_cli.core.compiled.lane_groups import of_all_groups, on_each_group
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.examples import ITEMS, USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.kernels.lane_math import below, cast, clamp, fma, sqrt
from dpmf_cli.kernels.lanes import doubles, load, plain_dot, splat, store, zeros
from dpmf_cli.kernels.releasing import GUARD, release_row, store_within, unit_and_lanes, within
from dpmf_cli.kernels.sums import Columns
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Publish, noisy_kernel

LEAST_LENGTH = np.float32(1e-12)
"""Added to ‖p‖ + ‖q‖, which may be 0."""


class BatchStep(NamedTuple):
    """The parameters of one step of `step_batch`: γ, λ, B, C, and the limits of ‖p_u‖₂ and ‖q_i‖₂."""

    learning_rate: float
    regularization: float
    bound: float
    clip: float
    user_limit: float = np.inf
    item_limit: float = np.inf


def _plain_step(group: FactorLanes, publish: Publish, train: Ratings, step: BatchStep) -> None:
    """The plain twin. It measures the sums Σ e·q of all users, then Σ e·p of all items."""
    users, items, n_users = train.users, train.items, train.n_users
    p, q = group.rows("users")[users], group.rows("items")[items]
    bound, residuals = np.float32(step.bound), train.values[:, None] - group.effects(users, items)
    error = np.clip(residuals, -bound, bound)
    for f in range(group.factors):
        error -= p[:, f] * q[:, f]
    by_factor = (np.moveaxis(group.rows(side), 1, 0) for side in ("users", "items"))
    of_users, of_items = (np.sqrt(plain_dot(rows, rows)) for rows in by_factor)
    lengths = of_users[users] + of_items[items]
    most = np.float32(GUARD * np.float32(step.clip)) / (lengths + LEAST_LENGTH)
    error = np.clip(error, -most, most).astype(np.float64)[:, None]
    sums = np.zeros((n_users + train.n_items, group.factors, group.lanes))
    np.add.at(sums, users, error * q)
    np.add.at(sums, n_users + items, error * p)
    noisy, keep = step.learning_rate * publish(sums), 1 - step.learning_rate * step.regularization
    for side, moves, limit in (
        (group.rows("users"), noisy[:n_users], step.user_limit),
        (group.rows("items"), noisy[n_users:], step.item_limit),
    ):
        side[:] = within(keep * side.astype(np.float64) + moves, limit)


@noisy_kernel(_plain_step)
def step_batch(group: FactorLanes, noise: LaneNoise, train: Ratings, step: BatchStep) -> None:
    """Takes one step of batch gradient descent, in place. Ratings in the same order give the same bytes.

        e   = clamp(r_ui − IAvg(i) − UAvg(u), ±bound) − p_u·q_i,  clamped to ±C/(‖p_u‖ + ‖q_i‖)
        p_u ← (1 − γλ)·p_u + γ·(Σ_i e·q_i + noise),   q_i ← (1 − γλ)·q_i + γ·(Σ_u e·p_u + noise),   both from the old
        factors, then projected to ‖p_u‖₂ ≤ user_limit and ‖q_i‖₂ ≤ item_limit

    So ‖e·q_i‖ + ‖e·p_u‖ ≤ C: no rating moves the two sums by more than C. noise: unit (n_users + n_items, d)
    """
    noisy = unit_and_lanes(noise, group.width)
    _step(Columns.of(train), BatchStep(*map(float, step)), *noisy, *group.arguments)


@compiled(example(unit=lambda s: numbers((USERS + ITEMS) * s.d), regularization=1.0))
def _step(ratings, step, unit, noise, P, Q, factors_of, width_of):
    users, items, values, _ = ratings
    d, w = len(factors_of), len(width_of)
    row, like, wide = (d + 1) * w, zeros(width_of), doubles(width_of)
    low, high = splat(-np.float32(step.bound), like), splat(np.float32(step.bound), like)
    limit, tiny = splat(GUARD * np.float32(step.clip), like), splat(LEAST_LENGTH, like)
    to_P, to_Q = np.zeros(len(P) // row * d * w), np.zeros(len(Q) // row * d * w)
    of_P, of_Q = _lengths(P, factors_of, width_of), _lengths(Q, factors_of, width_of)
    for x in range(len(values)):
        u, i = np.int64(users[x]), np.int64(items[x])
        p_at, q_at = u * row, i * row
        residual = splat(values[x], like) - (load(Q, q_at + d * w, like) + load(P, p_at + d * w, like))
        error = clamp(residual, low, high)
        for f in range(d):
            error = error - load(P, p_at + f * w, like) * load(Q, q_at + f * w, like)
        most = limit / (load(of_P, u * w, like) + load(of_Q, i * w, like) + tiny)
        move = cast(clamp(error, like - most, most), wide)
        for f in range(d):
            p, q = load(P, p_at + f * w, wide), load(Q, q_at + f * w, wide)
            p_to, q_to = (u * d + f) * w, (i * d + f) * w
            store(to_P, p_to, fma(move, q, load(to_P, p_to, wide)))
            store(to_Q, q_to, fma(move, p, load(to_Q, q_to, wide)))
    n_users = len(P) // row
    _release(P, to_P, unit[: n_users * d], noise, step, step.user_limit, factors_of, width_of)
    _release(Q, to_Q, unit[n_users * d :], noise, step, step.item_limit, factors_of, width_of)


@compiled()
def _release(P, sums, unit, noise, step, limit, factors_of, width_of):
    """Sets P ← (1 − γλ)·P + γ·(released sums), then projects each row to the L2 norm `limit`."""
    rate, keep = step.learning_rate, 1 - step.learning_rate * step.regularization
    d, w = len(factors_of), len(width_of)
    wide = doubles(width_of)
    for r in range(len(unit) // d):
        at, moved = r * (d + 1) * w, sums[r * d * w : (r + 1) * d * w]
        release_row(moved, 1.0, unit, r * d, noise, factors_of, width_of)
        for f in range(d):
            kept = splat(keep, wide) * load(P, at + f * w, wide)
            store(moved, f * w, fma(splat(rate, wide), load(moved, f * w, wide), kept))
        store_within(P, at, moved, limit, factors_of, width_of)


@compiled()
def _lengths(P, factors_of, width_of):
    """Returns the L2 norms of the rows of P, one vector of lanes for each row."""
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    lengths = np.empty(len(P) // row * w, np.float32)
    for r in range(len(P) // row):
        square = like
        for f in range(d):
            x = load(P, r * row + f * w, like)
            square = fma(x, x, square)
        store(lengths, r * w, sqrt(square))
    return lengths


@of_all_groups
def clipped_item_gradients(group: FactorLanes, train: Ratings, sampled: Longs, clip: float) -> Doubles:
    """(n_items, d, E) Σ_u g_u·min(1, C/‖g_u‖) over the `sampled` users.

    Row i of g_u is e_ui·p_u, where e_ui is the prediction's error. A user whose ‖g_u‖ is not finite adds nothing.

    Everything is in double precision: a user's part is at most C·(1 + 10⁻¹²), and sums are rounded by parts in 10¹⁶.
    In single precision one more user changes how the parts of all others are rounded, and moves sums by more than C.
    """
    own = group.padded("users")[:, :-1].astype(np.float64)
    return _clipped_sums(group, own, train, sampled, np.ones(train.n_users), clip)[0]


@of_all_groups
def clipped_item_sums(
    group: FactorLanes, directions: Doubles, train: Ratings, weights: Doubles, clip: Doubles
) -> tuple[Doubles, Doubles]:
    """(n_items, D, E) Σ_u g_u·min(1, C/‖g_u‖) over all users, and (n_users, E) each user's factor min(1, C/‖g_u‖).

    Row i of g_u is w_u·e_ui·z_u, where e_ui is the prediction's error. The factor is 0 for users without ratings, and
    for users whose ‖g_u‖ is not finite.

    directions  (n_users, D, E) z; weights (n_users,) w; clip (E,) C. Precision as in `clipped_item_gradients`
    """
    along, everybody = group.of_grid(directions, np.float64), np.arange(train.n_users)
    sums, left = _clipped_sums(group, along, train, everybody, weights, clip)
    return sums, np.where(train.user_counts[:, None] > 0, left, 0.0)


def _clipped_sums(
    group: FactorLanes, along: Floats, train: Ratings, sampled: Longs, weights: Doubles, clip: float | Doubles
) -> tuple[Doubles, Doubles]:
    """(n_items, D, lanes) the sums of one group of models, and (n_users, lanes) the factors of the sampled users.

    along  (n_users, D, width) the directions
    """
    sums = np.zeros((train.n_items, along.shape[1], group.width))
    left, most = np.zeros((train.n_users, group.width)), group.of_grid(clip, np.float64)
    flat = along.ravel(), weights, most, sums.reshape(-1), left.reshape(-1)
    _add_clipped(sampled, Columns.of(train), *flat, *group.arguments)
    return sums[..., : group.lanes], left[:, : group.lanes]


@on_each_group
def descend_items(group: FactorLanes, gradients: Doubles, rates: Doubles, ridge: float) -> None:
    """Sets Q ← Q + η(gradients − w·Q), in place; gradients (n_items, d, E), rates (E,) η, ridge w."""
    rows = group.rows("items")
    own = rows.astype(np.float64)
    rows[:] = own + rates[group.part] * (gradients[..., group.part] - ridge * own)


@compiled(
    example(
        sampled=[0, 1, 3],
        directions=lambda s: numbers(USERS * 3 * s.w),
        weights=np.linspace(0.5, 1, USERS),
        clip=lambda s: np.linspace(0.1, 1, s.w),
        sums=lambda s: np.zeros(ITEMS * 3 * s.w),
        left=lambda s: np.zeros(USERS * s.w),
    )
)
def _add_clipped(sampled, ratings, directions, weights, clip, sums, left, P, Q, factors_of, width_of):
    _, items, values, starts = ratings
    d, w, wide = len(factors_of), len(width_of), doubles(width_of)
    row, count, endless = (d + 1) * w, len(directions) // max(len(left), 1), splat(np.inf, wide)
    most, one = load(clip, 0, wide), splat(1.0, wide)
    errors = np.empty((np.diff(starts).max() if len(starts) > 1 else 0) * w)
    for u in sampled:
        length, squares, first, p_at = wide, wide, starts[u], u * row
        for f in range(count):
            along = load(directions, (u * count + f) * w, wide)
            length = length + along * along
        for x in range(first, starts[u + 1]):
            q_at = np.int64(items[x]) * row
            error = splat(values[x], wide) - load(Q, q_at + d * w, wide) - load(P, p_at + d * w, wide)
            for at in range(0, d * w, w):
                error = error - load(P, p_at + at, wide) * load(Q, q_at + at, wide)
            store(errors, (x - first) * w, error)
            squares = squares + error * error
        weight = splat(weights[u], wide)
        norm = weight * sqrt(squares * length)
        # A norm that is not finite leaves nothing: the presence of such a user must not show.
        kept = below(norm, endless, below(most, norm, most / norm, one), wide)
        store(left, u * w, kept)
        part = weight * kept
        for x in range(first, starts[u + 1]):
            error = part * load(errors, (x - first) * w, wide)
            for f in range(count):
                to = (np.int64(items[x]) * count + f) * w
                term = error * load(directions, (u * count + f) * w, wide)
                store(sums, to, load(sums, to, wide) + below(norm, endless, term, wide))
