"""Factors in lanes: how the models of a grid lie in memory, and the loops that every factorisation shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.arrays import Doubles, Floats, Ints, Singles
from dpmf_cli.core.compiled.lane_groups import LaneGroup, aligned, groups, on_each_group, pad, padded_width
from dpmf_cli.core.compiled.machine_code import compiled
from dpmf_cli.kernels.examples import USERS, example, numbers
from dpmf_cli.kernels.lane_math import cast, fma
from dpmf_cli.kernels.lanes import doubles, load, store, zeros

Side = Literal["users", "items"]

PART = 8
"""How many lanes are solved at a time."""
REGISTER = 32
"""Bytes of lanes that are summed at a time: one register of AVX2, which has room for the nine sums of a tile."""


@dataclass(frozen=True)
class FactorLanes(LaneGroup):
    """One group of at most 16 models, side by side.

    users, items  flat float32, rows of (factors + 1) vectors of `width` lanes. Vector k of a row is latent factor k.
                  The last vector is the row's effect (user or item average), which no update touches
    """

    users: Singles
    items: Singles
    factors: int

    @property
    def factors_of(self) -> NDArray[np.bool_]:
        """An array whose length is the number of factors, so that one compiled kernel serves all numbers of them."""
        return np.empty(self.factors, np.bool_)

    def shapes(self, kind: type[np.floating]) -> tuple[NDArray[np.bool_] | tuple[int, ...], ...]:
        """The last arguments of kernels that take the lanes in parts: factors_of, width_of, part_of, tile_of."""
        parts = PART, REGISTER // np.dtype(kind).itemsize
        return self.factors_of, self.width_of, *((0,) * min(each, self.width) for each in parts)

    @property
    def arguments(self) -> tuple[Singles, Singles, NDArray[np.bool_], tuple[int, ...]]:
        """The last arguments of kernels that read or change both sides: P, Q, factors_of, width_of."""
        return self.users, self.items, self.factors_of, self.width_of

    @property
    def unrolled(self) -> tuple[Singles, Singles, tuple[int, ...], tuple[int, ...]]:
        """The same for kernels of a few loads a factor, which are compiled for each number of factors: a tuple."""
        return self.users, self.items, (0,) * self.factors, self.width_of

    def own_and_other(self, side: Side) -> tuple[Singles, Singles]:
        """The flat arrays of a side and of the opposite side."""
        return (self.users, self.items) if side == "users" else (self.items, self.users)

    def padded(self, side: Side) -> Singles:
        """(rows, d + 1, width) the factors of one side, followed by its effects: a view."""
        return self.own_and_other(side)[0].reshape(-1, self.factors + 1, self.width)

    def table(self, side: Side) -> Singles:
        """(rows, d + 1, lanes) the factors of one side, followed by its effects: a view."""
        return self.padded(side)[..., : self.lanes]

    def rows(self, side: Side) -> Singles:
        """(rows, d, lanes) the factors of one side: a view, which plain code may change."""
        return self.table(side)[:, :-1]

    def effects(self, users: Ints, items: Ints) -> Singles:
        """(n, lanes): IAvg(i) + UAvg(u) for each pair and model."""
        return np.asarray(self.table("users")[users, -1] + self.table("items")[items, -1])

    def residuals(self, users: Ints, items: Ints, values: Singles, bound: float) -> Singles:
        """(n, lanes) clamp(values − IAvg(i) − UAvg(u), ±bound), rounded as kernels round it."""
        limit = np.float32(bound)
        residuals = values[:, None] - self.table("items")[items, -1] - self.table("users")[users, -1]
        return np.asarray(np.clip(residuals, -limit, limit))

    def predict(self, users: Ints, items: Ints) -> Singles:
        """(n, lanes): IAvg(i) + UAvg(u) + p_u·q_i for each pair and model."""
        out = np.empty(len(users) * self.width, np.float32)
        _predict(users, items, out, *self.arguments)
        return out.reshape(len(users), self.width)[:, : self.lanes]


@dataclass(frozen=True)
class FactorModel:
    """r̂_ui = IAvg(i) + UAvg(u) + p_u·q_i for each ε, the grid in groups of lanes."""

    groups: Sequence[FactorLanes]

    def predict(self, users: Ints, items: Ints) -> Singles:
        if len(self.groups) == 1:
            return self.groups[0].predict(users, items)
        return on_each_group(FactorLanes.predict)(self, users, items)

    def without_users(self) -> "FactorModel":
        """The items alone, in the same memory: an aggregator's model if users keep their factors."""
        return FactorModel([replace(group, users=np.empty(0, np.float32)) for group in self.groups])

    def with_users(self, effects: Floats) -> "FactorModel":
        """These items, in the same memory, with users that have `effects` (n_users, E) and factors 0."""

        def of(group: FactorLanes) -> FactorLanes:
            return replace(group, users=_rows(np.zeros((len(effects), group.factors)), effects, group.part))

        return FactorModel([of(group) for group in self.groups])

    @property
    def published(self) -> dict[str, Singles]:
        """users (n_users, d + 1, E) and items (n_items, d + 1, E): the last element of a row is its effect."""
        sides: tuple[Side, ...] = ("users", "items")
        return {side: on_each_group(FactorLanes.table)(self, side) for side in sides}

    @classmethod
    def restored(
        cls, arrays: Mapping[str, NDArray[Any]], entry: Any = None, own: Any = None
    ) -> "FactorModel":
        """The model whose `published` arrays are `arrays`."""
        users, items = arrays["users"], arrays["items"]
        return factor_model(users[:, :-1], items[:, :-1], users[:, -1], items[:, -1])


@on_each_group
def set_items(group: FactorLanes, items: slice, factors: Floats) -> None:
    """q_i ← factors[i] for the n `items`, in place; factors (n, d, E)."""
    group.padded("items")[items, :-1] = group.of_grid(factors)


@on_each_group
def set_users(group: FactorLanes, factors: Floats) -> None:
    """p_u ← factors[u] for all users, in place; factors (n_users, d, E)."""
    group.padded("users")[:, :-1] = group.of_grid(factors)


@on_each_group
def move_factors(group: FactorLanes, side: Side, columns: slice, moves: Floats) -> None:
    """Adds `moves` (rows, k, E) to k `columns` of the factors of one side, in place."""
    group.padded(side)[:, :-1][:, columns] += group.of_grid(moves)


@on_each_group
def set_effects(group: FactorLanes, side: Side, effects: Floats) -> None:
    """Sets the effects of one side to `effects` (rows, E), in place."""
    group.padded(side)[:, -1] = group.of_grid(effects)


def factor_model(users: Floats, items: Floats, user_effects: Floats, item_effects: Floats) -> FactorModel:
    """A model with factors common to all models of a grid, or of each, and with each model's own effects.

    users (n_users, d) or (n_users, d, E), items likewise; user_effects (n_users, E), item_effects (n_items, E).
    """

    def of(part: slice) -> FactorLanes:
        sides = _rows(users, user_effects, part), _rows(items, item_effects, part)
        return FactorLanes(part, *sides, users.shape[1])

    return FactorModel([of(part) for part in groups(user_effects.shape[1])])


def _rows(factors: Floats, effects: Floats, part: slice) -> Singles:
    """Flat rows of factors, (rows, d) or (rows, d, E), and effects (rows, E), of the models in `part`."""
    width = padded_width(part.stop - part.start)
    out = aligned((len(factors), factors.shape[1] + 1, width))
    out[:, :-1] = factors[:, :, None] if factors.ndim == 2 else pad(factors[..., part], width)
    out[:, -1] = pad(effects[:, part], width)
    return out.reshape(-1)


@compiled(example())
def _predict(users, items, out, P, Q, factors_of, width_of):
    row = (len(factors_of) + 1) * len(width_of)
    for x in range(len(users)):
        p_at, q_at = np.int64(users[x]) * row, np.int64(items[x]) * row
        store(out, x * len(width_of), predicted(p_at, q_at, P, Q, factors_of, width_of))


@compiled(inline="always")
def predicted(p_at, q_at, P, Q, factors_of, width_of):
    """The models' predictions from the rows at `p_at` and `q_at`: effects, then + p·q factor by factor."""
    d, w, like = len(factors_of), len(width_of), zeros(width_of)
    effects = load(Q, q_at + d * w, like) + load(P, p_at + d * w, like)
    return plus_dot(effects, p_at, q_at, P, Q, factors_of, width_of)


@compiled(inline="always")
def plus_dot(start, p_at, q_at, P, Q, factors_of, width_of):
    """`start` + p·q, factor by factor."""
    value = start
    for f in range(len(factors_of)):
        at = f * len(width_of)
        value = fma(load(P, p_at + at, start), load(Q, q_at + at, start), value)
    return value


def users_moved(before: Sequence[Singles], model: FactorModel) -> Doubles:
    """(E,) ‖U − U′‖/‖U‖ of each model, where U′ are copies of the groups' users. Averages do not count."""
    found = []
    for then, group in zip(before, model.groups, strict=True):
        squares = np.zeros(2 * group.width)
        _squares(group.users, then, squares, group.factors_of, group.width_of)
        norms, distances = np.sqrt(squares).reshape(2, group.width)[:, : group.lanes]
        found.append(distances / np.maximum(norms, 1e-30))
    return np.concatenate(found)


@compiled(
    example(
        now=lambda s: numbers(USERS * s.row),
        then=lambda s: numbers(USERS * s.row)[::-1],
        out=lambda s: np.zeros(2 * s.w),
    )
)
def _squares(now, then, out, factors_of, width_of):
    """Sets out ← Σ p², then Σ (p − p′)², over all rows and factors. Squares are float32, sums float64."""
    d, w, like, wide = len(factors_of), len(width_of), zeros(width_of), doubles(width_of)
    norms, distances = wide, wide
    for first in range(0, len(now), (d + 1) * w):
        for at in range(first, first + d * w, w):
            p = load(now, at, like)
            move = p - load(then, at, like)
            norms = norms + cast(p * p, wide)
            distances = distances + cast(move * move, wide)
    store(out, 0, norms)
    store(out, w, distances)
