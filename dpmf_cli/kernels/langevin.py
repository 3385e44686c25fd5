"""Langevin dynamics rating by rating. A visit first gives its two rows the noise of all visits since their last.

Rows are float32, and the ratings decide when a row gets noise. So no ε is provable; only a published mode uses this.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.compiled.decorator import compiled
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.examples import ITEMS, RATED, USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes, Side
from dpmf_cli.kernels.lanes import doubles, load, store
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

    drift: NDArray[np.float64]
    decay: dict[Side, NDArray[np.float64]]


def visits_between(train: Ratings) -> NDArray[np.float64]:
    """(2·n_ratings + n_users + n_items,) square roots of the numbers of visits since a row's last visit.

    Each visit has two, one for its user and one for its item. After these come the numbers at the
    end of a round, of all users, then of all items.
    """
    last_of_user, last_of_item = np.zeros(train.n_users, np.int64), np.zeros(train.n_items, np.int64)
    gaps = np.empty(2 * len(train) + train.n_users + train.n_items)
    _count_visits(train.users, train.items, last_of_user, last_of_item, gaps)
    return np.sqrt(gaps)


@compiled(
    example(
        last_of_user=np.zeros(USERS, np.int64),
        last_of_item=np.zeros(ITEMS, np.int64),
        gaps=np.zeros(2 * len(RATED) + USERS + ITEMS),
    )
)
def _count_visits(users, items, last_of_user, last_of_item, gaps):
    n = len(users)
    for x in range(n):
        u, i = users[x], items[x]
        gaps[2 * x], gaps[2 * x + 1] = x - last_of_user[u], x - last_of_item[i]
        last_of_user[u] = last_of_item[i] = x
    for u in range(len(last_of_user)):
        gaps[2 * n + u] = n - last_of_user[u]
    for i in range(len(last_of_item)):
        gaps[2 * n + len(last_of_user) + i] = n - last_of_item[i]


def _plain_round(
    group: FactorLanes, publish: Publish, train: Ratings, roots: NDArray[np.float64], of: Round
) -> None:
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
def langevin_round(
    group: FactorLanes, noise: LaneNoise, train: Ratings, roots: NDArray[np.float64], of: Round
) -> None:
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
    d, w, n = len(factors_of), len(width_of), len(values)
    row, dot = (d + 1) * w, np.empty(w)
    for x in range(n):
        p_at, q_at = np.int64(users[x]) * row, np.int64(items[x]) * row
        _shake(P, p_at, roots[2 * x], unit, 2 * x, noise, factors_of, width_of)
        _shake(Q, q_at, roots[2 * x + 1], unit, 2 * x + 1, noise, factors_of, width_of)
        for e in range(w):
            dot[e] = 0
        for f in range(d):
            for e in range(w):
                dot[e] += np.float64(P[p_at + f * w + e]) * Q[q_at + f * w + e]
        for e in range(w):
            bias = np.float64(P[p_at + d * w + e]) + Q[q_at + d * w + e]
            dot[e] = drift[e] * (values[x] - dot[e] - bias)
        for f in range(d + 1):
            for e in range(w):
                at = f * w + e
                p, q = np.float64(P[p_at + at]), np.float64(Q[q_at + at])
                along_q, along_p = (q, p) if f < d else (1.0, 1.0)
                P[p_at + at] = np.float32((1 - of_users[p_at + at]) * p + dot[e] * along_q)
                Q[q_at + at] = np.float32((1 - of_items[q_at + at]) * q + dot[e] * along_p)
    for u in range(len(P) // row):
        _shake(P, u * row, roots[2 * n + u], unit, 2 * n + u, noise, factors_of, width_of)
    behind = 2 * n + len(P) // row
    for i in range(len(Q) // row):
        _shake(Q, i * row, roots[behind + i], unit, behind + i, noise, factors_of, width_of)


@compiled()
def _shake(P, at, root, unit, place, noise, factors_of, width_of):
    """Adds noise of `root` times its scale to one row. If `root` is 0, adds none."""
    if root == 0:
        return
    d, w, wide = len(factors_of), len(width_of), doubles(width_of)
    clean = np.empty(w)
    for f in range(d + 1):
        for e in range(w):
            clean[e] = P[at + f * w + e] / root
        store(clean, 0, released(load(clean, 0, wide), unit[place * (d + 1) + f], noise, wide))
        for e in range(w):
            P[at + f * w + e] = np.float32(clean[e] * root)
