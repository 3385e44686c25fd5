"""Stochastic gradient descent over lanes: one visit of a rating updates every model of the grid."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.compiled.decorator import compiled
from dpmf_cli.core.compiled.lane_groups import LaneValues, aligned, on_each_group, padded_width
from dpmf_cli.kernels.examples import RATED, RATERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.kernels.lanes import (
    cast,
    clamp,
    doubles,
    flush_denormals,
    fma,
    load,
    plain_dot,
    plain_fma,
    prefetch,
    restore_denormals,
    splat,
    store,
    zeros,
)
from dpmf_cli.kernels.releasing import project, released, unit_and_lanes
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Publish, noisy_kernel

MOST_KEPT = 1 << 28
"""Most bytes of perturbed ratings that are kept from the first epoch on, for one group of models."""

ITEMS_AHEAD, KEPT_AHEAD = 3, 24
"""How many visits ahead an item's row is prefetched, and how many a kept rating, which comes from a farther cache."""
LINE = 16
"""How many float32 a cache line has."""


class Visits(NamedTuple):
    """Ratings in the order of SGD's visits. users, items (n_ratings,) int32, values (n_ratings,) float32."""

    users: NDArray[np.int32]
    items: NDArray[np.int32]
    values: NDArray[np.float32]


class Sgd(NamedTuple):
    """The parameters of SGD. A kernel and its plain twin read those that they need.

        p_u ← p_u + γ(e·q_i − λ·p_u);   q_i ← q_i + γ(e·p_u − λ·q_i)   simultaneously

    learning_rate, regularization  γ, λ
    bound, error_bound             B of the residuals, and the bound of the errors e; inf for none
    user_limit, item_limit         bounds of ‖p_u‖ and ‖q_i‖, to which rows are scaled down; inf for none
    threshold                      α: cells of a perturbed matrix up to it are blank
    """

    learning_rate: float
    regularization: float
    bound: float = np.inf
    error_bound: float = np.inf
    user_limit: float = np.inf
    item_limit: float = np.inf
    threshold: float = 0.0
    epochs: int = 1

    def single(self) -> "Sgd":
        """Returns these parameters in float32, as kernels take them."""
        return Sgd._make((*map(np.float32, self[:-1]), self.epochs))


def _plain_descend_perturbed(group: FactorLanes, publish: Publish, visits: Visits, sgd: Sgd) -> None:
    """The plain twin of `descend_perturbed`. It measures the clamped residuals."""
    perturbed = plain_clamp(publish(group.residuals(*visits, sgd.bound)), sgd.bound)
    p, q = group.rows("users"), group.rows("items")
    for _ in range(sgd.epochs):
        for u, i, target in zip(visits.users, visits.items, perturbed, strict=True):
            plain_update(p[u], q[i], target - plain_dot(p[u], q[i]), sgd)


def plain_clamp(published: NDArray[np.float64], bound: float) -> NDArray[np.float32]:
    """clamp(published, ±bound) in float32, the type with which kernels go on."""
    return np.clip(published.astype(np.float32), -np.float32(bound), np.float32(bound))


def plain_update(
    p: NDArray[np.float32], q: NDArray[np.float32], error: NDArray[np.float32], sgd: Sgd
) -> None:
    """p ← p + γ(e·q − λ·p), q ← q + γ(e·p − λ·q) simultaneously, in place; p, q (d, lanes), error (lanes,)."""
    rate = np.float32(sgd.learning_rate)
    move, keep = error * rate, np.float32(1) - rate * np.float32(sgd.regularization)
    p[:], q[:] = plain_fma(move, q, keep * p), plain_fma(move, p, keep * q)


def plain_project(row: NDArray[np.float32], limit: float) -> None:
    """Scales a row (d, lanes) down to the L2 norm `limit` in the lanes where it is longer, in place."""
    square, most = plain_dot(row, row), np.float32(limit)
    shrunk = most / np.sqrt(np.maximum(square, np.float32(1e-30)))
    row *= np.where(square > most * most, shrunk, np.float32(1))


@noisy_kernel(_plain_descend_perturbed)
def descend_perturbed(group: FactorLanes, noise: LaneNoise, visits: Visits, sgd: Sgd) -> None:
    """Runs SGD on perturbed residuals, in place, in the order of the ratings, `epochs` times.

    Each visit, for each model e:
        r′ = clamp(grid_e(clamp(r_ui − IAvg(i) − UAvg(u)) + noise·scale_e))   both to [−bound, bound]
        e  = r′ − p_u·q_i, then the update of `Sgd`
    Friedman et al. 2016, equation 7, algorithm 3 lines 1-2, equation 2. The perturbed rating r′ is the same number in
    every epoch. So it is kept (`kept_bytes`), or computed again from the unit noise.

    noise  unit (n_ratings,), in the order of the visits
    """
    keeps = sgd.epochs > 1 and kept_bytes(len(visits.values), group.lanes) > 0
    kept = aligned((len(visits.values) if keeps else 0, group.width)).reshape(-1)
    noisy = unit_and_lanes(noise, group.width)
    _descend_perturbed(visits, *noisy, sgd.single(), kept, *group.arguments)


def kept_bytes(n_ratings: int, models: int) -> int:
    """Bytes of perturbed ratings that `descend_perturbed` keeps for one group of models; 0 if above `MOST_KEPT`."""
    size = 4 * n_ratings * padded_width(models)
    return size if size <= MOST_KEPT else 0


@compiled(inline="always")
def left_of(sgd):
    """Returns 1 − γλ: what a visit leaves of a factor."""
    return np.float32(1) - sgd.learning_rate * sgd.regularization


@compiled(inline="always")
def ask_for(Q, at, f, w):
    """Prefetches a cache line of the half row at `at`, if one is due at factor f.

    Prefetching all lines at once would keep the visit waiting.
    """
    if f * w % (2 * LINE) == 0:
        prefetch(Q, at + f * w // 2)


@compiled(inline="always")
def dot_of(p_at, q_at, ahead, P, Q, factors_of, width_of):
    """Returns p·q, and prefetches the first half of the row at `ahead`."""
    w, like = len(width_of), zeros(width_of)
    dot = zeros(width_of)
    for f in range(len(factors_of)):
        ask_for(Q, ahead, f, w)
        dot = fma(load(P, p_at + f * w, like), load(Q, q_at + f * w, like), dot)
    return dot


@compiled(inline="always")
def update(move, keep, p_at, q_at, ahead, P, Q, factors_of, width_of):
    """Sets p ← keep·p + move·q and q ← keep·q + move·p at once, and prefetches the rest of the row at `ahead`."""
    d, w = len(factors_of), len(width_of)
    half = (d * w // 2 + LINE - 1) // LINE * LINE  # in complete cache lines
    for f in range(d):
        ask_for(Q, ahead + half, f, w)
        p, q = load(P, p_at + f * w, keep), load(Q, q_at + f * w, keep)
        store(P, p_at + f * w, fma(move, q, keep * p))
        store(Q, q_at + f * w, fma(move, p, keep * q))


@compiled(example(kept=lambda s: np.zeros(len(RATED) * s.w)))
def _descend_perturbed(visits, unit, noise, sgd, kept, P, Q, factors_of, width_of):
    """kept  room for the perturbed ratings; if it is empty, they are computed again in each epoch."""
    users, items, values = visits
    d, w = len(factors_of), len(width_of)
    row, like, wide = (d + 1) * w, zeros(width_of), doubles(width_of)
    low, high = splat(-sgd.bound, like), splat(sgd.bound, like)
    step, keep = splat(sgd.learning_rate, like), splat(left_of(sgd), like)
    last, keeps = len(values) - 1, len(kept) > 0
    before = flush_denormals()
    for epoch in range(sgd.epochs):
        known = keeps and epoch > 0
        for x in range(len(values)):
            p_at, q_at = np.int64(users[x]) * row, np.int64(items[x]) * row
            ahead = np.int64(items[min(x + ITEMS_AHEAD, last)]) * row
            prefetch(Q, ahead + d * w)
            if known:
                prefetch(kept, min(x + KEPT_AHEAD, last) * w)
                error = load(kept, x * w, like)
            else:
                residual = splat(values[x], like) - load(Q, q_at + d * w, like)
                residual = clamp(residual - load(P, p_at + d * w, like), low, high)
                noisy = released(cast(residual, wide), unit[x], noise, wide)
                error = clamp(cast(noisy, like), low, high)
                if keeps:
                    store(kept, x * w, error)
            move = (error - dot_of(p_at, q_at, ahead, P, Q, factors_of, width_of)) * step
            update(move, keep, p_at, q_at, ahead, P, Q, factors_of, width_of)
    restore_denormals(before)


def _plain_descend_noisy_errors(group: FactorLanes, publish: Publish, visits: Visits, sgd: Sgd) -> None:
    """The plain twin of `descend_noisy_errors`. It measures each error given the errors published before it."""
    p, q = group.rows("users"), group.rows("items")
    residuals = group.residuals(*visits, sgd.bound)
    for place, (u, i, residual) in enumerate(zip(visits.users, visits.items, residuals, strict=True)):
        dot = plain_dot(p[u], q[i]).astype(np.float64)
        error = publish((residual.astype(np.float64) - dot)[None], place)[0]
        plain_update(p[u], q[i], plain_clamp(error, sgd.error_bound), sgd)
        plain_project(p[u], sgd.user_limit)
        plain_project(q[i], sgd.item_limit)


@noisy_kernel(_plain_descend_noisy_errors)
def descend_noisy_errors(group: FactorLanes, noise: LaneNoise | None, visits: Visits, sgd: Sgd) -> None:
    """Runs one pass of SGD with perturbed and clamped errors, in place, in the order of the ratings.

    Each visit, for each model e:
        e  = clamp(grid_e(clamp(r_ui − IAvg(i) − UAvg(u), ±bound) − p_u·q_i + noise·scale_e), ±error_bound)
        then the update of `Sgd`, then ‖p_u‖ ≤ user_limit and ‖q_i‖ ≤ item_limit by scaling
    Friedman et al. 2016, algorithm 4, lines 3-7, with the bounds of section 5.2.

    noise  unit (n_ratings,), in the order of the visits
    """
    noisy = unit_and_lanes(noise, group.width)
    _descend_noisy_errors(visits, *noisy, sgd.single(), *group.arguments)


@on_each_group
def descend_clamped_errors(group: FactorLanes, visits: Visits, sgd: Sgd) -> None:
    """Runs one pass of SGD with clamped errors, without noise, in place.

    Friedman et al. 2016, algorithm 5, lines 5-8.
    """
    descend_noisy_errors.run(group, None, visits, sgd)


@compiled(example())
def _descend_noisy_errors(visits, unit, noise, sgd, P, Q, factors_of, width_of):
    users, items, values = visits
    d, w = len(factors_of), len(width_of)
    row, like, wide = (d + 1) * w, zeros(width_of), doubles(width_of)
    low, high = splat(-sgd.bound, like), splat(sgd.bound, like)
    least, most = splat(-sgd.error_bound, like), splat(sgd.error_bound, like)
    step, keep = splat(sgd.learning_rate, like), splat(left_of(sgd), like)
    last = len(values) - 1
    before = flush_denormals()
    for x in range(len(values)):
        p_at, q_at = np.int64(users[x]) * row, np.int64(items[x]) * row
        ahead = np.int64(items[min(x + ITEMS_AHEAD, last)]) * row
        prefetch(Q, ahead + d * w)
        residual = splat(values[x], like) - load(Q, q_at + d * w, like)
        error = clamp(residual - load(P, p_at + d * w, like), low, high)
        dot = dot_of(p_at, q_at, ahead, P, Q, factors_of, width_of)
        if unit is None:
            error = error - dot
        else:
            # In float64 the difference is exact. So it moves exactly as far as the residual does.
            error = cast(released(cast(error, wide) - cast(dot, wide), unit[x], noise, wide), like)
        error = clamp(error, least, most)  # lines 4, 5 of algorithm 4
        update(error * step, keep, p_at, q_at, ahead, P, Q, factors_of, width_of)  # lines 6, 7
        project(P, p_at, sgd.user_limit, factors_of, width_of)
        project(Q, q_at, sgd.item_limit, factors_of, width_of)
    restore_denormals(before)


@on_each_group
def descend_values(
    group: FactorLanes,
    users: NDArray[np.int32],
    items: NDArray[np.int32],
    order: NDArray[np.int64],
    values: LaneValues,
    sgd: Sgd,
) -> None:
    """Runs SGD on ratings whose values differ between models, in place, in the given order, `epochs` times.

        e = r_ui − p_u·q_i, then the update of `Sgd`

    users, items, order  (n_ratings,)
    """
    visits = Visits(users, items, values.of(group.part).reshape(-1))
    _descend_values(visits, order, sgd.single(), *group.arguments)


@compiled(example(visits=lambda s: (RATERS, RATED, numbers(len(RATED) * s.w))))
def _descend_values(visits, order, sgd, P, Q, factors_of, width_of):
    users, items, values = visits
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    step, keep = splat(sgd.learning_rate, like), splat(left_of(sgd), like)
    last = len(order) - 1
    before = flush_denormals()
    for _ in range(sgd.epochs):
        for x in range(len(order)):
            at, following = order[x], order[min(x + 2, last)]
            p_at, q_at = np.int64(users[at]) * row, np.int64(items[at]) * row
            ahead = np.int64(items[following]) * row
            prefetch(values, following * w)
            dot = dot_of(p_at, q_at, ahead, P, Q, factors_of, width_of)
            move = (load(values, at * w, like) - dot) * step
            update(move, keep, p_at, q_at, ahead, P, Q, factors_of, width_of)
    restore_denormals(before)
