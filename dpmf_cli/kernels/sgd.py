"""Stochastic gradient descent and Langevin dynamics over lanes: a visit of a rating updates every model."""

from typing import NamedTuple

import numpy as np

from dpmf_cli.core.arrays import Doubles, Ints, Longs, Singles
from dpmf_cli.core.compiled.lane_groups import LaneValues, aligned, on_each_group, padded_width
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.examples import ITEMS, RATED, RATERS, USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes, Side, plus_dot
from dpmf_cli.kernels.lane_math import cast, clamp, flush_denormals, fma, restore_denormals
from dpmf_cli.kernels.lanes import doubles, load, plain_dot, plain_fma, prefetch, splat, store, zeros
from dpmf_cli.kernels.releasing import released, shorten, unit_and_lanes, without_noise
from dpmf_cli.kernels.sums import Columns
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

    users: Ints
    items: Ints
    values: Singles


class Sgd(NamedTuple):
    """The parameters of SGD, of which a kernel and its Python reference read those that they need.

        p_u ← p_u + γ(e·q_i − λ·p_u);   q_i ← q_i + γ(e·p_u − λ·q_i)   simultaneously

    learning_rate, regularization  γ, λ
    bound, error_bound             B of the residuals, and the bound of the errors e; inf for none
    user_limit, item_limit         bounds of ‖p_u‖ and ‖q_i‖, to which rows are scaled down; inf for none
    threshold                      α: cells of a perturbed matrix up to it are blank
    clip                           C: the most that a rating moves both sums of a batch's gradients
    """

    learning_rate: float
    regularization: float
    bound: float = np.inf
    error_bound: float = np.inf
    user_limit: float = np.inf
    item_limit: float = np.inf
    threshold: float = 0.0
    clip: float = np.inf
    epochs: int = 1

    def single(self) -> "Sgd":
        """These parameters in float32, as kernels take them."""
        return Sgd._make((*map(np.float32, self[:-1]), self.epochs))


def _plain_descend_perturbed(group: FactorLanes, publish: Publish, visits: Visits, sgd: Sgd) -> None:
    """The Python reference of `descend_perturbed`, which measures the clamped residuals."""
    perturbed = plain_clamp(publish(group.residuals(*visits, sgd.bound)), sgd.bound)
    p, q = group.rows("users"), group.rows("items")
    for _ in range(sgd.epochs):
        for u, i, target in zip(visits.users, visits.items, perturbed, strict=True):
            plain_update(p[u], q[i], target - plain_dot(p[u], q[i]), sgd)


def plain_clamp(published: Doubles, bound: float) -> Singles:
    """clamp(published, ±bound) in float32, the type with which kernels go on."""
    return np.clip(published.astype(np.float32), -np.float32(bound), np.float32(bound))


def plain_update(p: Singles, q: Singles, error: Singles, sgd: Sgd) -> None:
    """p ← p + γ(e·q − λ·p), q ← q + γ(e·p − λ·q) simultaneously, in place; p, q (d, lanes), error (lanes,)."""
    rate = np.float32(sgd.learning_rate)
    move, keep = error * rate, np.float32(1) - rate * np.float32(sgd.regularization)
    p[:], q[:] = plain_fma(move, q, keep * p), plain_fma(move, p, keep * q)


def plain_project(row: Singles, limit: float) -> None:
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
    Friedman et al. 2016, equation 7, algorithm 3 lines 1-2, equation 2. The perturbed rating r′, the same number in
    every epoch, is kept (`kept_bytes`), or computed again from the unit noise.

    noise  unit (n_ratings,), in the order of the visits
    """
    keeps = sgd.epochs > 1 and kept_bytes(len(visits.values), group.lanes) > 0
    kept = aligned((len(visits.values) if keeps else 0, group.width)).reshape(-1)
    noisy = unit_and_lanes(noise, group.width)
    _descend_perturbed(visits, *noisy, sgd.single(), kept, *group.unrolled)


def kept_bytes(n_ratings: int, models: int) -> int:
    """Bytes of perturbed ratings that `descend_perturbed` keeps for one group of models; 0 if above `MOST_KEPT`."""
    size = 4 * n_ratings * padded_width(models)
    return size if size <= MOST_KEPT else 0


@compiled(inline="always")
def left_of(sgd):
    """1 − γλ: what a visit leaves of a factor."""
    return np.float32(1) - sgd.learning_rate * sgd.regularization


@compiled(inline="always")
def update(move, keep, p_at, q_at, next_q, ahead, P, Q, factors_of, width_of):
    """Sets p ← keep·p + move·q and q ← keep·q + move·p at once, and prefetches the row at `ahead`.

    Returns p·q′, ‖p‖² and ‖q‖² of the new rows, where q′ is the row at `next_q`. They are summed while the rows are
    in registers, so that a next visit of q′ by the same user takes no other pass over the factors. No user visits an
    item twice in succession.
    """
    w, like = len(width_of), zeros(width_of)
    dot, of_p, of_q = like, like, like
    for f in range(len(factors_of)):
        at = f * w
        if at % LINE == 0:
            prefetch(Q, ahead + at)
        p, q = load(P, p_at + at, like), load(Q, q_at + at, like)
        new_p, new_q = fma(move, q, keep * p), fma(move, p, keep * q)
        store(P, p_at + at, new_p)
        store(Q, q_at + at, new_q)
        of_p, of_q = fma(new_p, new_p, of_p), fma(new_q, new_q, of_q)
        dot = fma(new_p, load(Q, next_q + at, like), dot)
    return dot, of_p, of_q


@compiled(example())
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
        known, summed, dot = keeps and epoch > 0, np.int64(-1), like
        for x in range(len(values)):
            p_at, q_at = np.int64(users[x]) * row, np.int64(items[x]) * row
            next_q, ahead = (
                np.int64(items[min(x + 1, last)]) * row,
                np.int64(items[min(x + ITEMS_AHEAD, last)]) * row,
            )
            prefetch(Q, ahead + d * w)
            if p_at != summed:
                dot = plus_dot(like, p_at, q_at, P, Q, factors_of, width_of)
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
            move, summed = (error - dot) * step, p_at
            dot, _, _ = update(move, keep, p_at, q_at, next_q, ahead, P, Q, factors_of, width_of)
    restore_denormals(before)


def _plain_descend_noisy_errors(group: FactorLanes, publish: Publish, visits: Visits, sgd: Sgd) -> None:
    """The Python reference of `descend_noisy_errors`, which measures each error given those published before."""
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
    _descend_noisy_errors(visits, *noisy, sgd.single(), *group.unrolled)


descend_clamped_errors = without_noise(descend_noisy_errors)
"""(models, visits, sgd): one pass without noise. Friedman et al. 2016, algorithm 5, lines 5-8."""


@compiled(example())
def _descend_noisy_errors(visits, unit, noise, sgd, P, Q, factors_of, width_of):
    users, items, values = visits
    d, w = len(factors_of), len(width_of)
    row, like, wide = (d + 1) * w, zeros(width_of), doubles(width_of)
    low, high = splat(-sgd.bound, like), splat(sgd.bound, like)
    least, most = splat(-sgd.error_bound, like), splat(sgd.error_bound, like)
    step, keep = splat(sgd.learning_rate, like), splat(left_of(sgd), like)
    last, summed, dot = len(values) - 1, np.int64(-1), like
    before = flush_denormals()
    for x in range(len(values)):
        p_at, q_at = np.int64(users[x]) * row, np.int64(items[x]) * row
        next_q, ahead = (
            np.int64(items[min(x + 1, last)]) * row,
            np.int64(items[min(x + ITEMS_AHEAD, last)]) * row,
        )
        prefetch(Q, ahead + d * w)
        if p_at != summed:
            dot = plus_dot(like, p_at, q_at, P, Q, factors_of, width_of)
        residual = splat(values[x], like) - load(Q, q_at + d * w, like)
        error = clamp(residual - load(P, p_at + d * w, like), low, high)
        if unit is None:
            error = error - dot
        else:
            # In float64 the difference is exact. So it moves exactly as far as the residual does.
            error = cast(released(cast(error, wide) - cast(dot, wide), unit[x], noise, wide), like)
        error = clamp(error, least, most)  # lines 4, 5 of algorithm 4
        dot, of_p, of_q = update(error * step, keep, p_at, q_at, next_q, ahead, P, Q, factors_of, width_of)
        shortened = shorten(P, p_at, of_p, sgd.user_limit, factors_of, width_of)  # lines 6, 7
        shorten(Q, q_at, of_q, sgd.item_limit, factors_of, width_of)
        summed = np.int64(-1) if shortened else p_at
    restore_denormals(before)


@on_each_group
def descend_values(
    group: FactorLanes, users: Ints, items: Ints, order: Longs, values: LaneValues, sgd: Sgd
) -> None:
    """Runs SGD on ratings whose values differ between models, in place, in the given order, `epochs` times.

        e = r_ui − p_u·q_i, then the update of `Sgd`

    users, items, order  (n_ratings,)
    """
    visits = Visits(users, items, values.of(group.part).reshape(-1))
    _descend_values(visits, order, sgd.single(), *group.unrolled)


@compiled(example(visits=lambda s: (RATERS, RATED, numbers(len(RATED) * s.w))))
def _descend_values(visits, order, sgd, P, Q, factors_of, width_of):
    users, items, values = visits
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    step, keep = splat(sgd.learning_rate, like), splat(left_of(sgd), like)
    last = len(order) - 1
    before = flush_denormals()
    for _ in range(sgd.epochs):
        summed, dot = np.int64(-1), like
        for x in range(len(order)):
            at, following = order[x], order[min(x + 2, last)]
            p_at, q_at = np.int64(users[at]) * row, np.int64(items[at]) * row
            next_q, ahead = np.int64(items[order[min(x + 1, last)]]) * row, np.int64(items[following]) * row
            prefetch(values, following * w)
            if p_at != summed:
                dot = plus_dot(like, p_at, q_at, P, Q, factors_of, width_of)
            move, summed = (load(values, at * w, like) - dot) * step, p_at
            dot, _, _ = update(move, keep, p_at, q_at, next_q, ahead, P, Q, factors_of, width_of)
    restore_denormals(before)


def visits_between(train: Ratings) -> Doubles:
    """(2·n_ratings + n_users + n_items,) square roots of the numbers of visits since a row's last visit.

    Each visit has two, one for its user and one for its item. After these come the numbers at the
    end of a round, of all users, then of all items.
    """
    n, between, at_the_end = len(train), [], []
    for rows, count in ((train.users, train.n_users), (train.items, train.n_items)):
        order, before, last = (
            np.argsort(rows, kind="stable"),
            np.zeros(n, np.int64),
            np.zeros(count, np.int64),
        )
        again = rows[order[1:]] == rows[order[:-1]]
        before[order[1:][again]] = order[:-1][again]
        last[rows] = np.arange(n)
        between.append(np.arange(n) - before)
        at_the_end.append(n - last)
    return np.asarray(np.sqrt(np.concatenate([np.stack(between, axis=1).ravel(), *at_the_end])))


def _plain_round(
    group: FactorLanes,
    publish: Publish,
    train: Ratings,
    roots: Doubles,
    drift: Doubles,
    decay: dict[Side, Doubles],
) -> None:
    """The Python reference, which measures a row over the square root of the number of visits since its last."""
    rows = {side: group.table(side).astype(np.float64) for side in ("users", "items")}
    drift, decay = drift[group.part], {side: each[..., group.part] for side, each in decay.items()}

    def shaken(side: Side, row: int, place: int) -> None:
        root = roots[place]
        if root > 0:
            rows[side][row] = np.float32(publish(rows[side][row][None] / root, place)[0] * root)

    for x, (u, i, value) in enumerate(zip(train.users, train.items, train.values, strict=True)):
        shaken("users", u, 2 * x)
        shaken("items", i, 2 * x + 1)
        p, q = rows["users"][u].copy(), rows["items"][i].copy()
        error = drift * (value - (p[:-1] * q[:-1]).sum(axis=0) - p[-1] - q[-1])
        one = np.ones((1, group.lanes))
        rows["users"][u] = np.float32((1 - decay["users"][u]) * p + error * np.concatenate([q[:-1], one]))
        rows["items"][i] = np.float32((1 - decay["items"][i]) * q + error * np.concatenate([p[:-1], one]))
    for row in range(train.n_users):
        shaken("users", row, 2 * len(train) + row)
    for row in range(train.n_items):
        shaken("items", row, 2 * len(train) + train.n_users + row)
    for side in ("users", "items"):
        group.table(side)[:] = rows[side]


@noisy_kernel(_plain_round)
def langevin_round(
    group: FactorLanes,
    noise: LaneNoise,
    train: Ratings,
    roots: Doubles,
    drift: Doubles,
    decay: dict[Side, Doubles],
) -> None:
    """Runs one round of Langevin dynamics, in place, in the order of the ratings. At each visit of user u and item i:

        (p_u, b_u) ← (p_u, b_u) + √(visits since u's last)·noise,   and item i's row likewise
        e = drift·(r_ui − p_u·q_i − b_u − b_i)
        (p_u, b_u) ← (1 − decay_u)·(p_u, b_u) + e·(q_i, 1),   (q_i, b_i) ← (1 − decay_i)·(q_i, b_i) + e·(p_u, 1)

    At the end all rows get the noise of the visits since their last visit. A row's bias follows its factors. Because
    rows are float32, and the ratings decide when a row gets noise, no ε is provable; only a published mode uses this.

    noise  unit (2·n_ratings + n_users + n_items, d + 1), in the order of `roots`
    roots  from `visits_between`
    drift  (E,) η·n·s·λ_r, for the errors
    decay  {side: (rows, d + 1, E)} η·(n/n_row)·s·λ, for a row's factors and, last, for its bias
    """
    each = drift, decay["users"], decay["items"]
    multipliers = tuple(group.of_grid(one, np.float64).ravel() for one in each)
    noisy = unit_and_lanes(noise, group.width)
    _round(Columns.of(train), roots, *noisy, multipliers, *group.arguments)


@compiled(
    example(
        roots=np.sqrt(np.arange(2 * len(RATED) + USERS + ITEMS) % 5),
        multipliers=lambda s: (
            np.linspace(0, 0.1, s.w),
            np.abs(numbers(USERS * s.row)) / 10,
            np.abs(numbers(ITEMS * s.row)) / 10,
        ),
    )
)
def _round(ratings, roots, unit, noise, multipliers, P, Q, factors_of, width_of):
    users, items, values, _ = ratings
    drift, of_users, of_items = multipliers
    d, w, n, wide = len(factors_of), len(width_of), len(values), doubles(width_of)
    row, one = (d + 1) * w, splat(1.0, wide)
    for x in range(n):
        p_at, q_at, dot = np.int64(users[x]) * row, np.int64(items[x]) * row, wide
        _shake(P, p_at, roots[2 * x], unit, 2 * x, noise, factors_of, width_of)
        _shake(Q, q_at, roots[2 * x + 1], unit, 2 * x + 1, noise, factors_of, width_of)
        for at in range(0, d * w, w):
            dot = dot + load(P, p_at + at, wide) * load(Q, q_at + at, wide)
        bias = load(P, p_at + d * w, wide) + load(Q, q_at + d * w, wide)
        error = load(drift, 0, wide) * (splat(values[x], wide) - dot - bias)
        for f in range(d + 1):
            own, other = p_at + f * w, q_at + f * w
            p, q = load(P, own, wide), load(Q, other, wide)
            along_q, along_p = (q, p) if f < d else (one, one)
            store(P, own, (one - load(of_users, own, wide)) * p + error * along_q)
            store(Q, other, (one - load(of_items, other, wide)) * q + error * along_p)
    for u in range(len(P) // row):
        _shake(P, u * row, roots[2 * n + u], unit, 2 * n + u, noise, factors_of, width_of)
    behind = 2 * n + len(P) // row
    for i in range(len(Q) // row):
        _shake(Q, i * row, roots[behind + i], unit, behind + i, noise, factors_of, width_of)


@compiled()
def _shake(P, at, root, unit, place, noise, factors_of, width_of):
    """Adds noise of `root` times its scale to one row. If `root` is 0, adds none."""
    d, w, wide = len(factors_of), len(width_of), doubles(width_of)
    times = splat(root, wide)
    for f in range(d + 1 if root > 0 else 0):
        clean = load(P, at + f * w, wide) / times
        store(P, at + f * w, released(clean, unit[place * (d + 1) + f], noise, wide) * times)
