"""Frank–Wolfe for a matrix whose rows are each known to their user alone: the users' steps, and the released Gram.

Element i of user u's row of Y is p_u·q_i, over the steps taken so far. The vectors q hold the released
eigenvectors, and p_u holds the user's coefficients.

Σ_u a_u·a_uᵀ over the items is released for several ε side by side; a_u are predictions minus ratings of user u.
One visit of two ratings adds their products to eight triangles. A row of the eight triangles, eight numbers for
each item, is summed in the second-level cache. The row gets its noise there, and is then written to the triangle
of each ε. That takes a quarter of the time of `covariance.weighted_products` for each ε.
"""

from collections.abc import Iterator

import numpy as np

from dpmf_cli.core.arrays import Doubles, Singles
from dpmf_cli.core.compiled.lane_groups import LaneGroup, aligned, on_each_group, pad
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.covariance import triangle_size, weighted_products
from dpmf_cli.kernels.examples import ITEMS, RATED, example, numbers
from dpmf_cli.kernels.factors import FactorLanes, FactorModel
from dpmf_cli.kernels.lane_math import below, clamp, sqrt
from dpmf_cli.kernels.lanes import doubles, load, splat, store
from dpmf_cli.kernels.releasing import released, unit_and_lanes
from dpmf_cli.kernels.sums import Columns, item_major, sums_by
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Publish, Release, noisy_kernel


@on_each_group
def step_towards(
    group: FactorLanes,
    own: Ratings,
    step: int,
    singular: Doubles,
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
    divisors = group.of_grid(singular, np.float64)
    _step(Columns.of(own), step, divisors, keep, pull, clip, limit, *group.arguments)


@compiled(example(step=lambda s: s.d - 1, singular=lambda s: np.arange(s.w) / 2, keep=0.75, pull=0.8))
def _step(ratings, step, singular, keep, pull, clip, limit, P, Q, factors_of, width_of):
    _, items, values, starts = ratings
    d, w, wide = len(factors_of), len(width_of), doubles(width_of)
    row, one, longest = (d + 1) * w, splat(1.0, wide), splat(clip, wide)
    most, least = splat(limit, wide), load(singular, 0, wide)
    rows = np.empty((np.diff(starts).max() if len(starts) > 1 else 0) * w)
    for u in range(len(starts) - 1):
        p_at, first, last = u * row, starts[u], starts[u + 1]
        along, square, length = wide, wide, wide
        for x in range(first, last):
            q_at, own = np.int64(items[x]) * row, wide
            for at in range(0, step * w, w):
                own = own + load(P, p_at + at, wide) * load(Q, q_at + at, wide)
            store(rows, (x - first) * w, own)
            effects = splat(values[x], wide) - load(Q, q_at + d * w, wide) - load(P, p_at + d * w, wide)
            left = own - effects
            along = along + left * load(Q, q_at + step * w, wide)
            length = length + left * left
        root = sqrt(length)
        along = along * (longest / below(longest, root, root, longest))
        part = below(wide, least, clamp(along / least, wide - one, one), wide)
        for x in range(first, last):
            q = load(Q, np.int64(items[x]) * row + step * w, wide)
            moved = splat(keep, wide) * load(rows, (x - first) * w, wide) - splat(pull, wide) * part * q
            square = square + moved * moved
        norm = sqrt(square)
        scale = below(most, norm, most / norm, one)
        for at in range(p_at, p_at + step * w, w):
            store(P, at, scale * splat(keep, wide) * load(P, at, wide))
        store(P, p_at + step * w, scale * splat(-pull, wide) * part)


WIDTH = 8
"""Lanes of a row. With 16 float64 for each item, a row no longer fits in the second-level cache beside the ratings.
Each ε then takes 1.6 times as long."""
MOST_HELD = 1 << 28
"""Most bytes of triangles that are held side by side, unless a single triangle takes more."""


def side_by_side(n_items: int) -> int:
    """Returns how many ε are released at once."""
    return max(1, min(WIDTH, MOST_HELD // (4 * triangle_size(n_items))))


def released_grams(
    model: FactorModel, train: Ratings, noise: Release, longest: float
) -> Iterator[tuple[int, Singles]]:
    """Yields (the place in the grid, the packed triangle) for each ε; the triangle is Σ_u a_u·a_uᵀ with its noise.

    a_u = P_Ω(predictions of u − ratings of u), scaled down to ‖a_u‖₂ ≤ `longest`. A triangle is overwritten once the
    next one is asked for.
    """
    at_once, size = side_by_side(train.n_items), triangle_size(train.n_items)
    room, predicted = np.empty((at_once, size), np.float32), aligned((len(train), WIDTH))
    for group in model.groups:
        predictions = group.predict(train.users, train.items)
        for first in range(0, group.lanes, at_once):
            lanes = slice(first, min(first + at_once, group.lanes))
            predicted[:] = pad(predictions[:, lanes], WIDTH)
            place = group.part.start + first
            part = slice(place, place + lanes.stop - first)
            triangles = room[: lanes.stop - first]
            noise.inside(release_grams, LaneGroup(part), train, predicted, longest, triangles)
            yield from enumerate(triangles, place)


def _plain_release(
    group: LaneGroup, publish: Publish, train: Ratings, predicted: Singles, longest: float, out: Singles
) -> None:
    """The plain twin. It measures the elements of all triangles."""
    clean = []
    for each in predicted[:, : group.lanes].T:
        left = each.astype(np.float64) - train.values
        norms = np.sqrt(sums_by(train.users, left**2, train.n_users))
        clean.append(weighted_products(train, left, (longest / np.maximum(norms, longest)) ** 2))
    out[:] = publish(np.stack(clean, axis=1)).T


@noisy_kernel(_plain_release)
def release_grams(
    group: LaneGroup, noise: LaneNoise, train: Ratings, predicted: Singles, longest: float, out: Singles
) -> None:
    """Sets out ← grid(Σ_u a_u·a_uᵀ + noise) in float64, then rounds to float32; noise unit (size,).

    A user's part is at most its bound times 1 + 10⁻¹².

    predicted  (n_ratings, WIDTH) float32 predictions of the models; unused lanes repeat the last model
    longest    the limit to which ‖a_u‖₂ is clipped, where a_u = predicted − ratings
    out        (ε, size) a packed triangle for each ε
    """
    given = Columns.of(train), item_major(train), predicted.reshape(-1), longest
    _release_grams(*given, *unit_and_lanes(noise, WIDTH), out, (0,) * WIDTH)


@compiled(
    example(
        predicted=lambda s: 3.5 + 2 * numbers(len(RATED) * s.w),
        longest=0.9,
        out=lambda s: np.zeros((s.w - 1, triangle_size(ITEMS))),
    )
)
def _release_grams(ratings, raters, predicted, longest, unit, noise, out, width_of):
    users, items, values, user_starts = ratings
    w, wide = len(width_of), doubles(width_of)
    item_starts, _, positions = raters
    n_users, n_items = len(user_starts) - 1, len(item_starts) - 1
    weights, sums, noisy = np.empty(n_users * w), np.empty(n_items * w), np.empty(n_items * w, np.float32)
    for u in range(n_users):
        square = wide
        for x in range(user_starts[u], user_starts[u + 1]):
            left = _left(predicted, values, x, width_of)
            square = square + left * left
        store(weights, u * w, square)
    for x in range(len(weights)):
        ratio = longest / max(np.sqrt(weights[x]), longest)
        weights[x] = ratio * ratio
    row = 0
    for i in range(n_items):
        sums[i * w :] = 0
        for x in range(item_starts[i], item_starts[i + 1]):
            first = positions[x]
            user = np.int64(users[first])
            factor = load(weights, user * w, wide) * _left(predicted, values, first, width_of)
            for y in range(first, user_starts[user + 1]):
                at = np.int64(items[y]) * w
                product = factor * _left(predicted, values, y, width_of)
                store(sums, at, load(sums, at, wide) + product)
        for j in range(i, n_items):
            clean = load(sums, j * w, wide)
            store(noisy, j * w, released(clean, unit[row + j - i], noise, wide))
        for e in range(len(out)):
            for j in range(i, n_items):
                out[e, row + j - i] = noisy[j * w + e]
        row += n_items - i


@compiled(inline="always")
def _left(predicted, values, x, width_of):
    """Returns the models' predictions minus rating x, in float64."""
    wide = doubles(width_of)
    return load(predicted, x * len(width_of), wide) - splat(values[x], wide)
