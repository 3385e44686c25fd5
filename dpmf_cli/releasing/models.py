"""The kinds of model that a release can hold: what is published of each, and how the model is restored from it."""

from typing import Any

import numpy as np

from dpmf_cli.algorithms.beyond.comparisons import AllAlike, NearestAlike
from dpmf_cli.algorithms.shared.averages import Effects, EffectsModel
from dpmf_cli.algorithms.shared.base import Arrays, Model, ReleasableModel
from dpmf_cli.algorithms.shared.factorization import KnownModel, OwnFactors, UnitModel
from dpmf_cli.algorithms.shared.item_covariance import CovarianceModel
from dpmf_cli.algorithms.shared.sample_fits import ModelColumns, SideBySide
from dpmf_cli.algorithms.zhang2018.private_pmf import PersonalModel
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.datasets.canonical import Ids
from dpmf_cli.kernels.covariance import triangle_size
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.similarities import NeighbourhoodModel

KINDS: dict[str, Any] = {
    "averages": EffectsModel,
    "own means": Effects,
    "factors": FactorModel,
    "own factors": OwnFactors,
    "covariance": CovarianceModel,
    "nearest alike": NearestAlike,
    "all alike": AllAlike,
    "neighbourhood": NeighbourhoodModel,
}
"""Each is a `ReleasableModel`."""

UNIT = "unit "
"""How the kind of a model begins if the model predicts on [0, 1]."""


def published(model: Model) -> tuple[str, Arrays]:
    """Returns the kind of a model for one ε, and all of the model that may be published.

    Raises DpmfError if nothing may be published, or a release cannot hold the model.
    """
    if isinstance(model, PersonalModel):  # the ε that each record spent is not published
        return published(model.model)
    if isinstance(model, ModelColumns):
        return published(model.model)
    if isinstance(model, SideBySide):
        (alone,) = model.models
        return published(alone)
    if isinstance(model, UnitModel):
        kind, arrays = published(model.unit)
        users = {"users_known": model.known_users} if "users" in arrays else {}
        return UNIT + kind, {**arrays, **users, "known_items": model.known_items, "fallback": model.fallback}
    for kind, known in KINDS.items():
        if type(model) is known:
            assert isinstance(model, ReleasableModel)
            return kind, model.published
    why = f"a {type(model).__name__} is not a model that a release can hold (dpmf_cli/releasing/models.py)"
    if isinstance(model, KnownModel):
        why = "its users' factors are fitted to clean ratings, and its items predict nothing without them"
    raise DpmfError(f"{why}; release another method, or this one with `mode: corrected`")


SHAPES = {
    "items": "f8 items 1",
    "users": "f8 users 1",
    "counts": "f8 items 1",
    "covariance": "f4 pairs",
    "weight": "f4 pairs",
    "overall": "f8 1",
    "residual": "f8 1",
    "noise": "f8 1",
    "multipliers": "f8 2",
    "factors": "f4 items d 1",
    "singular": "f8 steps 1",
    "nuclear": "f8 1",
    "mean": "f8 1",
    "neighbours": "i4 items k",
    "similarities": "f4 items k 1",
    "averages": "f4 items 1",
    "known_items": "b1 items",
    "users_known": "b1 users",
    "fallback": "f8 1",
}
"""The type of each array, and the length of each axis: a number, or a word for the same number in all arrays."""

OF_FACTORS = SHAPES | {"items": "f4 items d 1", "users": "f4 users d 1"}
"""The same for kinds of model that end in "factors", but for own factors."""


def check(kind: str, arrays: Arrays, item_ids: Ids, user_ids: Ids | None) -> None:
    """Raises KeyError or ValueError for an unknown kind, and for arrays that would lead a kernel astray."""
    if kind.removeprefix(UNIT) not in KINDS:
        raise ValueError("no such kind is known")
    for ids in (item_ids, *([] if user_ids is None else [user_ids])):
        if ids.ndim != 1 or ids.dtype.kind not in "iU":
            raise ValueError("its ids are not a list of whole numbers or of text")
    n_items, n_users = len(item_ids), 0 if user_ids is None else len(user_ids)
    sizes = {"items": n_items, "users": n_users, "pairs": triangle_size(n_items)}
    shapes = OF_FACTORS if kind.removeprefix(UNIT) == "factors" else SHAPES
    for name, array in arrays.items():
        if name not in shapes:  # of a plugin, for its own Python
            if array.dtype.kind not in "fib":
                raise ValueError(f"{name} holds no numbers")
            continue
        dtype, *axes = shapes[name].split()
        for axis, size in zip(axes, array.shape, strict=False):
            sizes.setdefault(axis, size)
        wanted = tuple(int(axis) if axis.isdigit() else sizes.get(axis) for axis in axes)
        if array.dtype != dtype or array.shape != wanted:
            raise ValueError(f"{name} is {array.dtype} {array.shape}, not {np.dtype(dtype)} {wanted}")
    if "neighbours" in arrays:
        neighbours = arrays["neighbours"]
        if neighbours.size and not -1 <= neighbours.min() <= neighbours.max() < n_items:
            raise ValueError("a neighbour is not an item")


def restored(kind: str, arrays: Arrays, entry: Any, own: Ratings) -> Model:
    """Restores the model from what was `published`. `own` has the ratings that its users bring."""
    if kind.startswith(UNIT):
        unit = restored(kind.removeprefix(UNIT), arrays, entry, own)
        known_users = arrays.get("users_known", own.user_counts > 0)
        return UnitModel(unit, own.scale, known_users, arrays["known_items"], arrays["fallback"])
    model: Model = KINDS[kind].restored(arrays, entry, own)
    return model
