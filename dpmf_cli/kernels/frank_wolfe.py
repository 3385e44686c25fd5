"""The users' part of a step of Frank–Wolfe, for a matrix whose rows are each known to their user alone.

Element i of user u's row of Y is p_u·q_i, over the steps taken so far. The vectors q hold the released eigenvectors,
and p_u holds the user's coefficients.
"""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.examples import ITEMS, USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.lane_groups import on_each_group, pad
from dpmf_cli.ratings import Ratings


@on_each_group
def step_towards(
    group: FactorLanes,
    own: Ratings,
    step: int,
    singular: NDArray[np.float64],
    *,
    keep: float,
    pull: float,
    clip: float,
    limit: float,
) -> None:
    """Takes every user's step along v, which is the items' factor number `step`, in place. Later factors are 0.

        a = P_Ω(Y_u − x_u),  x_ui = r_ui − effects,  scaled down to ‖a‖₂ ≤ clip
        û = a·v/singular, within ±1, 0 where `singular` is 0
        Y_u ← keep·Y_u − pull·û·v,  then scaled down to ‖P_Ω(Y_u)‖₂ ≤ limit

    own       the ratings of the model's users
    singular  (E,) divisors of a·v
    """
    _step(
        own.user_starts,
        own.items,
        own.values,
        group.users.reshape(-1, group.factors + 1, group.width),
        group.items.reshape(-1, group.factors + 1, group.width),
        step,
        pad(singular[group.part], group.width, np.float64),
        keep,
        pull,
        clip,
        limit,
    )


@compiled(
    example(
        P=lambda s: numbers(USERS, 4, 8),
        Q=lambda s: numbers(ITEMS, 4, 8),
        step=2,
        singular=np.arange(8) / 2,
        keep=0.75,
        pull=0.8,
    )
)
def _step(starts, items, values, P, Q, step, singular, keep, pull, clip, limit):
    d, w = P.shape[1] - 1, P.shape[2]
    longest = 0
    for u in range(len(starts) - 1):
        longest = max(longest, starts[u + 1] - starts[u])
    rows, along, part = np.empty((longest, w)), np.empty(w), np.empty(w)
    square, length = np.empty(w), np.empty(w)
    for u in range(len(starts) - 1):
        first, last = starts[u], starts[u + 1]
        along[:], square[:], length[:] = 0, 0, 0
        for x in range(first, last):
            q, row = Q[items[x]], rows[x - first]
            row[:] = 0
            for f in range(step):
                for e in range(w):
                    row[e] += np.float64(P[u, f, e]) * q[f, e]
            for e in range(w):
                left = row[e] - (np.float64(values[x]) - q[d, e] - P[u, d, e])
                along[e] += left * q[step, e]
                length[e] += left * left
        for e in range(w):
            along[e] *= clip / max(clip, np.sqrt(length[e]))
            part[e] = min(1.0, max(-1.0, along[e] / singular[e])) if singular[e] > 0 else 0.0
        for x in range(first, last):
            q, row = Q[items[x]], rows[x - first]
            for e in range(w):
                moved = keep * row[e] - pull * part[e] * q[step, e]
                square[e] += moved * moved
        for e in range(w):
            norm = np.sqrt(square[e])
            scale = limit / norm if norm > limit else 1.0
            for f in range(step):
                P[u, f, e] = np.float32(scale * keep * P[u, f, e])
            P[u, step, e] = np.float32(-scale * pull * part[e])
