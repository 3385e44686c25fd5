"""Noise on the rows of a factor matrix, and projection of rows to a ball, for all models of a grid."""

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.kernels.lanes import any_below, below, div, fma, load, mul, pad, splat, sqrt, store, zeros
from dpmf_cli.privacy.noise import LaneNoise


def perturb_users(
    factors: FactorLanes, noise: LaneNoise | None, rows: NDArray[np.float64], limit: float, lanes: slice
) -> None:
    """p_u ← p_u + rows[u]·noise, then projected to ‖p_u‖₂ ≤ limit, in place; only projected without noise.

    noise  unit (n_users, d), scale of the whole grid, of which `lanes` are these models
    rows   (n_users,) a factor of each row's scale, public; a row whose factor is 0 gets no noise
    """
    _perturb(factors.users, factors, noise, rows, limit, lanes)


def perturb_items(
    factors: FactorLanes, noise: LaneNoise | None, rows: NDArray[np.float64], limit: float, lanes: slice
) -> None:
    """The same for items."""
    _perturb(factors.items, factors, noise, rows, limit, lanes)


def _perturb(
    flat: NDArray[np.float32],
    factors: FactorLanes,
    noise: LaneNoise | None,
    rows: NDArray[np.float64],
    limit: float,
    lanes: slice,
) -> None:
    if noise is None:
        unit, scale = np.zeros((len(rows), factors.factors)), np.zeros(factors.width)
    else:
        unit, scale = noise.unit * rows[:, None], pad(noise.scale[lanes], factors.width)
    _perturb_rows(
        flat,
        unit.astype(np.float32).ravel(),
        scale.astype(np.float32),
        np.float32(limit),
        factors.factors_of,
        factors.width_of,
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
