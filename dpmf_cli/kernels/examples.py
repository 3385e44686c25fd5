"""Arguments on which machine code is compared with its Python reference: eight ratings, and what else kernels take.

The name of an argument decides its value, and the type that the machine code was compiled for decides its form: the
numbers of factors, lanes and components, float32 or float64, an array or None.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numba.np.numpy_support import as_dtype

from dpmf_cli.core.compiled.machine_code import Example

USERS, ITEMS, K, FACTORS = 4, 5, 3, 3
"""Numbers of users, of items, of neighbours of an item, and of factors. The third user has no ratings."""
ROWS = 37
"""Rows of a packed matrix: two vectors of sixteen lanes, and a remainder."""

RATERS = np.repeat(np.arange(USERS), [3, 2, 0, 3])
RATED = np.array([0, 2, 4, 1, 2, 0, 1, 3])
STARTS = np.array([0, 3, 5, 5, 8])
ITEM_STARTS = np.array([0, 2, 4, 6, 7, 8])
BY_ITEM = np.argsort(RATED, kind="stable")


@dataclass(frozen=True)
class Shapes:
    """Shapes that the types of a kernel's arguments give: d factors, w lanes, k components of a mixture.

    A kernel for all numbers of factors takes an array of that length, and is tried with `FACTORS`.
    """

    d: int
    w: int
    k: int

    @property
    def row(self) -> int:
        """How many numbers a row of factors has, its effect included."""
        return (self.d + 1) * self.w


def numbers(*shape: int) -> np.ndarray:
    """Numbers around 0, the same at every call."""
    return np.random.default_rng(len(shape)).normal(0, 0.4, shape)


def noise(shapes: Shapes) -> np.ndarray:
    """`releasing.noise_lanes` of scales around ½ and of a grid too fine for a rounding difference to show."""
    return np.concatenate([np.linspace(0.3, 0.7, shapes.w), np.full(shapes.w, 1.5 * 2.0**22)])


def triangle(n: int) -> Any:
    """A packed n × n matrix whose diagonal is larger than its other elements."""
    full = 0.1 * numbers(n, n) + np.eye(n)
    return full[np.tri(n, dtype=bool).T]


def mixture_constants(shapes: Shapes) -> np.ndarray:
    """Flat (k, 3, w) the constants of components whose variances are 0.05, 0.10, …"""
    variances = 0.05 * np.arange(1, shapes.k + 1)
    constants = np.stack([-np.log(variances) / 2, -0.5 / variances, 1 / (12 * variances)], axis=1)
    return np.repeat(constants, shapes.w)


_SIZES = {"n_users": USERS, "n_items": ITEMS, "n_keys": ITEMS, "n": ROWS, "key": 0x1234_5678_9ABC_DEF0}
_RATES = {"learning_rate": 0.05, "regularization": 0.1, "ridge": 0.2, "momentum": 0.8, "epochs": 2}
_BOUNDS = {"bound": 1.2, "error_bound": 1.5, "clip": 0.6, "threshold": 0.3}
_LIMITS = {"limit": 0.9, "user_limit": 0.7, "item_limit": 0.8}
_BY_NAME: dict[str, Any] = {
    **_SIZES | _RATES | _BOUNDS | _LIMITS,
    **dict.fromkeys(("items", "rated", "others", "keys"), RATED),
    **dict.fromkeys(("starts", "user_starts"), STARTS),
    **dict.fromkeys(("order", "by_item"), BY_ITEM),
    "users": RATERS,
    "values": 3.5 + 2 * numbers(len(RATED)),
    "residuals": numbers(len(RATED)),
    "raters": (ITEM_STARTS, RATERS[BY_ITEM], BY_ITEM),
    "places": np.arange(len(RATED))[::-1],
    "by_user": np.arange(len(RATED)),
    **dict.fromkeys(("P", "to_P"), lambda s: numbers(USERS * s.row)),
    "Q": lambda s: numbers(ITEMS * s.row)[::-1],
    "to_Q": lambda s: numbers(ITEMS * s.row),
    "unit": lambda s: 2 * numbers((2 * len(RATED) + USERS + ITEMS) * (s.d + 1)),
    "noise": noise,
    **dict.fromkeys(("covariance", "similarity"), triangle(ITEMS)),
    "triangle": triangle(ROWS),
    "neighbours": [[1, 2, -1], [0, 4, 3], [4, 1, 0], [2, -1, -1], [0, 2, 1]],
    "S": lambda s: numbers(ITEMS * K * s.w),
    "averages": lambda s: 3.5 + numbers(ITEMS * s.w),
    "everywhere": True,
    "factors_of": lambda s: numbers(s.d),
}
"""A value, or a function of the `Shapes`, for each name."""


def example(**own: Any) -> Example:
    """A function that makes the arguments of a kernel.

    own  arguments whose values are not those that their names stand for: numbers, arrays or functions of the `Shapes`
    """

    def arguments(kinds: Mapping[str, Any]) -> dict[str, Any]:
        of = ("factors_of", "width_of", "components_of")
        shapes = Shapes(*(_length(kinds[name]) if name in kinds else 1 for name in of))
        made = {**_BY_NAME, **own}
        return {name: _argument(name, made, kind, shapes) for name, kind in kinds.items()}

    return arguments


def _length(kind: Any) -> int:
    return len(kind) if isinstance(kind, types.BaseTuple) else FACTORS


def _room(shapes: Shapes) -> np.ndarray:
    """Zeros: room for what a kernel writes, or keeps for a while."""
    return np.zeros(len(RATED) * shapes.row)


def _argument(name: str, named: Mapping[str, Any], kind: Any, shapes: Shapes) -> Any:
    """The value of a name in the form of a type. A record without a value of its own has those of its fields.

    Elements of a tuple of whole numbers are never read, only counted.
    """
    made: Any = named.get(name, _room)
    value = made(shapes) if callable(made) else made
    if isinstance(kind, types.NamedTuple | types.NamedUniTuple):
        own = dict(zip(kind.fields, value, strict=True)) if name in named else {}
        parts = zip(kind.fields, kind.types, strict=True)
        return kind.instance_class(*(_argument(each, {**named, **own}, of, shapes) for each, of in parts))
    if kind is types.none:
        return None
    if kind == types.Tuple(()) or (
        isinstance(kind, types.UniTuple) and isinstance(kind.dtype, types.Integer)
    ):
        return (0,) * len(kind)
    if isinstance(kind, types.Array):
        return np.array(value, as_dtype(kind.dtype), order="C")
    if isinstance(kind, types.UniTuple):
        return tuple(value)
    return as_dtype(kind).type(value)
