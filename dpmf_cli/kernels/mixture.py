"""Least squares weighted by a mixture of Gaussians, over lanes: what one step of EM does to factors.

Every rating has a value of its own in each lane. Its weight is a function of its error, so it is computed where it is
needed and never stored: an array of weights would be as large as that of the values.
"""

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.kernels.als import add_to_diagonal, cholesky_solve
from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.kernels.lanes import (
    add,
    below,
    clamp,
    div,
    fma,
    load,
    mul,
    splat,
    store,
    sub,
    times_power,
    widen,
    zeros,
)
from dpmf_cli.lane_groups import pad

REFERENCE = 1 / 12
"""The variance of U[0, 1]: a ridge counts against errors of this variance, whatever the mixture finds."""

LEAST_VARIANCE = 1e-6
"""σ² below this is a component that has collapsed onto single ratings; on [0, 1]."""


@dataclass(frozen=True)
class Mixture:
    """Σ_k π_k·N(0, σ_k²) for each model of a group; one component is no mixture.

    proportions, variances  (K, lanes)
    """

    proportions: NDArray[np.float64]
    variances: NDArray[np.float64]

    @property
    def components_of(self) -> tuple[int, ...]:
        return (0,) * len(self.variances)

    def constants(self, width: int) -> NDArray[np.float32]:
        """Flat (K, 3, width): ln(π_k/σ_k), −1/(2σ_k²), and 1/(12σ_k²)."""
        with np.errstate(divide="ignore"):  # a component that has died out
            height = np.maximum(np.log(self.proportions) - np.log(self.variances) / 2, -1e30)
        stacked = np.stack([height, -0.5 / self.variances, REFERENCE / self.variances], axis=1)
        return pad(stacked, width).ravel()


@dataclass(frozen=True)
class Side:
    """The ratings of one side's rows, row after row.

    starts  (rows + 1,) offsets
    others  (n,) int32, the index on the other side
    places  (n,) int32, the rows of the values
    """

    starts: NDArray[np.int64]
    others: NDArray[np.int32]
    places: NDArray[np.int32]


def solve_mixture_users(
    factors: FactorLanes,
    side: Side,
    values: NDArray[np.float32],
    mixture: Mixture,
    *,
    regularization: float,
    active: NDArray[np.bool_],
) -> None:
    """For each user p ← argmin Σ w·(r − p·q)² + n·λ·‖p‖², items fixed, in place.

    w = Σ_k γ_k/(12σ_k²), γ_k the posterior probability of component k at the error before the step (equation
    10). With one component all weights are equal, 1 where σ² = 1/12.
    Equations 13 and 14 of Neera et al. 2020, and a ridge.

    values  (n, width)
    active  (lanes,) whether a model is still updated
    """
    _solve_side(factors, factors.users, factors.items, side, values, mixture, regularization, active)


def solve_mixture_items(
    factors: FactorLanes,
    side: Side,
    values: NDArray[np.float32],
    mixture: Mixture,
    *,
    regularization: float,
    active: NDArray[np.bool_],
) -> None:
    """The same for items, users fixed."""
    _solve_side(factors, factors.items, factors.users, side, values, mixture, regularization, active)


def _solve_side(
    factors: FactorLanes,
    own: NDArray[np.float32],
    other: NDArray[np.float32],
    side: Side,
    values: NDArray[np.float32],
    mixture: Mixture,
    regularization: float,
    active: NDArray[np.bool_],
) -> None:
    _solve(
        side.starts,
        side.others,
        side.places,
        values.reshape(-1),
        own,
        other,
        mixture.constants(factors.width),
        np.float32(regularization),
        pad(active, factors.width),
        factors.factors_of,
        factors.width_of,
        mixture.components_of,
    )


@njit(cache=True, nogil=True)
def _solve(
    starts,
    others,
    places,
    values,
    P,
    Q,
    constants,
    regularization,
    active,
    factors_of,
    width_of,
    components_of,
):
    """Rows of P given Q. `gram` holds the lower triangle of Σ w·q·qᵀ + n·λ·I row by row, `right` holds Σ w·r·q."""
    d, w, components = len(factors_of), len(width_of), len(components_of)
    row, like = (d + 1) * w, zeros(width_of)
    half, moving = splat(np.float32(0.5), like), load(active, 0, like)
    # Factors that a ridge has all but removed shrink on in every sweep, to numbers that take a CPU a hundred times
    # as long to multiply.
    negligible = splat(np.float32(1e-24), like)
    gram, right = np.empty(d * (d + 1) // 2 * w, np.float32), np.empty(d * w, np.float32)
    gamma = np.empty(components * w, np.float32)
    for r in range(len(starts) - 1):
        count = starts[r + 1] - starts[r]
        if count == 0:
            continue
        gram[:] = 0
        right[:] = 0
        p_at = r * row
        for x in range(starts[r], starts[r + 1]):
            q_at = np.int64(others[x]) * row
            target = load(values, np.int64(places[x]) * w, like)
            weight = load(constants, 2 * w, like)
            if components > 1:
                error = _error(target, P, p_at, Q, q_at, factors_of, width_of)
                _responsibilities(error, constants, gamma, width_of, components_of)
                weight = zeros(width_of)
                for k in range(components):
                    weight = fma(load(gamma, k * w, like), load(constants, (3 * k + 2) * w, like), weight)
            entry = 0
            for i in range(d):
                q = mul(weight, load(Q, q_at + i * w, like))
                store(right, i * w, fma(target, q, load(right, i * w, like)))
                for j in range(i + 1):
                    product = fma(q, load(Q, q_at + j * w, like), load(gram, entry, like))
                    store(gram, entry, product)
                    entry += w
        add_to_diagonal(gram, splat(regularization * np.float32(count), like), factors_of, width_of)
        cholesky_solve(gram, right, factors_of, width_of)
        for i in range(d):
            value = load(right, i * w, like)
            value = below(mul(value, value), negligible, zeros(width_of), value)
            store(P, p_at + i * w, below(moving, half, load(P, p_at + i * w, like), value))


def mixture_sums(
    factors: FactorLanes, side: Side, values: NDArray[np.float32], mixture: Mixture
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(K, lanes) N_k = Σ γ_k and Σ γ_k·e² over all ratings, by users. Equation 12."""
    components = len(mixture.variances)
    sums = np.zeros(2 * components * factors.width)
    _sums(
        side.starts,
        side.others,
        side.places,
        values.reshape(-1),
        factors.users,
        factors.items,
        mixture.constants(factors.width),
        sums,
        factors.factors_of,
        factors.width_of,
        mixture.components_of,
    )
    counts, squares = sums.reshape(2, components, factors.width)[:, :, : factors.lanes]
    return counts, squares


@njit(cache=True, nogil=True)
def _sums(starts, others, places, values, P, Q, constants, out, factors_of, width_of, components_of):
    d, w, components = len(factors_of), len(width_of), len(components_of)
    row, like = (d + 1) * w, zeros(width_of)
    gamma, sums = np.empty(components * w, np.float32), np.empty(2 * components * w, np.float32)
    for r in range(len(starts) - 1):
        sums[:] = 0
        for x in range(starts[r], starts[r + 1]):
            target = load(values, np.int64(places[x]) * w, like)
            error = _error(target, P, r * row, Q, np.int64(others[x]) * row, factors_of, width_of)
            _responsibilities(error, constants, gamma, width_of, components_of)
            square = mul(error, error)
            for k in range(components):
                part = load(gamma, k * w, like)
                store(sums, k * w, add(load(sums, k * w, like), part))
                at = (components + k) * w
                store(sums, at, fma(part, square, load(sums, at, like)))
        for k in range(2 * components):  # rows are added up in float64: there may be millions of ratings
            wide = widen(load(sums, k * w, like))
            store(out, k * w, add(load(out, k * w, wide), wide))


@njit(cache=True, nogil=True)
def _error(target, P, p_at, Q, q_at, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    like, dot = zeros(width_of), zeros(width_of)
    for f in range(d):
        dot = fma(load(P, p_at + f * w, like), load(Q, q_at + f * w, like), dot)
    return sub(target, dot)


@njit(cache=True, nogil=True)
def _responsibilities(error, constants, gamma, width_of, components_of):
    """gamma ← (K, width) posterior probabilities of the components at an error. Equation 10."""
    w, components = len(width_of), len(components_of)
    like, square = zeros(width_of), mul(error, error)
    largest = splat(np.float32(-3e38), like)
    for k in range(components):
        log = fma(load(constants, (3 * k + 1) * w, like), square, load(constants, 3 * k * w, like))
        store(gamma, k * w, log)
        largest = below(largest, log, log, largest)
    whole = zeros(width_of)
    for k in range(components):
        part = exponential(sub(load(gamma, k * w, like), largest), width_of)
        store(gamma, k * w, part)
        whole = add(whole, part)
    for k in range(components):
        store(gamma, k * w, div(load(gamma, k * w, like), whole))


@njit(cache=True, nogil=True)
def exponential(x, width_of):
    """eˣ in every lane for x ≤ 0, to a few units of the last place; below −87 as at −87.

    x = n·ln 2 + r with |r| ≤ (ln 2)/2, eʳ by a polynomial (Cephes, Moshier 1989).
    """
    like = zeros(width_of)
    x = clamp(x, splat(np.float32(-87), like), like)
    magic = splat(np.float32(12582912), like)  # 1.5·2²³: a sum with it is rounded to a whole number
    shifted = fma(x, splat(np.float32(1.44269504), like), magic)
    n = sub(shifted, magic)
    r = fma(n, splat(np.float32(-0.693359375), like), x)
    r = fma(n, splat(np.float32(2.12194440e-4), like), r)
    y = splat(np.float32(1.9875691500e-4), like)
    y = fma(y, r, splat(np.float32(1.3981999507e-3), like))
    y = fma(y, r, splat(np.float32(8.3334519073e-3), like))
    y = fma(y, r, splat(np.float32(4.1665795894e-2), like))
    y = fma(y, r, splat(np.float32(1.6666665459e-1), like))
    y = fma(y, r, splat(np.float32(5.0000001201e-1), like))
    y = add(fma(y, mul(r, r), r), splat(np.float32(1), like))
    return times_power(y, shifted)
