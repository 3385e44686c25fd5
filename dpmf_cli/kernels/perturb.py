"""Noise on the rows of a factor matrix, and projection of rows to a ball, for all models of a grid."""

from collections.abc import Callable

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.kernels.factors import FactorLanes, Side
from dpmf_cli.kernels.lanes import any_below, below, div, fma, load, mul, splat, sqrt, store, zeros
from dpmf_cli.lane_groups import on_each_group, pad
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Publish, noisy_kernel


def _plain_perturb(side: Side) -> Callable[..., None]:
    """The twin: a row divided by its factor is what is measured."""

    def twin(group: FactorLanes, publish: Publish, rows: NDArray[np.float64], limit: float) -> None:
        own = group.rows(side)
        factor = rows[:, None, None]
        noisy = publish(own / np.where(factor > 0, factor, 1))
        own[:] = np.where(factor > 0, noisy * factor, own)
        own *= np.minimum(1, limit / np.maximum(np.linalg.norm(own, axis=1, keepdims=True), 1e-30))

    return twin


@noisy_kernel(_plain_perturb("users"))
def perturb_users(group: FactorLanes, noise: LaneNoise, rows: NDArray[np.float64], limit: float) -> None:
    """p_u ← p_u + rows[u]·noise, then projected to ‖p_u‖₂ ≤ limit, in place.

    noise  unit (n_users, d)
    rows   (n_users,) a factor of each row's scale, public; a row whose factor is 0 gets no noise
    """
    _perturb(group.users, group, noise, rows, limit)


@noisy_kernel(_plain_perturb("items"))
def perturb_items(group: FactorLanes, noise: LaneNoise, rows: NDArray[np.float64], limit: float) -> None:
    """q_i ← q_i + rows[i]·noise, then projected to ‖q_i‖₂ ≤ limit, in place; arguments as in `perturb_users`."""
    _perturb(group.items, group, noise, rows, limit)


@on_each_group
def project_users(group: FactorLanes, limit: float) -> None:
    """Projects every p_u to ‖p_u‖₂ ≤ limit, in place."""
    _project(group.users, group, limit)


@on_each_group
def project_items(group: FactorLanes, limit: float) -> None:
    """Projects every q_i to ‖q_i‖₂ ≤ limit, in place."""
    _project(group.items, group, limit)


def _perturb(
    flat: NDArray[np.float32], group: FactorLanes, noise: LaneNoise, rows: NDArray[np.float64], limit: float
) -> None:
    _perturb_rows(
        flat,
        (noise.unit * rows[:, None]).astype(np.float32).ravel(),
        pad(noise.scale, group.width),
        np.float32(limit),
        group.factors_of,
        group.width_of,
    )


def _project(flat: NDArray[np.float32], group: FactorLanes, limit: float) -> None:
    rows = len(flat) // ((group.factors + 1) * group.width)
    _perturb_rows(
        flat,
        np.zeros(rows * group.factors, np.float32),
        np.zeros(group.width, np.float32),
        np.float32(limit),
        group.factors_of,
        group.width_of,
    )


@njit(cache=True, nogil=True)
def _perturb_rows(P, unit, scale, limit, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    like = zeros(width_of)
    scales = load(scale, 0, like)
    for r in range(len(unit) // d):
        at = r * (d + 1) * w
        for f in range(d):
            noisy = fma(splat(unit[r * d + f], like), scales, load(P, at + f * w, like))
            store(P, at + f * w, noisy)
        project(P, at, limit, factors_of, width_of)


@njit(cache=True, nogil=True)
def project(P, at, limit, factors_of, width_of):
    """Scales the row at `at` down to the L2 norm `limit`, in the lanes where it is longer."""
    d, w = len(factors_of), len(width_of)
    like = zeros(width_of)
    square = zeros(width_of)
    for f in range(d):
        x = load(P, at + f * w, like)
        square = fma(x, x, square)
    longest = splat(limit * limit, like)
    if any_below(longest, square):
        one = splat(np.float32(1), like)
        shrink = below(longest, square, div(splat(limit, like), sqrt(square)), one)
        for f in range(d):
            store(P, at + f * w, mul(load(P, at + f * w, like), shrink))
