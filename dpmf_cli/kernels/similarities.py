"""Item neighbourhoods with each model's own similarities: predictions from them, and steps of gradient descent.

Wang and Tang 2017, equations 2, 4 and 5. The similarities of an item to its neighbours are a row. Because a rating
(u, i) has a gradient in the row of item i only, predictions and steps are made item by item: a row, its gradient and
the averages that it needs stay in the nearest cache.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Doubles, Flags, Floats, Ints, Longs, Singles
from dpmf_cli.core.compiled.lane_groups import LaneGroup, aligned, groups, on_each_group, pad, padded_width
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.examples import ITEMS, RATED, example, numbers
from dpmf_cli.kernels.lane_math import any_below, below, cast, clamp, fma, sqrt
from dpmf_cli.kernels.lanes import doubles, load, plain_dot, splat, store, zeros
from dpmf_cli.kernels.releasing import GUARD, published_rows, released, unit_and_lanes, without_noise
from dpmf_cli.kernels.sums import Columns, RatingsByRow, item_major
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Publish, noisy_kernel

LEAST_NORM = np.float32(1e-30)
"""Replaces 0 in denominators. The numerator is then 0 too, or there is nothing to predict from."""


class ItemRows(NamedTuple):
    """The neighbours, similarities and averages of `SimilarityLanes`, as kernels take them."""

    neighbours: Ints
    S: Singles
    averages: Singles


@dataclass(frozen=True)
class SimilarityLanes(LaneGroup):
    """One group of at most 16 models of item neighbourhoods, side by side.

    neighbours  (n_items, k) int32: the neighbours of each item, all different; −1 fills up
    values      flat float32, rows of k vectors of `width` lanes: s_ij for the neighbours j of item i, in their order
    averages    flat float32, a vector for each item: r̄_i, rating scale
    """

    neighbours: Ints
    values: Singles
    averages: Singles

    @property
    def item_rows(self) -> ItemRows:
        return ItemRows(self.neighbours, self.values, self.averages)

    def rows(self) -> Singles:
        """(n_items, k, lanes) the similarities: a view, which plain code may change."""
        return self.values.reshape(*self.neighbours.shape, self.width)[..., : self.lanes]

    def item_averages(self) -> Singles:
        """(n_items, lanes) r̄, rating scale: a view."""
        return self.averages.reshape(-1, self.width)[:, : self.lanes]

    def predict(self, train: Ratings, users: Ints, items: Ints) -> Singles:
        """(n, lanes) r̂_ui = r̄_i + Σ_j s_ij(r_uj − r̄_j)/Σ_j |s_ij| over the neighbours j that u rated in `train`.

        r̂_ui = r̄_i if there are no such neighbours, or if all their similarities are 0.
        """
        out = np.empty(len(users) * self.width, np.float32)
        order = np.argsort(items, kind="stable")
        _predict(users, items, order, Columns.of(train), self.item_rows, out, self.width_of)
        return out.reshape(len(users), self.width)[:, : self.lanes]


@dataclass(frozen=True)
class NeighbourhoodModel:
    """r̂_ui = r̄_i + Σ_j s_ij(r_uj − r̄_j)/Σ_j |s_ij| for each ε, the grid in groups of lanes.

    train  the ratings r_uj, without noise; a prediction for a user uses that user's own ratings only
    """

    train: Ratings
    groups: Sequence[SimilarityLanes]

    def predict(self, users: Ints, items: Ints) -> Singles:
        return on_each_group(SimilarityLanes.predict)(self, self.train, users, items)

    @property
    def published(self) -> dict[str, NDArray[Any]]:
        """neighbours (n_items, k), similarities (n_items, k, E), averages (n_items, E)."""
        return {
            "neighbours": self.groups[0].neighbours,
            "similarities": on_each_group(SimilarityLanes.rows)(self),
            "averages": on_each_group(SimilarityLanes.item_averages)(self),
        }

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], entry: Any, own: Ratings) -> Self:
        """The model whose `published` arrays are `arrays`, for the users whose ratings are `own`."""
        return cls(own, _groups(arrays["neighbours"], arrays["similarities"], arrays["averages"]))


def neighbourhood_model(
    train: Ratings, neighbours: Ints, similarities: Singles | float, averages: Doubles
) -> NeighbourhoodModel:
    """A model with similarities common to all models of a grid, and with each model's own averages.

    neighbours (n_items, k), −1 fills up; similarities (n_items, k) or one number; averages (n_items, E).
    """
    common = np.broadcast_to(np.atleast_2d(np.asarray(similarities, np.float32)), neighbours.shape)[..., None]
    return NeighbourhoodModel(train, _groups(neighbours, common, averages))


def _groups(neighbours: Ints, similarities: Singles, averages: Floats) -> list[SimilarityLanes]:
    """Models of averages (n_items, E) and similarities (n_items, k, E), or (n_items, k, 1) for all models."""

    def of(part: slice) -> SimilarityLanes:
        width = padded_width(part.stop - part.start)
        flat = aligned((*neighbours.shape, width))
        flat[:] = similarities if similarities.shape[2] == 1 else pad(similarities[..., part], width)
        return SimilarityLanes(part, neighbours, flat.reshape(-1), pad(averages[:, part], width).reshape(-1))

    return [of(part) for part in groups(averages.shape[1])]


@compiled()
def index_row(row, slots, sign):
    """Notes the place of each neighbour in a row (sign 1), or forgets it again (sign −1)."""
    for a in range(len(row)):
        if row[a] >= 0:
            slots[row[a]] = a if sign > 0 else -1


@compiled(example())
def _predict(users, items, order, ratings, rows, out, width_of):
    _, rated, values, user_starts = ratings
    neighbours, S, averages = rows
    w, like = len(width_of), zeros(width_of)
    k, slots = neighbours.shape[1], np.full(neighbours.shape[0], -1, np.int32)
    found = np.empty(neighbours.shape[0] + 1, np.int64)
    tiny, last = splat(LEAST_NORM, like), -1
    for at in order:
        i, u = np.int64(items[at]), users[at]
        if i != last:
            if last >= 0:
                index_row(neighbours[last], slots, -1)
            index_row(neighbours[i], slots, 1)
            last = i
        count, top, norm = 0, like, like
        for x in range(user_starts[u], user_starts[u + 1]):  # the places of the neighbours that u rated
            found[count] = x
            count += slots[rated[x]] >= 0 and rated[x] != i
        for a in range(count):
            j = np.int64(rated[found[a]])
            s = load(S, (i * k + slots[j]) * w, like)
            top = fma(s, splat(values[found[a]], like) - load(averages, j * w, like), top)
            norm = norm + abs(s)
        norm = below(norm, tiny, tiny, norm)
        store(out, np.int64(at) * w, load(averages, i * w, like) + top / norm)


@dataclass(frozen=True)
class LearnedRatings:
    """The ratings from whose errors a step learns, and the most that each rating may contribute.

    raters    the item-major view of `train`
    limits    (n_users,) float32: the limit to which the norm of the gradient of one of the user's ratings is clipped;
              inf for none
    norm      2 or 1. For 1, the bound √m·‖g‖₂ on ‖g‖₁ is clipped, where m of the neighbours were rated by the user
    """

    train: Ratings
    raters: RatingsByRow
    limits: Singles
    norm: int = 2

    @classmethod
    def of(cls, train: Ratings, limits: Doubles | float = np.inf, norm: int = 2) -> "LearnedRatings":
        """The ratings of `train`, each contributing at most `limits` (n_users,) in that norm."""
        return cls(train, item_major(train), np.full(train.n_users, limits, np.float32), norm)


class SimilarityStep(NamedTuple):
    """One step of gradient descent on ½Σe² + λ/2·Σs²:

        e  = clamp(r̂_ui − r_ui, ±error_bound),   D = max(Σ_j |s_ij|, floor)
        g_j = e·(r_uj − r̄_j − (r̂_ui − r̄_i)·sgn s_ij)/D,  scaled to the user's limit, sgn 0 = 1
        s_ij ← s_ij − rate·(Σ_u g_j + λ·s_ij)

    If D = 0, there is no gradient.

    sampled         (n_ratings,) bool, in the order of the ratings: which of them take part
    rates           (E,) the learning rate of each model of the grid
    regularization  λ
    error_bound, floor  inf and 0 for none
    everywhere      whether all similarities get noise, or only those for which a sampled rating has a gradient
    """

    sampled: Flags
    rates: Doubles
    regularization: float = 0.0
    error_bound: float | np.float32 = np.inf
    floor: float | np.float32 = 0.0
    everywhere: bool = True


def _plain_descend(
    group: SimilarityLanes, publish: Publish, learned: LearnedRatings, step: SimilarityStep
) -> None:
    """The Python reference, which measures the sums Σ_u g_j that get noise; number i·k + a is for neighbour a of item
    i."""
    s, (n_items, k) = group.rows(), group.neighbours.shape
    sums, met = np.zeros((n_items * k, group.lanes)), np.full(n_items * k, step.everywhere)
    for x in np.flatnonzero(step.sampled).tolist():
        places, gradient = _plain_gradient(group, learned, step, x)
        sums[places] += gradient
        met[places] = True
    noisy = published_rows(publish, sums, np.flatnonzero(met))
    slope = noisy.reshape(s.shape) + step.regularization * s.astype(np.float64)
    s[:] = s.astype(np.float64) - step.rates[group.part] * slope


def _plain_gradient(
    group: SimilarityLanes, learned: LearnedRatings, step: SimilarityStep, x: int
) -> tuple[Longs, Floats]:
    """The gradient of rating number x, to the bit: the places (m,) of its similarities, and g (m, lanes)."""
    train, averages = learned.train, group.item_averages()
    u, i = train.users[x], int(train.items[x])
    rated = np.arange(train.user_starts[u], train.user_starts[u + 1])
    row = {int(j): a for a, j in enumerate(group.neighbours[i]) if j >= 0 and j != i}
    rated = rated[[int(j) in row for j in train.items[rated]]]
    slots = np.array([row[int(j)] for j in train.items[rated]], np.int64)
    s = group.rows()[i, slots]
    signs = np.where(s < 0, np.float32(-1), np.float32(1))
    centred = train.values[rated, None] - averages[train.items[rated]]
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        norm = plain_dot(s, signs)
        offset = plain_dot(s, centred) / np.where(norm < LEAST_NORM, LEAST_NORM, norm)
        least = np.maximum(np.float32(step.floor), LEAST_NORM)
        divisor = np.where(norm < least, least, norm)
        error = np.clip(averages[i] + offset - train.values[x], -step.error_bound, step.error_bound)
        move = np.where(divisor > LEAST_NORM, error / divisor, 0).astype(np.float32)
        raw = centred - offset * signs
        slopes = np.where(np.abs(raw) < np.inf, raw, 0).astype(np.float32)
        if learned.limits[u] < np.inf:
            root = np.sqrt(max(len(rated), 1)) if learned.norm == 1 else 1
            most = GUARD * learned.limits[u] / np.float32(root)
            length = np.abs(move) * np.sqrt(plain_dot(slopes, slopes))
            factor = np.where(length > most, most / length, (length < np.inf).astype(np.float32))
            move = np.where(length < np.inf, move, 0) * factor
    return i * group.neighbours.shape[1] + slots, move * slopes


@noisy_kernel(_plain_descend)
def descend_noisy_similarities(
    group: SimilarityLanes, noise: LaneNoise | None, learned: LearnedRatings, step: SimilarityStep
) -> None:
    """Takes one step with noise on the sums of gradients, in place. Without noise, it is `descend_similarities`.

        s_ij ← s_ij − rate·(grid(Σ_u g_j + noise) + λ·s_ij)

    Sums are float64. In float32 a contribution would also move the rounding of all contributions added after it.

    noise  unit (n_items·k,), in the order of the similarities
    """
    rates = np.zeros(group.width)  # unused lanes wait
    rates[: group.lanes] = step.rates[group.part]
    train = learned.train
    averages, centred = group.item_averages(), None
    if (averages == averages[:, :1]).all():  # the same in all models, as in published mode
        centred = train.values - averages[train.items, 0]
    bound, floor = np.float32(step.error_bound), np.float32(step.floor)
    _descend(
        Columns.of(train),
        learned.raters,
        step._replace(rates=rates, error_bound=bound, floor=floor),
        learned.limits,
        learned.norm,
        centred,
        group.item_rows,
        *unit_and_lanes(noise, group.width),
        aligned((group.neighbours.shape[1] * group.width,), np.float64),
        aligned((train.n_items * group.width,)),
        group.width_of,
    )


descend_similarities = without_noise(descend_noisy_similarities)
"""(models, learned, step): takes one step without noise, in place."""


@compiled(
    example(
        sampled=np.arange(len(RATED)) != 3,
        limits=[0.4, np.inf, 1.0, 0.2],
        of_norm=1,
        centred=numbers(len(RATED)),
        rates=lambda s: np.linspace(0, 0.1, s.w),
        floor=0.1,
        residuals=lambda s: np.zeros(ITEMS * s.w),
    )
)
def _descend(
    ratings, raters, step, limits, of_norm, centred, rows, unit, noise, gradient, residuals, width_of
):
    """Visits item after item. centred: (n_ratings,) r_uj − r̄_j if all models have the same averages, else None."""
    users, rated, values, user_starts = ratings
    neighbours, S, averages = rows
    starts, _, positions = raters
    w, like, wide = len(width_of), zeros(width_of), doubles(width_of)
    n_items, k = neighbours.shape
    slots, met = np.full(n_items, -1, np.int32), np.empty(k, np.bool_)
    # Unsigned numbers: an index that may be negative costs a comparison in each visit.
    width = np.uint64(w)
    places, others = np.empty(n_items + 1, np.uint32), np.empty(n_items + 1, np.uint32)
    owns = np.empty(n_items + 1, np.float32)
    one, tiny = splat(np.float32(1), like), splat(LEAST_NORM, like)
    endless, weight = splat(np.float32(np.inf), like), splat(step.regularization, wide)
    low, high = splat(-step.error_bound, like), splat(step.error_bound, like)
    least = splat(max(step.floor, LEAST_NORM), like)
    for i in range(n_items):
        gradient[:], met[:] = 0, step.everywhere
        index_row(neighbours[i], slots, 1)
        slots[i] = -1
        row = S[i * k * w : (i + 1) * k * w]
        average = load(averages, np.int64(i) * w, like)
        for at in range(starts[i], starts[i + 1]):
            x = positions[at]
            if not step.sampled[x]:
                continue
            u = users[x]
            count = np.uint64(0)
            for y in range(np.uint64(user_starts[u]), np.uint64(user_starts[u + 1])):
                j = np.uint32(rated[y])
                slot = slots[j]
                places[count] = slot
                if centred is None:
                    others[count] = j
                    owns[count] = values[y]
                else:
                    owns[count] = centred[y]
                count += np.uint64(slot >= 0)
            top, norm = like, like
            for a in range(count):
                s, own = load(row, np.uint64(places[a]) * width, like), splat(owns[a], like)
                if centred is None:
                    own = own - load(averages, np.uint64(others[a]) * width, like)
                    store(residuals, a * width, own)
                top, norm = fma(s, own, top), norm + abs(s)
            offset = top / below(norm, tiny, tiny, norm)
            error = average + offset - splat(values[x], like)
            divisor = below(norm, least, least, norm)
            move = below(tiny, divisor, clamp(error, low, high) / divisor, like)
            square = like
            for a in range(count):
                s, own = load(row, np.uint64(places[a]) * width, like), splat(owns[a], like)
                if centred is None:
                    own = load(residuals, a * width, like)
                slope = below(s, like, own + offset, own - offset)
                store(residuals, a * width, slope)
                square = fma(slope, slope, square)
            if any_below(like, below(square, endless, like, one)):
                # A sum of squares is finite only if all slopes are. If not, each slope that is not finite becomes 0.
                square = like
                for a in range(count):
                    slope = load(residuals, a * width, like)
                    slope = below(abs(slope), endless, slope, like)
                    store(residuals, a * width, slope)
                    square = fma(slope, slope, square)
            if limits[u] < np.inf:
                # The norm of the numbers that are added. A formula for ‖g‖ would lose digits if they nearly cancel.
                root = np.sqrt(np.float32(max(count, 1))) if of_norm == 1 else np.float32(1)
                most = splat(GUARD * limits[u] / root, like)
                length = abs(move) * sqrt(square)
                # A user whose gradient is not finite adds nothing, because the user's presence must not show.
                factor = below(most, length, most / length, below(length, endless, one, like))
                move = below(length, endless, move, like) * factor
            for a in range(count):
                place = np.uint64(places[a])
                met[place] = True
                added = cast(move * load(residuals, a * width, like), wide)
                store(gradient, place * width, added + load(gradient, place * width, wide))
        for a in range(k):
            slope = load(gradient, a * w, wide)
            if unit is not None and met[a]:
                slope = released(slope, unit[i * k + a], noise, wide)
            s = load(S, (i * k + a) * w, wide)
            slope = slope + weight * s
            store(S, (i * k + a) * w, s - load(step.rates, 0, wide) * slope)
        index_row(neighbours[i], slots, -1)
