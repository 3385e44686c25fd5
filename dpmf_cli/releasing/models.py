"""The kinds of model that a release can hold: what is published of each, and how the model is restored from it."""

from typing import Any

from dpmf_cli.algorithms.shared.averages_baseline import EffectsModel
from dpmf_cli.algorithms.shared.factorization import KnownModel
from dpmf_cli.algorithms.shared.fixed_covariance import AllAlike, NearestAlike
from dpmf_cli.algorithms.shared.item_covariance import CovarianceModel
from dpmf_cli.algorithms.shared.model import Arrays, Model, ReleasableModel
from dpmf_cli.algorithms.shared.own_factors import OwnFactors
from dpmf_cli.algorithms.shared.own_means import OwnMeansModel
from dpmf_cli.algorithms.shared.sample_fits import Columns, SideBySide
from dpmf_cli.algorithms.shared.unit_scale import UnitModel
from dpmf_cli.algorithms.zhang2018.personalized import PersonalModel
from dpmf_cli.errors import DpmfError
from dpmf_cli.kernels.covariance import triangle_size
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.similarities import NeighbourhoodModel
from dpmf_cli.ratings import Ratings

KINDS: dict[str, Any] = {
    "averages": EffectsModel,
    "own means": OwnMeansModel,
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
    if isinstance(model, Columns):
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


OF_ITEMS = ("items", "factors", "counts", "averages", "neighbours", "similarities", "known_items")
"""Arrays with a row for each item."""

TRIANGLES = ("covariance", "weight")
"""Packed triangles of all pairs of items."""


def check(kind: str, arrays: Arrays, n_items: int, n_users: int) -> None:
    """Raises KeyError or ValueError for an unknown kind, and for arrays that would lead a kernel astray."""
    if kind.removeprefix(UNIT) not in KINDS:
        raise ValueError("no such kind is known")
    wanted = dict.fromkeys(OF_ITEMS, n_items) | dict.fromkeys(TRIANGLES, triangle_size(n_items))
    for name, array in arrays.items():
        rows = n_users if name.startswith("users") else wanted.get(name, len(array))
        if len(array) != rows or array.dtype.kind not in "fib":
            raise ValueError(f"{name} has {len(array)} rows, not {rows}, or no numbers")
    if (
        "factors" in kind.split()
        and "users" in arrays
        and arrays["users"].shape[1:] != arrays["items"].shape[1:]
    ):
        raise ValueError("users and items have different factors")
    if "neighbours" in arrays:
        neighbours = arrays["neighbours"]
        if neighbours.size and not -1 <= neighbours.min() <= neighbours.max() < n_items:
            raise ValueError("a neighbour is not an item")
        if arrays["similarities"].shape[:2] != neighbours.shape:
            raise ValueError("similarities and neighbours have different shapes")


def restored(kind: str, arrays: Arrays, entry: Any, own: Ratings) -> Model:
    """Restores the model from what was `published`. `own` has the ratings that its users bring."""
    if kind.startswith(UNIT):
        unit = restored(kind.removeprefix(UNIT), arrays, entry, own)
        known_users = arrays.get("users_known", own.user_counts > 0)
        return UnitModel(unit, own.scale, known_users, arrays["known_items"], arrays["fallback"])
    model: Model = KINDS[kind].restored(arrays, entry, own)
    return model
