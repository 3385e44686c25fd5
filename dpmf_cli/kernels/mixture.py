"""Least squares weighted by a mixture of Gaussians, over lanes: the update of factors in one step of EM.

Every rating has a value of its own in each lane, and a weight that is a function of its error. Weights are computed
when needed and never stored, because an array of them would be as large as the array of values.
"""

from dataclasses import dataclass

import numpy as np

from dpmf_cli.core.arrays import Doubles, Flags, Singles
from dpmf_cli.core.compiled.lane_groups import LaneValues, on_each_group
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.core.ratings import UserMajor
from dpmf_cli.kernels.als import BLOCK, PREFETCHED, SideRatings, add_products, cholesky_solve, collect, tiled
from dpmf_cli.kernels.examples import RATED, example, mixture_constants, numbers
from dpmf_cli.kernels.factors import FactorLanes, plus_dot
from dpmf_cli.kernels.lane_math import below, cast, exponential, flush_denormals, fma, restore_denormals
from dpmf_cli.kernels.lanes import doubles, load, prefetch, splat, store, zeros
from dpmf_cli.kernels.sums import RatingsByRow, item_major

REFERENCE = 1 / 12
"""The variance of U[0, 1]. A ridge is relative to errors of this variance, whatever variances the mixture finds."""

LEAST_VARIANCE = 1e-6
"""A component whose σ² is below this, on the scale [0, 1], has collapsed onto single ratings."""


@dataclass(frozen=True)
class Mixture:
    """Σ_k π_k·N(0, σ_k²) for each model of a grid. With one component it is no mixture.

    proportions, variances  (K, E)
    """

    proportions: Doubles
    variances: Doubles

    @property
    def components_of(self) -> tuple[int, ...]:
        return (0,) * len(self.variances)

    def constants(self, group: FactorLanes) -> Singles:
        """Flat (K, 3, width): ln(π_k/σ_k), −1/(2σ_k²), and 1/(12σ_k²) of each model of a group."""
        with np.errstate(divide="ignore"):  # a component that has died out
            height = np.maximum(np.log(self.proportions) - np.log(self.variances) / 2, -1e30)
        stacked = np.stack([height, -0.5 / self.variances, REFERENCE / self.variances], axis=1)
        return group.of_grid(stacked).ravel()


def by_user(pairs: UserMajor) -> SideRatings:
    """The places of the messages for users' rows, at which each model has its own values."""
    places = np.arange(len(pairs), dtype=np.int32)
    return SideRatings("users", RatingsByRow(pairs.user_starts, pairs.items, places))


def by_item(pairs: UserMajor) -> SideRatings:
    return SideRatings("items", item_major(pairs))


@on_each_group
def solve_mixture(
    group: FactorLanes,
    messages: SideRatings,
    values: LaneValues,
    mixture: Mixture,
    *,
    regularization: float,
    active: Flags,
) -> None:
    """Sets each row of a side to p ← argmin Σ w·(r̃ − p·q)² + n·λ·‖p‖², the other side fixed, in place.

    Here r̃ = r − averages and w = Σ_k γ_k/(12σ_k²). γ_k is the posterior probability of component k at the error
    before the step (equation 10). With one component all weights are equal; they are 1 if σ² = 1/12.

    Equations 13 and 14 of Neera et al. 2020, and a ridge.

    active  (E,) whether a model is still updated
    """
    if not active[group.part].any():
        return
    _solve(
        messages.rows,
        values.of(group.part).reshape(-1),
        *group.own_and_other(messages.side),
        mixture.constants(group),
        np.float32(regularization),
        group.of_grid(active),
        mixture.components_of,
        *group.shapes(np.float32),
    )


@compiled(
    example(
        values=lambda s: numbers(len(RATED) * s.w),
        constants=mixture_constants,
        active=lambda s: np.arange(s.w) % 3 > 0,
    )
)
def _solve(
    rows,
    values,
    P,
    Q,
    constants,
    regularization,
    active,
    components_of,
    factors_of,
    width_of,
    part_of,
    tile_of,
):
    """Solves rows of P given Q, by blocks of ratings and parts of the lanes as in `als._solve`.

    `block` holds the factors and targets of a block's ratings; `weighted` holds the factors times w.
    """
    starts, others, places = rows
    d, w, v, components = len(factors_of), len(width_of), len(part_of), len(components_of)
    row, like, part = (d + 1) * w, zeros(width_of), zeros(part_of)
    entries, last = d * (d + 3) // 2, len(others) - 1
    half = splat(np.float32(0.5), part)
    # Factors that a ridge has almost removed shrink further in every sweep. A CPU takes a hundred times as long to
    # multiply numbers that small.
    negligible = splat(np.float32(1e-24), part)
    sums, gamma = np.empty(entries * w, np.float32), np.empty(components * w, np.float32)
    factor, solution = np.empty(entries * v, np.float32), np.empty(d * v, np.float32)
    few, at_once, pair = zeros(tile_of), len(tile_of), np.empty(2 * w, np.float32)
    n, block, tiles = tiled(sums, factors_of, width_of)
    weighted = np.zeros_like(block)
    before = flush_denormals()
    for r in range(len(starts) - 1):
        count, p_at = starts[r + 1] - starts[r], r * row
        if count == 0:
            continue
        tiles[:] = 0
        own = load(P, p_at + d * w, like)
        for first in range(starts[r], starts[r + 1], BLOCK):
            members = min(BLOCK, starts[r + 1] - first)
            for k in range(members):
                ahead = min(first + k + PREFETCHED, last)
                prefetch(values, np.int64(places[ahead]) * w)
                for f in range(d + 1):
                    prefetch(Q, np.int64(others[ahead]) * row + f * w)
                q_at = np.int64(others[first + k]) * row
                value = load(values, np.int64(places[first + k]) * w, like)
                target = value - (own + load(Q, q_at + d * w, like))
                weight = load(constants, 2 * w, like)
                if components > 1:
                    error = target - plus_dot(zeros(width_of), p_at, q_at, P, Q, factors_of, width_of)
                    _responsibilities(error, constants, gamma, width_of, components_of)
                    weight = zeros(width_of)
                    for c in range(components):
                        weight = fma(load(gamma, c * w, like), load(constants, (3 * c + 2) * w, like), weight)
                store(pair, 0, target)
                store(pair, w, weight)
                for lane in range(0, w, at_once):
                    to, times = (lane * BLOCK + k * at_once) * n, load(pair, w + lane, few)
                    store(block, to, load(pair, lane, few))
                    for f in range(d):
                        q, at = load(Q, q_at + f * w + lane, few), to + (f + 1) * at_once
                        store(block, at, q)
                        store(weighted, at, times * q)
            add_products(weighted, block, members, tiles, True, width_of, tile_of)
        collect(tiles, sums, True, factors_of, width_of, part_of, tile_of)
        for lane in range(0, w, v):
            of_lanes = sums[entries * lane : entries * (lane + v)]
            ridge, moving = splat(regularization * np.float32(count), part), load(active, lane, part)
            cholesky_solve(of_lanes, ridge, factor, solution, factors_of, part_of)
            for i in range(d):
                at, value = p_at + i * w + lane, load(solution, i * v, part)
                value = below(value * value, negligible, part, value)
                store(P, at, below(moving, half, load(P, at, part), value))
    restore_denormals(before)


@on_each_group
def mixture_sums(
    group: FactorLanes, messages: SideRatings, values: LaneValues, mixture: Mixture, active: Flags
) -> tuple[Doubles, Doubles]:
    """(K, E) N_k = Σ γ_k and (K, E) Σ γ_k·e² over all ratings, of each active model; 0 of others. Equation 12.

    messages  by user
    """
    counts, squares = sums = np.zeros((2, len(mixture.variances), group.width))
    if active[group.part].any():
        own, constants = values.of(group.part).reshape(-1), mixture.constants(group)
        _sums(messages.rows, own, constants, sums.reshape(-1), mixture.components_of, *group.arguments)
    return counts[:, : group.lanes], squares[:, : group.lanes]


@on_each_group
def residual_variances(group: FactorLanes, pairs: UserMajor, values: LaneValues) -> Doubles:
    """(E,) the variance of ratings minus averages, over all ratings; 0 if there are no ratings."""
    moments, own = np.zeros(group.width), values.of(group.part).reshape(-1)
    for power in (1, 2):
        means, moments = moments, np.zeros(group.width)
        _moments(pairs.users, pairs.items, own, means, power == 2, moments, *group.arguments)
        moments /= max(len(pairs), 1)
    return moments[: group.lanes]


@compiled(
    example(
        values=lambda s: numbers(len(RATED) * s.w),
        means=lambda s: numbers(s.w),
        squared=True,
        out=lambda s: np.zeros(s.w),
    )
)
def _moments(users, items, values, means, squared, out, P, Q, factors_of, width_of):
    """Sets out ← Σ (r̃ − mean), or Σ (r̃ − mean)² if `squared`, in float64; r̃ is a rating minus the averages."""
    d, w = len(factors_of), len(width_of)
    row, like, total = (d + 1) * w, zeros(width_of), doubles(width_of)
    mean = load(means, 0, total)
    for x in range(len(users)):
        own = load(P, np.int64(users[x]) * row + d * w, like)
        target = load(values, x * w, like) - (own + load(Q, np.int64(items[x]) * row + d * w, like))
        left = cast(target, mean) - mean
        total = total + (left * left if squared else left)
    store(out, 0, total)


@compiled(
    example(
        values=lambda s: numbers(len(RATED) * s.w),
        constants=mixture_constants,
    )
)
def _sums(messages, values, constants, out, components_of, P, Q, factors_of, width_of):
    starts, others, places = messages
    d, w, components = len(factors_of), len(width_of), len(components_of)
    row, like, wide = (d + 1) * w, zeros(width_of), doubles(width_of)
    gamma, sums = np.empty(components * w, np.float32), np.empty(2 * components * w, np.float32)
    for r in range(len(starts) - 1):
        sums[:] = 0
        own = load(P, r * row + d * w, like)
        for x in range(starts[r], starts[r + 1]):
            q_at = np.int64(others[x]) * row
            target = load(values, np.int64(places[x]) * w, like) - (own + load(Q, q_at + d * w, like))
            error = target - plus_dot(zeros(width_of), r * row, q_at, P, Q, factors_of, width_of)
            _responsibilities(error, constants, gamma, width_of, components_of)
            square = error * error
            for k in range(components):
                part = load(gamma, k * w, like)
                store(sums, k * w, load(sums, k * w, like) + part)
                at = (components + k) * w
                store(sums, at, fma(part, square, load(sums, at, like)))
        for k in range(2 * components):  # rows are added up in float64: there may be millions of ratings
            store(out, k * w, load(out, k * w, wide) + load(sums, k * w, wide))


@compiled()
def _responsibilities(error, constants, gamma, width_of, components_of):
    """Sets gamma (K, width) to the posterior probabilities of the components at an error. Equation 10."""
    w, components = len(width_of), len(components_of)
    like, square = zeros(width_of), error * error
    largest = splat(np.float32(-3e38), like)
    for k in range(components):
        log = fma(load(constants, (3 * k + 1) * w, like), square, load(constants, 3 * k * w, like))
        store(gamma, k * w, log)
        largest = below(largest, log, log, largest)
    whole = zeros(width_of)
    for k in range(components):
        part = exponential(load(gamma, k * w, like) - largest, width_of)
        store(gamma, k * w, part)
        whole = whole + part
    for k in range(components):
        store(gamma, k * w, load(gamma, k * w, like) / whole)
