"""Mini-batch gradient descent of a factorisation, each model of a grid on its own sample of the ratings.

Bit e of a rating says whether model e of a group has the rating. The rating's gradient is multiplied by 1 or by 0,
and 0 adds nothing to a sum. So a model's factors are those of a fit on its own sample alone, to the bit.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.compiled.decorator import compiled
from dpmf_cli.core.compiled.lane_groups import MAXIMUM_WIDTH, groups, on_each_group
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.examples import USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes, FactorModel, Side, predicted
from dpmf_cli.kernels.lanes import (
    cast,
    doubles,
    fma,
    lanes_where,
    load,
    plain_fma,
    prefetch,
    splat,
    store,
    zeros,
)
from dpmf_cli.kernels.releasing import released, unit_and_lanes
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Publish, noisy_kernel

FLOATS_OF_LINE = 16
"""How many float32 a cache line has."""


@dataclass(frozen=True)
class SampledVisits:
    """Ratings in the order in which gradients are summed.

    users, items (n,) int32; values (n,) float32
    bits  for each group of models (n,) uint16, bit e set where model e of the group has the rating
    """

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    values: NDArray[np.float32]
    bits: Sequence[NDArray[np.uint16]]


def sample_bits(kept: NDArray[np.bool_]) -> tuple[NDArray[np.uint16], ...]:
    """Returns the bits of visits; `kept` (n, E) says which model has which rating."""

    def of(mine: NDArray[np.bool_]) -> NDArray[np.uint16]:
        return np.asarray((mine * (1 << np.arange(mine.shape[1]))).sum(axis=1).astype(np.uint16))

    return tuple(of(kept[:, part]) for part in groups(kept.shape[1]))


def visits_of_all(train: Ratings, grid: int) -> SampledVisits:
    """Returns visits of every rating, for `grid` models that all have every rating."""
    every = np.full(len(train), np.iinfo(np.uint16).max, np.uint16)
    return SampledVisits(train.users, train.items, train.values, (every,) * len(groups(grid)))


@dataclass(frozen=True)
class DescentLanes(FactorLanes):
    """One group of models, with sums of gradients since each model's last step.

    The sums are Σ e·v for every user and Σ e·u for every item, with e = r − effects − u·v.

    sums, speeds  laid out like the factors of their side. A speed is the previous step; it is empty without momentum
    """

    momentum: np.float32
    sums: dict[Side, NDArray[np.float32]]
    speeds: dict[Side, NDArray[np.float32]]

    def rows_of(self, flat: NDArray[np.float32]) -> NDArray[np.float32]:
        """(rows, d, lanes) a view of sums or speeds."""
        return flat.reshape(-1, self.factors + 1, self.width)[:, :-1, : self.lanes]


class Descent:
    """The descent of all models of a grid. It changes their factors in place.

    momentum  how much of the previous step is added to a step
    """

    def __init__(self, model: FactorModel, momentum: float) -> None:
        def of(group: FactorLanes) -> DescentLanes:
            sides: dict[Side, NDArray[np.float32]] = {"users": group.users, "items": group.items}
            sums = {side: np.zeros_like(flat) for side, flat in sides.items()}
            speeds = {side: np.zeros_like(flat if momentum else flat[:0]) for side, flat in sides.items()}
            return DescentLanes(**vars(group), momentum=np.float32(momentum), sums=sums, speeds=speeds)

        self.groups = [of(group) for group in model.groups]


@on_each_group
def sum_gradients(
    group: DescentLanes, visits: SampledVisits, first: int, last: int, *, of_users: bool = True
) -> None:
    """Adds e·u to the items' sums, and e·v to the users' if `of_users`, over the visits [first, last)."""
    bits = visits.bits[group.part.start // MAXIMUM_WIDTH]
    ratings = (each[first:last] for each in (visits.users, visits.items, visits.values, bits))
    _add_gradients(*ratings, group.sums["users"], group.sums["items"], of_users, *group.arguments)


def _plain_step(
    group: DescentLanes, publish: Publish, side: Side, rates: NDArray[np.floating], regularization: float
) -> None:
    """The plain twin. It measures the gradients −Σ e·v of a side's rows, in models that step."""
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
    group: DescentLanes,
    noise: LaneNoise | None,
    side: Side,
    rates: NDArray[np.floating],
    regularization: float,
) -> None:
    """Sets u ← u − rate·(grid(−Σ e·v + noise) + λ·u), otherwise as `step_side`; noise unit (rows, d).

    Sums are float32, so no ε is provable. Only published modes use this.
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
        (own == 0).astype(np.float32),
        np.float32(regularization),
        group.momentum,
        *unit_and_lanes(noise, group.width),
        group.factors_of,
        group.width_of,
    )


@on_each_group
def step_side(group: DescentLanes, side: Side, rates: NDArray[np.floating], regularization: float) -> None:
    """Sets u ← u + rate·(Σ e·v − λ·u) in the models with a rate above 0, and resets their sums. Other models wait.

    u are the rows of the side, v those of the other. With momentum μ, a step also adds μ times the previous step.
    rates (E,)
    """
    step_noisy.run(group, None, side, rates, regularization)


@compiled(example(bits=[1, 3, 0, 65535, 255, 4, 77, 128], both=True))
def _add_gradients(users, items, values, bits, to_P, to_Q, both, P, Q, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    row, like, factors = (d + 1) * w, zeros(width_of), zeros(factors_of)
    alone, last = np.empty(1, np.float32), len(values) - 1
    for x in range(len(values)):
        if bits[x] == 0:
            continue
        p_at, q_at = np.int64(users[x]) * row, np.int64(items[x]) * row
        ahead = np.int64(items[min(x + 2, last)]) * row
        for at in range(ahead, ahead + d * w, FLOATS_OF_LINE):
            prefetch(Q, at)
            prefetch(to_Q, at)
        left = splat(values[x], like) - predicted(p_at, q_at, P, Q, factors_of, width_of)
        error = lanes_where(bits[x], like) * left
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
        waits=lambda s: np.arange(s.w) % 3 == 0,
        unit=lambda s: numbers(USERS * s.d),
    )
)
def _step_rows(P, to_P, speed, rates, waits, ridge, momentum, unit, noise, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    row, like, wide = (d + 1) * w, zeros(width_of), doubles(width_of)
    rate, wait = load(rates, 0, like), load(waits, 0, like)
    go, weight, keep = splat(np.float32(1), like) - wait, splat(-ridge, like), splat(momentum, like)
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
