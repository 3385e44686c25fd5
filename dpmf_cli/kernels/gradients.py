"""Gradients of a factorisation: of mini-batches, clipped by rating or by user, and reported by devices.

Mini-batches. Each model of a grid has its own sample of the ratings. Bit e of a rating says whether model e of a
group has the rating, whose gradient is multiplied by 1 or by 0. Because 0 adds nothing to a sum, a model's factors
are those of a fit on its own sample alone, to the bit.

Clipped by rating, a rating's error e is float32, and e·q and e·p are exact in float64, so that a sum of n of them is
off by at most n·2⁻⁵³·Σ|terms|, which is at most n²·2⁻⁵³·C. For 10⁵ ratings of one row that is 10⁻⁶ of C, for which
`privacy.grid.MARGIN` has room. Clipped by user, what one user adds to the gradients of the item factors has a bounded
L2 norm.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Doubles, Flags, Floats, Ints, Longs, Singles
from dpmf_cli.core.compiled.lane_groups import MAXIMUM_WIDTH, groups, on_each_group
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.als import SideRatings
from dpmf_cli.kernels.examples import ITEMS, USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes, FactorModel, Side, predicted
from dpmf_cli.kernels.lane_math import below, cast, clamp, fma, lanes_where, sqrt
from dpmf_cli.kernels.lanes import doubles, load, plain_dot, plain_fma, prefetch, splat, store, zeros
from dpmf_cli.kernels.releasing import (
    GUARD,
    release_row,
    released,
    store_within,
    unit_and_lanes,
    within,
    without_noise,
)
from dpmf_cli.kernels.sgd import LINE, Sgd
from dpmf_cli.kernels.sums import Columns
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Publish, noisy_kernel


@dataclass(frozen=True)
class SampledVisits:
    """Ratings in the order in which gradients are summed.

    users, items (n,) int32; values (n,) float32
    bits  for each group of models (n,) uint16, bit e set where model e of the group has the rating
    """

    users: Ints
    items: Ints
    values: Singles
    bits: Sequence[NDArray[np.uint16]]


def sample_bits(kept: Flags) -> tuple[NDArray[np.uint16], ...]:
    """The bits of visits; `kept` (n, E) says which model has which rating."""
    each = (kept[:, part] for part in groups(kept.shape[1]))
    return tuple((mine << np.arange(mine.shape[1])).sum(axis=1).astype(np.uint16) for mine in each)


def visits_of_all(train: Ratings, grid: int) -> SampledVisits:
    """Visits of every rating, for `grid` models that all have every rating."""
    every = np.full(len(train), np.iinfo(np.uint16).max, np.uint16)
    return SampledVisits(train.users, train.items, train.values, (every,) * len(groups(grid)))


@dataclass(frozen=True)
class DescentLanes(FactorLanes):
    """One group of models, with sums of gradients since each model's last step.

    The sums are Σ (e·v − ridge·u) for each user and Σ (e·u − ridge·v) for each item, with e = r − effects − u·v.

    sums, speeds  laid out like the factors of their side. A speed is the previous step; it is empty without momentum
    """

    momentum: np.float32
    sums: dict[Side, Singles]
    speeds: dict[Side, Singles]

    def rows_of(self, flat: Singles) -> Singles:
        """(rows, d, lanes) a view of sums or speeds."""
        return flat.reshape(-1, self.factors + 1, self.width)[:, :-1, : self.lanes]


class Descent:
    """The descent of all models of a grid, which changes their factors in place.

    momentum  how much of the previous step is added to a step
    """

    def __init__(self, model: FactorModel, momentum: float) -> None:
        def of(group: FactorLanes) -> DescentLanes:
            sides: dict[Side, Singles] = {"users": group.users, "items": group.items}
            sums = {side: np.zeros_like(flat) for side, flat in sides.items()}
            speeds = {side: np.zeros_like(flat if momentum else flat[:0]) for side, flat in sides.items()}
            return DescentLanes(**vars(group), momentum=np.float32(momentum), sums=sums, speeds=speeds)

        self.groups = [of(group) for group in model.groups]


@on_each_group
def sum_gradients(
    group: DescentLanes,
    visits: SampledVisits,
    first: int,
    last: int,
    *,
    of_users: bool = True,
    ridge: float = 0.0,
) -> None:
    """Adds e·u − ridge·v to the items' sums, and e·v − ridge·u to the users' if `of_users`, over the visits
    [first, last)."""
    bits = visits.bits[group.part.start // MAXIMUM_WIDTH]
    ratings = (each[first:last] for each in (visits.users, visits.items, visits.values, bits))
    sums, of_rating = group.sums, np.float32(ridge) if ridge else None
    _add_gradients(*ratings, sums["users"], sums["items"], of_users, of_rating, *group.unrolled)


def _plain_step(
    group: DescentLanes, publish: Publish, side: Side, rates: Floats, regularization: float
) -> None:
    """The Python reference, which measures the gradients −Σ e·v of a side's rows, in models that step."""
    rate = rates[group.part].astype(np.float32)
    steps = rate > 0
    if not steps.any():
        return
    own, sums = group.rows(side), group.rows_of(group.sums[side])
    noisy = publish(np.where(steps, -sums, 0)).astype(np.float32)
    slope = plain_fma(np.full_like(rate, -regularization), own, -noisy)
    moved = plain_fma(rate, slope, own)
    if group.momentum:
        speed = group.rows_of(group.speeds[side])
        move = plain_fma(rate, slope, group.momentum * speed)
        moved = own + move
        speed[:] = np.where(steps, move, speed)
    own[:] = np.where(steps, moved, own)
    sums[:] = np.where(steps, 0, sums)


@noisy_kernel(_plain_step)
def step_noisy(
    group: DescentLanes, noise: LaneNoise | None, side: Side, rates: Floats, regularization: float
) -> None:
    """Sets u ← u − rate·(grid(−Σ e·v + noise) + λ·u) in models with a rate above 0, and resets their sums.

    u are the rows of the side, v those of the other. With momentum μ, a step also adds μ times the previous step.
    Other models wait. Because sums are float32, no ε is provable, and only published modes use noise here.

    noise unit (rows, d); rates (E,)
    """
    own = np.zeros(group.width, np.float32)  # unused lanes wait
    own[: group.lanes] = rates[group.part]
    if not own.any():
        return
    _step_rows(
        group.own_and_other(side)[0],
        group.sums[side],
        group.speeds[side],
        own,
        np.float32(regularization),
        group.momentum,
        *unit_and_lanes(noise, group.width),
        group.factors_of,
        group.width_of,
    )


step_side = without_noise(step_noisy)
"""(models, side, rates (E,), regularization): u ← u + rate·(Σ e·v − λ·u) in place, with no noise."""


@compiled(example(bits=[1, 3, 0, 65535, 255, 4, 77, 128], both=True))
def _add_gradients(users, items, values, bits, to_P, to_Q, both, ridge, P, Q, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    row, like, factors = (d + 1) * w, zeros(width_of), zeros(factors_of)
    alone, last = np.empty(1, np.float32), len(values) - 1
    for x in range(len(values)):
        if bits[x] == 0:
            continue
        p_at, q_at = np.int64(users[x]) * row, np.int64(items[x]) * row
        ahead = np.int64(items[min(x + 2, last)]) * row
        for at in range(ahead, ahead + d * w, LINE):
            prefetch(Q, at)
            prefetch(to_Q, at)
        left = splat(values[x], like) - predicted(p_at, q_at, P, Q, factors_of, width_of)
        error = lanes_where(bits[x], like) * left
        if ridge is not None:
            weight = lanes_where(bits[x], like) * splat(-ridge, like)
            for at in range(q_at, q_at + d * w, w):
                store(to_Q, at, fma(weight, load(Q, at, like), load(to_Q, at, like)))
            if both:
                for at in range(p_at, p_at + d * w, w):
                    store(to_P, at, fma(weight, load(P, at, like), load(to_P, at, like)))
        if w == 1:  # the factors of one model lie side by side; with w > 1 the models of one factor do
            store(alone, 0, error)
            each = splat(alone[0], factors)
            store(to_Q, q_at, fma(each, load(P, p_at, factors), load(to_Q, q_at, factors)))
            if both:
                store(to_P, p_at, fma(each, load(Q, q_at, factors), load(to_P, p_at, factors)))
            continue
        for f in range(d):
            at = q_at + f * w
            store(to_Q, at, fma(error, load(P, p_at + f * w, like), load(to_Q, at, like)))
        if both:
            for f in range(d):
                at = p_at + f * w
                store(to_P, at, fma(error, load(Q, q_at + f * w, like), load(to_P, at, like)))


@compiled(
    example(
        speed=lambda s: numbers(USERS * s.row),
        rates=lambda s: np.arange(s.w) % 3 / 10,
    )
)
def _step_rows(P, to_P, speed, rates, ridge, momentum, unit, noise, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    row, like, wide = (d + 1) * w, zeros(width_of), doubles(width_of)
    rate, one = load(rates, 0, like), splat(np.float32(1), like)
    wait, weight, keep = below(like, rate, like, one), splat(-ridge, like), splat(momentum, like)
    go = one - wait
    slow = fma(keep, go, wait)
    for r in range(len(P) // row):
        for f in range(d):
            at = r * row + f * w
            value, gathered = load(P, at, like), load(to_P, at, like)
            slope = gathered
            if unit is not None:
                slope = cast(released(cast(slope, wide), -unit[r * d + f], noise, wide), like)
            slope = fma(weight, value, slope)
            if len(speed) > 0:
                moved = fma(rate, slope, slow * load(speed, at, like))
                store(speed, at, moved)
                store(P, at, fma(go, moved, value))
            else:
                store(P, at, fma(rate, slope, value))
            store(to_P, at, wait * gathered)


LEAST_LENGTH = np.float32(1e-12)
"""Added to ‖p‖ + ‖q‖, which may be 0."""


def _plain_batch(group: FactorLanes, publish: Publish, train: Ratings, sgd: Sgd) -> None:
    """The Python reference, which measures the sums Σ e·q of all users, then Σ e·p of all items."""
    users, items, n_users = train.users, train.items, train.n_users
    p, q = group.rows("users")[users], group.rows("items")[items]
    bound, residuals = np.float32(sgd.bound), train.values[:, None] - group.effects(users, items)
    error = np.clip(residuals, -bound, bound)
    for f in range(group.factors):
        error -= p[:, f] * q[:, f]
    by_factor = (np.moveaxis(group.rows(side), 1, 0) for side in ("users", "items"))
    of_users, of_items = (np.sqrt(plain_dot(rows, rows)) for rows in by_factor)
    lengths = of_users[users] + of_items[items]
    most = np.float32(GUARD * np.float32(sgd.clip)) / (lengths + LEAST_LENGTH)
    error = np.clip(error, -most, most).astype(np.float64)[:, None]
    sums = np.zeros((n_users + train.n_items, group.factors, group.lanes))
    np.add.at(sums, users, error * q)
    np.add.at(sums, n_users + items, error * p)
    noisy, keep = sgd.learning_rate * publish(sums), 1 - sgd.learning_rate * sgd.regularization
    for side, moves, limit in (
        (group.rows("users"), noisy[:n_users], sgd.user_limit),
        (group.rows("items"), noisy[n_users:], sgd.item_limit),
    ):
        side[:] = within(keep * side.astype(np.float64) + moves, limit)


@noisy_kernel(_plain_batch)
def step_batch(group: FactorLanes, noise: LaneNoise, train: Ratings, sgd: Sgd) -> None:
    """Takes one step of batch gradient descent, in place. Ratings in the same order give the same bytes.

        e   = clamp(r_ui − IAvg(i) − UAvg(u), ±bound) − p_u·q_i,  clamped to ±C/(‖p_u‖ + ‖q_i‖)
        p_u ← (1 − γλ)·p_u + γ·(Σ_i e·q_i + noise),   q_i ← (1 − γλ)·q_i + γ·(Σ_u e·p_u + noise),   both from the old
        factors, then projected to ‖p_u‖₂ ≤ user_limit and ‖q_i‖₂ ≤ item_limit

    So ‖e·q_i‖ + ‖e·p_u‖ ≤ C: no rating moves the two sums by more than C. noise: unit (n_users + n_items, d)
    """
    noisy = unit_and_lanes(noise, group.width)
    _batch(Columns.of(train), sgd, *noisy, *group.arguments)


@compiled(example(unit=lambda s: numbers((USERS + ITEMS) * s.d), regularization=1.0))
def _batch(ratings, sgd, unit, noise, P, Q, factors_of, width_of):
    users, items, values, _ = ratings
    d, w = len(factors_of), len(width_of)
    row, like, wide = (d + 1) * w, zeros(width_of), doubles(width_of)
    low, high = splat(-np.float32(sgd.bound), like), splat(np.float32(sgd.bound), like)
    limit, tiny = splat(GUARD * np.float32(sgd.clip), like), splat(LEAST_LENGTH, like)
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
    _release(P, to_P, unit[: n_users * d], noise, sgd, sgd.user_limit, factors_of, width_of)
    _release(Q, to_Q, unit[n_users * d :], noise, sgd, sgd.item_limit, factors_of, width_of)


@compiled()
def _release(P, sums, unit, noise, sgd, limit, factors_of, width_of):
    """Sets P ← (1 − γλ)·P + γ·(released sums), then projects each row to the L2 norm `limit`."""
    rate, keep = sgd.learning_rate, 1 - sgd.learning_rate * sgd.regularization
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
    """The L2 norms of the rows of P, one vector of lanes for each row."""
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


@on_each_group
def clipped_item_sums(
    group: FactorLanes,
    train: Ratings,
    clip: float | Doubles,
    *,
    sampled: Longs | None = None,
    directions: Doubles | None = None,
    weights: Doubles | None = None,
) -> tuple[Doubles, Doubles]:
    """(n_items, D, E) Σ_u g_u·min(1, C/‖g_u‖) over the `sampled` users, and (n_users, E) each user's min(1, C/‖g_u‖).

    Row i of g_u is w_u·e_ui·z_u, where e_ui is the prediction's error. The factor is 0 for users without ratings, for
    users whose ‖g_u‖ is not finite, and for those not sampled.

    clip (E,) C; directions (n_users, D, E) z, else the users' factors; weights (n_users,) w, else 1

    Everything is in double precision: a user's part is at most C·(1 + 10⁻¹²), and sums are rounded by parts in 10¹⁶.
    In single precision one more user changes how the parts of all others are rounded, and moves sums by more than C.
    """
    factors = group.padded("users")[:, :-1]
    along = factors.astype(np.float64) if directions is None else group.of_grid(directions, np.float64)
    sums = np.zeros((train.n_items, along.shape[1], group.width))
    left, most = np.zeros((train.n_users, group.width)), group.of_grid(clip, np.float64)
    _add_clipped(
        np.arange(train.n_users) if sampled is None else sampled,
        Columns.of(train),
        along.ravel(),
        np.ones(train.n_users) if weights is None else weights,
        most,
        sums.reshape(-1),
        left.reshape(-1),
        *group.arguments,
    )
    left = np.where(train.user_counts[:, None] > 0, left, 0.0)
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


Indices = NDArray[np.integer]


@on_each_group
def coordinate_gradients(
    group: FactorLanes, users: Ints, items: Ints, coordinates: Indices, values: Singles, bound: float
) -> Singles:
    """(n, E) (r_ui − r̂_ui)·p_uc/bound of n ratings, where c is the coordinate of each; all in float32."""
    errors = values[:, None] - group.predict(users, items)
    return np.asarray(errors * group.rows("users")[users, coordinates] / np.float32(bound))


def sums_of_reports(
    items: Indices, coordinates: Indices, weights: Indices, reported: Singles, shape: tuple[int, int]
) -> Doubles:
    """(n_items, d, E) sums by item and coordinate of reports (n, E) times weights (n,); shape (n_items, d)."""
    places = items.astype(np.int64) * shape[1] + coordinates
    sums = [np.bincount(places, column * weights, math.prod(shape)) for column in reported.T]
    return np.stack(sums, axis=-1, dtype=np.float64).reshape(*shape, -1)


@on_each_group
def clamped_sums(group: FactorLanes, ratings: SideRatings, features: Doubles, bound: float) -> Doubles:
    """(rows, k, E) Σ clamp(r − r̂_ui, ±B)/B·z over the ratings of each row of a side; r̂ is a model's prediction.

    features  (rows of the other side, k) z

    Everything from the residual on is in double precision, so that each term is at most |z|, to the last bit.
    """
    flat, count = np.ascontiguousarray(features).ravel(), features.shape[1]
    sums, shapes = (
        np.zeros((len(ratings.rows.starts) - 1, count, group.width)),
        (group.factors_of, group.width_of),
    )
    _add_clamped(ratings.rows, flat, bound, sums.reshape(-1), *group.own_and_other(ratings.side), *shapes)
    return sums[..., : group.lanes]


@compiled(example(features=numbers(2 * ITEMS), bound=1.5, sums=lambda s: np.zeros(USERS * 2 * s.w)))
def _add_clamped(ratings, features, bound, sums, P, Q, factors_of, width_of):
    starts, others, values = ratings
    d, w, wide = len(factors_of), len(width_of), doubles(width_of)
    row, count, one = (d + 1) * w, len(sums) // w // max(len(starts) - 1, 1), splat(1.0, wide)
    for r in range(len(starts) - 1):
        for x in range(starts[r], starts[r + 1]):
            q_at = np.int64(others[x]) * row
            left = splat(values[x], wide) - load(Q, q_at + d * w, wide) - load(P, r * row + d * w, wide)
            for at in range(0, d * w, w):
                left = left - load(P, r * row + at, wide) * load(Q, q_at + at, wide)
            left = clamp(left / splat(bound, wide), wide - one, one)
            for k in range(count):
                to, z = (r * count + k) * w, splat(features[others[x] * count + k], wide)
                store(sums, to, load(sums, to, wide) + left * z)
