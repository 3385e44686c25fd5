"""Langevin dynamics rating by rating. A visit first gives its two rows the noise of all visits since their last.

Rows are float32, and the ratings decide when a row gets noise. So no ε is provable; only a published mode uses this.
"""

from dataclasses import dataclass

import numpy as np

from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.compiled.decorator import compiled
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.examples import ITEMS, RATED, USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes, Side
from dpmf_cli.kernels.lanes import doubles, load, splat, store
from dpmf_cli.kernels.releasing import released, unit_and_lanes
from dpmf_cli.kernels.sums import Columns
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Publish, noisy_kernel


@dataclass(frozen=True)
class Round:
    """The multipliers of one pass over the ratings, for each ε.

    drift   (E,) η·n·s·λ_r, for the errors
    decay   {side: (rows, d + 1, E)} η·(n/n_row)·s·λ, for a row's factors and, last, for its bias
    """

    drift: Doubles
    decay: dict[Side, Doubles]


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


def _plain_round(group: FactorLanes, publish: Publish, train: Ratings, roots: Doubles, of: Round) -> None:
    """The plain twin. It measures a row divided by the square root of the number of visits since its last visit."""
    rows = {side: group.table(side).astype(np.float64) for side in ("users", "items")}
    drift = of.drift[group.part]
    decay = {side: each[..., group.part] for side, each in of.decay.items()}

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
def langevin_round(group: FactorLanes, noise: LaneNoise, train: Ratings, roots: Doubles, of: Round) -> None:
    """Runs one round, in place, in the order of the ratings. At each visit of user u and item i:

        (p_u, b_u) ← (p_u, b_u) + √(visits since u's last)·noise,   and item i's row likewise
        e = drift·(r_ui − p_u·q_i − b_u − b_i)
        (p_u, b_u) ← (1 − decay_u)·(p_u, b_u) + e·(q_i, 1),   (q_i, b_i) ← (1 − decay_i)·(q_i, b_i) + e·(p_u, 1)

    At the end all rows get the noise of the visits since their last visit. A row's bias follows its factors.

    noise  unit (2·n_ratings + n_users + n_items, d + 1), in the order of `roots`
    roots  from `visits_between`
    """
    each = of.drift, of.decay["users"], of.decay["items"]
    multipliers = tuple(group.of_grid(one, np.float64).ravel() for one in each)
    noisy = unit_and_lanes(noise, group.width)
    _round(Columns.of(train), roots, *noisy, multipliers, *group.arguments)


@compiled(
    example(
        roots=np.sqrt(np.arange(2 * len(RATED) + USERS + ITEMS) % 5),
        unit=lambda s: numbers((2 * len(RATED) + USERS + ITEMS) * (s.d + 1)),
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
