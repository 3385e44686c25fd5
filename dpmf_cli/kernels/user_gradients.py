"""Gradients of the item factors, clipped user by user: what one user adds has a bounded L2 norm."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.examples import ITEMS, USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.lane_groups import Grouped, on_each_group
from dpmf_cli.ratings import Ratings


def clipped_item_gradients(
    models: Grouped[FactorLanes], train: Ratings, sampled: NDArray[np.int64], clip: float
) -> NDArray[np.float64]:
    """(n_items, d, E) Σ_u g_u·min(1, C/‖g_u‖) over the `sampled` users; row i of g_u is e_ui·p_u, e what is left.
    A user whose ‖g_u‖ is not finite adds nothing.

    All of it in double precision: a user's part is C·(1 + 10⁻¹²) at most, and sums are rounded by parts in 10¹⁶. In
    single precision one user more rounds anew what all others add, and moves sums by more than C.
    """
    return np.concatenate(
        [_clipped_sums(group, train, sampled, clip)[..., : group.lanes] for group in models.groups], axis=-1
    )


def _clipped_sums(
    group: FactorLanes, train: Ratings, sampled: NDArray[np.int64], clip: float
) -> NDArray[np.float64]:
    """(n_items, d, width) the sums of one group of models."""
    sums = np.zeros((train.n_items, group.factors, group.width))
    users = group.users.reshape(train.n_users, group.factors + 1, group.width)
    items = group.items.reshape(train.n_items, group.factors + 1, group.width)
    _add_clipped(sampled, train.user_starts, train.items, train.values, users, items, clip, sums)
    return sums


@on_each_group
def descend_items(
    group: FactorLanes, gradients: NDArray[np.float64], rates: NDArray[np.float64], ridge: float
) -> None:
    """Q ← Q + η(gradients − w·Q), in place; gradients (n_items, d, E), rates (E,) η, ridge w."""
    rows = group.rows("items")
    own = rows.astype(np.float64)
    rows[:] = own + rates[group.part] * (gradients[..., group.part] - ridge * own)


@compiled(
    example(
        sampled=[0, 1, 3],
        P=lambda s: numbers(USERS, 4, 8),
        Q=lambda s: numbers(ITEMS, 4, 8),
        sums=np.zeros((ITEMS, 3, 8)),
    )
)
def _add_clipped(sampled, starts, items, values, P, Q, clip, sums):
    d, w = sums.shape[1], sums.shape[2]
    longest = 0
    for u in sampled:
        longest = max(longest, starts[u + 1] - starts[u])
    errors, own = np.empty((longest, w)), np.empty((d, w))
    squares, length, part = np.empty(w), np.empty(w), np.empty(w)
    for u in sampled:
        length[:] = 0
        for f in range(d):
            for e in range(w):
                own[f, e] = P[u, f, e]
                length[e] += own[f, e] * own[f, e]
        squares[:] = 0
        first = starts[u]
        for x in range(first, starts[u + 1]):
            i = items[x]
            left = errors[x - first]
            for e in range(w):
                left[e] = values[x] - np.float64(Q[i, d, e]) - np.float64(P[u, d, e])
            for f in range(d):
                for e in range(w):
                    left[e] -= own[f, e] * Q[i, f, e]
            for e in range(w):
                squares[e] += left[e] * left[e]
        for e in range(w):
            norm = np.sqrt(squares[e] * length[e])
            part[e] = clip / norm if norm > clip else 1.0
            if not norm < np.inf:  # whether such a user is there must not show
                part[e] = 0.0
                own[:, e] = 0.0
                errors[: starts[u + 1] - first, e] = 0.0
        for x in range(first, starts[u + 1]):
            left = errors[x - first]
            to = sums[items[x]]
            for f in range(d):
                for e in range(w):
                    to[f, e] += part[e] * left[e] * own[f, e]
