"""Noise on the rows of a factor matrix, and projection of rows to a ball, for all models of a grid."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.examples import USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes, Side
from dpmf_cli.kernels.lanes import (
    any_below,
    below,
    cast,
    div,
    fma,
    load,
    mul,
    splat,
    sqrt,
    store,
    widen,
    zeros,
    zeros_like,
)
from dpmf_cli.kernels.releasing import noise_lanes, release_row
from dpmf_cli.lane_groups import on_each_group
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Publish, noisy_kernel


def _plain_perturb(side: Side) -> Callable[..., None]:
    """Returns the plain twin. It measures the rows of a side."""

    def twin(group: FactorLanes, publish: Publish, limit: float) -> None:
        own = group.rows(side)
        own[:] = within(publish(own), limit)

    return twin


@noisy_kernel(_plain_perturb("users"))
def perturb_users(group: FactorLanes, noise: LaneNoise, limit: float) -> None:
    """Sets p_u ← p_u + noise, then projects it to ‖p_u‖₂ ≤ limit, in place; noise unit (n_users, d)."""
    _perturb(group.users, group, noise, limit)


@noisy_kernel(_plain_perturb("items"))
def perturb_items(group: FactorLanes, noise: LaneNoise, limit: float) -> None:
    """Sets q_i ← q_i + noise, then projects it to ‖q_i‖₂ ≤ limit, in place; noise unit (n_items, d)."""
    _perturb(group.items, group, noise, limit)


@on_each_group
def project_users(group: FactorLanes, limit: float) -> None:
    """Projects every p_u to ‖p_u‖₂ ≤ limit, in place."""
    _project_rows(group.users, np.float32(limit), group.factors_of, group.width_of)


@on_each_group
def project_items(group: FactorLanes, limit: float) -> None:
    """Projects every q_i to ‖q_i‖₂ ≤ limit, in place."""
    _project_rows(group.items, np.float32(limit), group.factors_of, group.width_of)


def within(rows: NDArray[np.float64], limit: float) -> NDArray[np.float64]:
    """`rows` (m, d, lanes), each projected to the L2 norm `limit`."""
    lengths = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    return np.asarray(rows * np.minimum(1, limit / lengths))


def _perturb(flat: NDArray[np.float32], group: FactorLanes, noise: LaneNoise, limit: float) -> None:
    _perturb_rows(
        flat,
        noise.unit.ravel(),
        noise_lanes(noise, group.width),
        float(limit),
        group.factors_of,
        group.width_of,
    )


@compiled(example(unit=lambda s: numbers(USERS * s.d)))
def _perturb_rows(P, unit, noise, limit, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    like, noisy = zeros(width_of), np.empty(d * w, np.float64)
    for r in range(len(unit) // d):
        at = r * (d + 1) * w
        for f in range(d):
            store(noisy, f * w, widen(load(P, at + f * w, like)))
        release_row(noisy, 1.0, unit, r * d, noise, factors_of, width_of)
        store_within(P, at, noisy, limit, factors_of, width_of)


@compiled(example())
def _project_rows(P, limit, factors_of, width_of):
    row = (len(factors_of) + 1) * len(width_of)
    for at in range(0, len(P), row):
        project(P, at, limit, factors_of, width_of)


@compiled(inline="always")
def store_within(P, at, row, limit, factors_of, width_of):
    """Projects `row`, d vectors of float32 or float64, to the L2 norm `limit`; stores it in P at `at`, rounded."""
    d, w = len(factors_of), len(width_of)
    project(row, 0, limit, factors_of, width_of)
    for f in range(d):
        store(P, at + f * w, cast(load(row, f * w, zeros_like(row, width_of)), zeros(width_of)))


@compiled()
def project(P, at, limit, factors_of, width_of):
    """Scales the row at `at` down to the L2 norm `limit`, in the lanes where it is longer; P float32 or float64."""
    d, w = len(factors_of), len(width_of)
    like = zeros_like(P, width_of)
    square = like
    for f in range(d):
        x = load(P, at + f * w, like)
        square = fma(x, x, square)
    longest = splat(limit * limit, like)
    if any_below(longest, square):
        one = splat(1.0, like)
        shrink = below(longest, square, div(splat(limit, like), sqrt(square)), one)
        for f in range(d):
            store(P, at + f * w, mul(load(P, at + f * w, like), shrink))
