"""Factors in lanes: how the models of a grid lie in memory, and the loops that every factorisation shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.compiled.decorator import compiled
from dpmf_cli.core.compiled.lane_groups import aligned, groups, on_each_group, pad, padded_width
from dpmf_cli.kernels.examples import RATED, USERS, example, numbers
from dpmf_cli.kernels.lanes import add, doubles, fma, load, mul, store, sub, widen, zeros

Side = Literal["users", "items"]


@dataclass(frozen=True)
class FactorLanes:
    """One group of at most 16 models, side by side.

    users, items  flat float32, rows of (factors + 1) vectors of `width` lanes. Vector k of a row is latent factor k.
                  The last vector is the row's effect (user or item average), which no update touches
    part          the place of these models in the grid
    """

    users: NDArray[np.float32]
    items: NDArray[np.float32]
    factors: int
    width: int
    part: slice

    @property
    def lanes(self) -> int:
        """How many models there are. The other lanes, up to the width, repeat the last model."""
        return int(self.part.stop - self.part.start)

    @property
    def groups(self) -> tuple["FactorLanes", ...]:
        """This group alone: a kernel that takes the models of a grid also takes a single group."""
        return (self,)

    @property
    def factors_of(self) -> tuple[int, ...]:
        """A tuple whose length is the number of factors: kernels read shapes from types."""
        return (0,) * self.factors

    @property
    def width_of(self) -> tuple[int, ...]:
        return (0,) * self.width

    @property
    def arguments(self) -> tuple[NDArray[np.float32], NDArray[np.float32], tuple[int, ...], tuple[int, ...]]:
        """The last arguments of kernels that read or change both sides: P, Q, factors_of, width_of."""
        return self.users, self.items, self.factors_of, self.width_of

    def own_and_other(self, side: Side) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Returns the flat arrays of a side and of the opposite side."""
        return (self.users, self.items) if side == "users" else (self.items, self.users)

    def rows(self, side: Side) -> NDArray[np.float32]:
        """(rows, d, lanes) the factors of one side: a view, which plain code may change."""
        return self.table(side)[:, :-1]

    def table(self, side: Side) -> NDArray[np.float32]:
        """(rows, d + 1, lanes) the factors of one side, followed by its effects: a view."""
        own, _ = self.own_and_other(side)
        return own.reshape(-1, self.factors + 1, self.width)[..., : self.lanes]

    def effects(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float32]:
        """(n, width): IAvg(i) + UAvg(u) for each pair and model."""
        of_users, of_items = self._effects(users, items)
        return np.asarray(of_users + of_items)

    def _effects(
        self, users: NDArray[np.int32], items: NDArray[np.int32]
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """(n, width) UAvg(u) and (n, width) IAvg(i) for each pair and model."""
        shape = (-1, self.factors + 1, self.width)
        return self.users.reshape(shape)[users, -1], self.items.reshape(shape)[items, -1]

    def residuals(
        self, users: NDArray[np.int32], items: NDArray[np.int32], values: NDArray[np.float32], bound: float
    ) -> NDArray[np.float32]:
        """(n, lanes) clamp(values − IAvg(i) − UAvg(u), ±bound), rounded as kernels round it, for plain twins."""
        of_users, of_items = self._effects(users, items)
        limit = np.float32(bound)
        residuals = (values[:, None] - of_items) - of_users
        return np.asarray(np.clip(residuals, -limit, limit)[:, : self.lanes])

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float32]:
        """(n, lanes): IAvg(i) + UAvg(u) + p_u·q_i for each pair and model."""
        out = np.empty(len(users) * self.width, np.float32)
        _predict(users, items, out, *self.arguments)
        return out.reshape(len(users), self.width)[:, : self.lanes]


@dataclass(frozen=True)
class FactorModel:
    """r̂_ui = IAvg(i) + UAvg(u) + p_u·q_i for each ε, the grid in groups of lanes."""

    groups: Sequence[FactorLanes]

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float32]:
        """(n, E) predictions for n pairs."""
        if len(self.groups) == 1:
            return self.groups[0].predict(users, items)
        return np.concatenate([group.predict(users, items) for group in self.groups], axis=1)

    def without_users(self) -> "FactorModel":
        """Returns the items alone, in the same memory. An aggregator has this model if users keep their factors."""
        nobody = np.empty(0, np.float32)
        return FactorModel([replace(group, users=nobody) for group in self.groups])

    def with_users(self, effects: NDArray[np.floating]) -> "FactorModel":
        """Returns these items, in the same memory, with users that have `effects` (n_users, E) and factors 0."""
        return FactorModel(
            [
                replace(group, users=_rows(np.zeros((len(effects), group.factors)), effects[:, group.part]))
                for group in self.groups
            ]
        )

    @property
    def published(self) -> dict[str, NDArray[np.float32]]:
        """users (n_users, d + 1, E) and items (n_items, d + 1, E): the last element of a row is its effect."""
        sides: tuple[Side, ...] = ("users", "items")
        return {side: np.concatenate([group.table(side) for group in self.groups], axis=2) for side in sides}

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]], entry: Any = None, own: Any = None) -> Self:
        """Returns the model whose `published` arrays are `arrays`."""
        users, items = arrays["users"], arrays["items"]
        factors = items.shape[1] - 1
        return cls(
            [
                FactorLanes(
                    _rows_of(users[..., part]), _rows_of(items[..., part]), factors, _width(part), part
                )
                for part in groups(items.shape[2])
            ]
        )


@on_each_group
def move_items(group: FactorLanes, moves: NDArray[np.floating]) -> None:
    """q_i ← q_i + moves[i], in place; moves (n_items, d, E)."""
    items = group.items.reshape(-1, group.factors + 1, group.width)
    items[:, :-1] += pad(moves[..., group.part], group.width)


@on_each_group
def set_items(group: FactorLanes, items: slice, factors: NDArray[np.floating]) -> None:
    """q_i ← factors[i] for the n `items`, in place; factors (n, d, E)."""
    rows = group.items.reshape(-1, group.factors + 1, group.width)
    rows[items, :-1] = pad(factors[..., group.part], group.width)


@on_each_group
def move_factors(group: FactorLanes, side: Side, columns: slice, moves: NDArray[np.floating]) -> None:
    """Adds `moves` (rows, k, E) to k `columns` of the factors of one side, in place."""
    own, _ = group.own_and_other(side)
    own.reshape(-1, group.factors + 1, group.width)[:, :-1][:, columns] += pad(
        moves[..., group.part], group.width
    )


@on_each_group
def set_effects(group: FactorLanes, side: Side, effects: NDArray[np.floating]) -> None:
    """Sets the effects of one side to `effects` (rows, E), in place."""
    own, _ = group.own_and_other(side)
    own.reshape(-1, group.factors + 1, group.width)[:, -1] = pad(effects[:, group.part], group.width)


def factor_model(
    users: NDArray[np.float64],
    items: NDArray[np.float64],
    user_effects: NDArray[np.float64],
    item_effects: NDArray[np.float64],
) -> FactorModel:
    """Returns a model with start factors that are common to all models of a grid, and with each model's own effects.

    users (n_users, d), items (n_items, d); user_effects (n_users, E), item_effects (n_items, E).
    """
    return FactorModel(
        [
            _factor_lanes(users, items, user_effects[:, part], item_effects[:, part], part)
            for part in groups(user_effects.shape[1])
        ]
    )


def _factor_lanes(
    users: NDArray[np.float64],
    items: NDArray[np.float64],
    user_effects: NDArray[np.float64],
    item_effects: NDArray[np.float64],
    part: slice,
) -> FactorLanes:
    """One group of `factor_model`; user_effects (n_users, lanes), item_effects (n_items, lanes)."""
    return FactorLanes(
        _rows(users, user_effects), _rows(items, item_effects), users.shape[1], _width(part), part
    )


def _rows(factors: NDArray[np.float64], effects: NDArray[np.floating]) -> NDArray[np.float32]:
    """Flat rows of factors (rows, d), common to all lanes, and effects (rows, lanes)."""
    out = aligned((len(factors), factors.shape[1] + 1, padded_width(effects.shape[1])))
    out[:, :-1] = factors[:, :, None]
    out[:, -1] = pad(effects, out.shape[2])
    return out.reshape(-1)


def _rows_of(table: NDArray[np.float32]) -> NDArray[np.float32]:
    """Flat rows of a table (rows, d + 1, lanes)."""
    out = aligned((*table.shape[:2], padded_width(table.shape[2])))
    out[:] = pad(table, out.shape[2])
    return out.reshape(-1)


def _width(part: slice) -> int:
    return padded_width(part.stop - part.start)


@compiled(example(out=lambda s: np.zeros(len(RATED) * s.w)))
def _predict(users, items, out, P, Q, factors_of, width_of):
    d, w = len(factors_of), len(width_of)
    row, like = (d + 1) * w, zeros(width_of)
    for x in range(len(users)):
        p, q = np.int64(users[x]) * row, np.int64(items[x]) * row
        value = add(load(Q, q + d * w, like), load(P, p + d * w, like))
        for f in range(d):
            value = fma(load(P, p + f * w, like), load(Q, q + f * w, like), value)
        store(out, x * w, value)


@dataclass(frozen=True)
class UserFactors:
    """A copy of the users' factors, to tell how far they move.

    groups  flat float32 arrays, as `FactorLanes.users`
    """

    groups: tuple[NDArray[np.float32], ...]

    @classmethod
    def of(cls, model: FactorModel) -> Self:
        return cls(tuple(group.users.copy() for group in model.groups))

    def moved(self, model: FactorModel) -> NDArray[np.float64]:
        """(E,) ‖U − U′‖/‖U‖ of each model, where U′ is this copy."""
        return np.concatenate(
            [
                _relative_move(before, group)[: group.lanes]
                for before, group in zip(self.groups, model.groups, strict=True)
            ]
        )


def _relative_move(before: NDArray[np.float32], group: FactorLanes) -> NDArray[np.float64]:
    """(width,) ‖U − U′‖/‖U‖. Neither norm includes the averages, which do not move."""
    squares = np.zeros(2 * group.width)
    _squares(group.users, before, squares, group.factors_of, group.width_of)
    norms, distances = np.sqrt(squares).reshape(2, group.width)
    return np.asarray(distances / np.maximum(norms, 1e-30))


@compiled(
    example(
        now=lambda s: numbers(USERS * s.row),
        then=lambda s: numbers(USERS * s.row)[::-1],
        out=lambda s: np.zeros(2 * s.w),
    )
)
def _squares(now, then, out, factors_of, width_of):
    """Sets out ← Σ p², then Σ (p − p′)², over all rows and factors. Squares are float32, sums float64."""
    d, w = len(factors_of), len(width_of)
    row, like, norms, distances = (d + 1) * w, zeros(width_of), doubles(width_of), doubles(width_of)
    for first in range(0, len(now), row):
        for at in range(first, first + d * w, w):
            p = load(now, at, like)
            move = sub(p, load(then, at, like))
            norms = add(norms, widen(mul(p, p)))
            distances = add(distances, widen(mul(move, move)))
    store(out, 0, norms)
    store(out, w, distances)
