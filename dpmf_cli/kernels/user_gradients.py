"""Gradients of the item factors, clipped user by user: what one user adds has a bounded L2 norm."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.examples import ITEMS, USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.lane_groups import Grouped, on_each_group, pad
from dpmf_cli.ratings import Ratings


def clipped_item_gradients(
    models: Grouped[FactorLanes], train: Ratings, sampled: NDArray[np.int64], clip: float
) -> NDArray[np.float64]:
    """(n_items, d, E) Σ_u g_u·min(1, C/‖g_u‖) over the `sampled` users.

    Row i of g_u is e_ui·p_u, where e_ui is the prediction's error. A user whose ‖g_u‖ is not finite adds nothing.

    Everything is in double precision: a user's part is at most C·(1 + 10⁻¹²), and sums are rounded by parts in 10¹⁶.
    In single precision one more user changes how the parts of all others are rounded, and moves sums by more than C.
    """
    equal = np.ones(train.n_users)
    return np.concatenate(
        [
            _clipped_sums(group, _users(group)[:, :-1], train, sampled, equal, clip)[0][..., : group.lanes]
            for group in models.groups
        ],
        axis=-1,
    )


def clipped_item_sums(
    models: Grouped[FactorLanes],
    directions: NDArray[np.float64],
    train: Ratings,
    weights: NDArray[np.float64],
    clip: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n_items, D, E) Σ_u g_u·min(1, C/‖g_u‖) over all users, and (n_users, E) each user's factor min(1, C/‖g_u‖).

    Row i of g_u is w_u·e_ui·z_u, where e_ui is the prediction's error. The factor is 0 for users without ratings, and
    for users whose ‖g_u‖ is not finite.

    directions  (n_users, D, E) z; weights (n_users,) w; clip (E,) C. Precision as in `clipped_item_gradients`
    """
    everybody, found = np.arange(train.n_users), []
    for group in models.groups:
        along, most = (pad(each[..., group.part], group.width, np.float64) for each in (directions, clip))
        sums, left = _clipped_sums(group, along, train, everybody, weights, most)
        found.append((sums[..., : group.lanes], left[:, : group.lanes]))
    sums, left = (np.concatenate(each, axis=-1) for each in zip(*found, strict=True))
    return sums, np.where(train.user_counts[:, None] > 0, left, 0.0)


def _users(group: FactorLanes) -> NDArray[np.float32]:
    """(n_users, d + 1, width) the users' factors and effects."""
    return group.users.reshape(-1, group.factors + 1, group.width)


def _clipped_sums(
    group: FactorLanes,
    directions: NDArray[np.floating],
    train: Ratings,
    sampled: NDArray[np.int64],
    weights: NDArray[np.float64],
    clip: float | NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n_items, D, width) the sums of one group of models, and (n_users, width) the factors of the sampled users."""
    sums = np.zeros((train.n_items, directions.shape[1], group.width))
    left = np.zeros((train.n_users, group.width))
    items = group.items.reshape(train.n_items, group.factors + 1, group.width)
    ratings = train.user_starts, train.items, train.values
    most = np.broadcast_to(np.asarray(clip, np.float64), group.width).copy()
    along = directions.astype(np.float64)
    _add_clipped(sampled, *ratings, _users(group), items, along, weights, most, sums, left)
    return sums, left


@on_each_group
def descend_items(
    group: FactorLanes, gradients: NDArray[np.float64], rates: NDArray[np.float64], ridge: float
) -> None:
    """Sets Q ← Q + η(gradients − w·Q), in place; gradients (n_items, d, E), rates (E,) η, ridge w."""
    rows = group.rows("items")
    own = rows.astype(np.float64)
    rows[:] = own + rates[group.part] * (gradients[..., group.part] - ridge * own)


@compiled(
    example(
        sampled=[0, 1, 3],
        P=lambda s: numbers(USERS, 4, 8),
        Q=lambda s: numbers(ITEMS, 4, 8),
        directions=lambda s: numbers(USERS, 3, 8),
        weights=np.linspace(0.5, 1, USERS),
        clip=np.linspace(0.1, 1, 8),
        sums=np.zeros((ITEMS, 3, 8)),
        left=np.zeros((USERS, 8)),
    )
)
def _add_clipped(sampled, starts, items, values, P, Q, directions, weights, clip, sums, left):
    d, w, count = P.shape[1] - 1, P.shape[2], directions.shape[1]
    longest = 0
    for u in sampled:
        longest = max(longest, starts[u + 1] - starts[u])
    errors, own, along = np.empty((longest, w)), np.empty((d, w)), np.empty((count, w))
    squares, length, part = np.empty(w), np.empty(w), np.empty(w)
    for u in sampled:
        length[:] = 0
        for f in range(d):
            for e in range(w):
                own[f, e] = P[u, f, e]
        for f in range(count):
            for e in range(w):
                along[f, e] = directions[u, f, e]
                length[e] += along[f, e] * along[f, e]
        squares[:] = 0
        first = starts[u]
        for x in range(first, starts[u + 1]):
            i = items[x]
            error = errors[x - first]
            for e in range(w):
                error[e] = values[x] - np.float64(Q[i, d, e]) - np.float64(P[u, d, e])
            for f in range(d):
                for e in range(w):
                    error[e] -= own[f, e] * Q[i, f, e]
            for e in range(w):
                squares[e] += error[e] * error[e]
        for e in range(w):
            norm = weights[u] * np.sqrt(squares[e] * length[e])
            left[u, e] = clip[e] / norm if norm > clip[e] else 1.0
            if not norm < np.inf:  # the presence of such a user must not show
                left[u, e] = 0.0
                along[:, e] = 0.0
                errors[: starts[u + 1] - first, e] = 0.0
            part[e] = weights[u] * left[u, e]
        for x in range(first, starts[u + 1]):
            error = errors[x - first]
            to = sums[items[x]]
            for f in range(count):
                for e in range(w):
                    to[f, e] += part[e] * error[e] * along[f, e]
