"""A released model, or one that could be: its published arrays, its predictions, and files that a person brings."""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmf_cli.algorithms.beyond.comparisons import AllAlike, NearestAlike
from dpmf_cli.algorithms.shared.averages import Effects, EffectsModel
from dpmf_cli.algorithms.shared.base import Arrays, Model, PrivateAlgorithm, ReleasableModel
from dpmf_cli.algorithms.shared.factorization import KnownModel, OwnFactors, UnitModel
from dpmf_cli.algorithms.shared.item_covariance import CovarianceModel
from dpmf_cli.algorithms.shared.sample_fits import ModelColumns, SideBySide
from dpmf_cli.core.arrays import Doubles, Ints, Longs
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import read_file
from dpmf_cli.core.ratings import Ratings, with_ratings
from dpmf_cli.datasets.canonical import Ids
from dpmf_cli.kernels.covariance import triangle_size
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.similarities import NeighbourhoodModel
from dpmf_cli.releasing.archive import UNIT, Statement

if TYPE_CHECKING:
    import pandas as pd


def as_ids(ids: ArrayLike, what: str) -> Ids:
    """(n,) ids as whole numbers or as text. Raises DpmfError for any other type."""
    found: NDArray[Any] = np.atleast_1d(np.asarray(ids))
    if found.dtype.kind in "iu":
        return found.astype(np.int64)
    if found.dtype.kind == "O" or not len(found):
        found = np.array([str(each) for each in found], np.str_)
    if found.dtype.kind != "U" or found.ndim != 1:
        fault = f"must be a list of whole numbers or of text, not {found.dtype}"
        raise DpmfError(f"{what}: ids {fault}; convert them")
    return found


def places(known: Ids, asked: Ids) -> Longs:
    """(n,) the position of each id of `asked` in `known`, which has no id twice; −1 if it is not there."""
    if known.dtype.kind != asked.dtype.kind:
        known, asked = known.astype(str), asked.astype(str)
    if not len(known):
        return np.full(len(asked), -1)
    order = np.argsort(known, kind="stable")
    at = order[np.minimum(np.searchsorted(known, asked, sorter=order), len(known) - 1)]
    return np.where(known[at] == asked, at, -1)


def read_list(path: Path) -> Ids:
    """The ids of a file with one id in each line. Raises DpmfError if there is none, or one stands twice."""
    try:
        lines = read_file(path).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        fix = "give a UTF-8 file with one id in each line"
        raise DpmfError(f"{path}: cannot be read: {error}; {fix}") from None
    counts = Counter(line.strip() for line in lines if line.strip())
    if not counts:
        raise DpmfError(f"{path}: holds no id; write one in each line")
    for name, count in counts.items():
        if count > 1:
            raise DpmfError(f"{path}: the id {name} stands there twice; remove one")
    return np.array(list(counts))


def within(
    ratings: Ratings, user_ids: Ids, item_ids: Ids, users: Ids | None, items: Ids | None
) -> tuple[Ratings, Ids, Ids]:
    """The ratings in the index space of the given lists of ids, and the ids.

    A list may be None: then the ids are those in the ratings. Raises DpmfError for an id that is not listed.
    """
    if users is None and items is None:
        return ratings, user_ids, item_ids

    def moved(what: str, own: Ids, listed: Ids, rows: Ints) -> Ints:
        found = places(listed, own)
        if (found < 0).any():
            fault = f"the {what} {own[int(np.argmin(found))]} has ratings, but is not in the list of {what}s"
            raise DpmfError(f"{fault}; list all of them")
        return found.astype(np.int32)[rows]

    all_users, all_items = user_ids if users is None else users, item_ids if items is None else items
    of_users = moved("user", user_ids, all_users, ratings.users)
    of_items = moved("item", item_ids, all_items, ratings.items)
    order = np.lexsort((of_items, of_users))
    columns = {name: column[order] for name, column in ratings.columns.items()}
    pairs, shape = (of_users[order], of_items[order]), (len(all_users), len(all_items))
    return Ratings(*pairs, ratings.values[order], *shape, ratings.scale, columns), all_users, all_items


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
"""Each is a `ReleasableModel`, and predicts by its formula in `archive.FORMULAS`."""


def published(model: Model) -> tuple[str, Arrays]:
    """The kind of a model for one ε, and all of the model that may be published.

    Raises DpmfError if nothing may be published, or a release cannot hold the model.
    """
    if isinstance(model, ModelColumns):  # the ε that each record spent is not published
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
    why = f"a {type(model).__name__} is no model that a release can hold (dpmf_cli/releasing/recommender.py)"
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


def check_arrays(kind: str, arrays: Arrays, item_ids: Ids, user_ids: Ids | None) -> None:
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
    """The model from what was `published`; `own` has the ratings that its users bring."""
    if kind.startswith(UNIT):
        unit = restored(kind.removeprefix(UNIT), arrays, entry, own)
        known_users = arrays.get("users_known", own.user_counts > 0)
        return UnitModel(unit, own.scale, known_users, arrays["known_items"], arrays["fallback"])
    model: Model = KINDS[kind].restored(arrays, entry, own)
    return model


@dataclass(frozen=True)
class OwnRatings:
    """Ratings that users bring to a joint model: (n,) users, items, and values on the scale of the data set."""

    users: Ids
    items: Ids
    values: Doubles

    @classmethod
    def of(cls, users: ArrayLike, items: ArrayLike, values: ArrayLike) -> "OwnRatings":
        """Own ratings from arrays. Raises DpmfError for values that are not ids, and for different lengths."""
        found = as_ids(users, "users"), as_ids(items, "items"), np.asarray(values, np.float64)
        if len({each.shape for each in found}) != 1:
            fix = "give one of each for every rating"
            raise DpmfError(f"users, items and ratings have different lengths; {fix}")
        return cls(*found)


@dataclass(frozen=True, repr=False)
class Recommender:
    """The content of a release, and its predictions.

    arrays    all that is published of the model
    item_ids  (n_items,); user_ids (n_users,), or None if the model has no parts for users
    own       the ratings that a joint model predicts from if `predict` gets none
    """

    statement: Statement
    arrays: Arrays
    item_ids: Ids
    user_ids: Ids | None
    own: OwnRatings | None = None

    def __repr__(self) -> str:
        statement, privacy = self.statement, self.statement.privacy
        proved = "no provable ε" if privacy.provable is None else f"ε = {privacy.provable:g} provable"
        delta = f", δ = {privacy.delta:g}" if privacy.delta else ""
        return f"<{statement.name} of {statement.dataset.name}, {privacy.neighbours}, {proved}{delta}>"

    def predict(
        self, users: ArrayLike, items: ArrayLike, own: OwnRatings | None = None, *, clip: bool = True
    ) -> Doubles:
        """(n,) predicted ratings of n pairs, clipped to the rating scale unless `clip` is False.

        `own` are the ratings of these users, for a joint model: a user without own ratings counts as one who has
        rated nothing. Raises DpmfError for values that are not ids, and for own ratings off the scale.
        """
        distinct: Any = np.unique(as_ids(users, "users"), return_inverse=True)
        asked, place = distinct
        at = places(self.item_ids, as_ids(items, "items"))
        if at.shape != place.shape:
            raise DpmfError(f"{len(place)} users and {len(at)} items; give one of each for every pair")
        model = self.for_users(asked, own or self.own)
        out = np.empty(len(at))
        known = at >= 0
        out[known] = self._predicted(model, place[known], at[known], clip)
        everything = np.arange(len(self.item_ids))
        for user in np.unique(place[~known]):
            mean = self._predicted(model, np.full(len(everything), user), everything, clip).mean()
            out[~known & (place == user)] = mean
        return out

    def top(self, user: Any, count: int, own: OwnRatings | None = None) -> tuple[Ids, Doubles]:
        """The items that `recommend` has for one user, and their predictions."""
        found = self.recommend([user], count, own)
        return as_ids(found.iloc[:, 1], "items"), found["prediction"].to_numpy()

    def recommend(
        self, users: ArrayLike, n: int, own: OwnRatings | None = None, **more: Any
    ) -> "pd.DataFrame":
        """All `recommendations`, which have the parameters, in one frame."""
        import pandas as pd

        return pd.concat(self.recommendations(users, n, own, **more), ignore_index=True)

    def recommendations(
        self,
        users: ArrayLike,
        n: int,
        own: OwnRatings | None = None,
        *,
        exclude_seen: bool | tuple[ArrayLike, ArrayLike] = True,
        clip: bool = True,
    ) -> Iterator["pd.DataFrame"]:
        """Yields the n items with the largest predictions for each user, best first, for blocks of users.

        The columns are the ids of user and item, named as in the data set, then `prediction` and `rank`, from 1.
        Items are ordered before predictions are clipped, and equal predictions by the items' places in `item_ids`.

        own           these users' own ratings, for a joint model
        exclude_seen  users and items of pairs to leave out besides `own`: a release does not hold what users have
                      seen. False leaves out nothing

        Raises DpmfError as `predict` does.
        """
        import pandas as pd

        if n < 1:
            raise DpmfError(f"n is {n}; give the number of items, 1 or more")
        own, asked = own or self.own or OwnRatings.of([], [], []), as_ids(users, "users")
        asked = asked[np.sort(np.unique(asked, return_index=True)[1])]
        pairs: Any = (own.users, own.items)
        if not isinstance(exclude_seen, bool):
            also = OwnRatings.of(*exclude_seen, np.zeros(np.shape(exclude_seen[0])))
            pairs = np.append(own.users, also.users), np.append(own.items, also.items)
        by, items = places(asked, pairs[0]), places(self.item_ids, pairs[1])
        by[(items < 0) | (exclude_seen is False)] = -1
        rows = by[:0] if self.user_ids is None else places(self.user_ids, asked)
        starts, data = range(0, max(len(asked), 1), self.users_at_once), self.statement.dataset
        names = data.columns["user"], data.columns["item"], "prediction", "rank"
        cuts = _cut(places(asked, own.users), starts), _cut(by, starts)
        for first, rated, seen in zip(starts, *cuts, strict=True):
            block = slice(first, first + self.users_at_once)
            theirs = OwnRatings(own.users[rated], own.items[rated], own.values[rated])
            model = self.for_users(asked[block], theirs, rows[block])
            user, item, values = self._best(model, len(asked[block]), n, (by[seen] - first, items[seen]))
            if clip and not self.entry.scores_only:
                values = np.clip(values, data.minimum, data.maximum)
            ranks = np.arange(len(user)) - np.searchsorted(user, user) + 1
            cells = asked[block][user], self.item_ids[item], values, ranks
            yield pd.DataFrame(dict(zip(names, cells, strict=True)))

    @property
    def users_at_once(self) -> int:
        return max(1, PAIRS_AT_ONCE // max(1, len(self.item_ids)))

    def _best(
        self, model: Model, n_users: int, n: int, seen: tuple[Longs, Longs]
    ) -> tuple[Longs, Longs, Doubles]:
        """Users, items, and unclipped predictions of each user's n best items, without those in `seen`."""
        n_items = len(self.item_ids)
        users, items = np.divmod(np.arange(n_users * n_items), n_items)
        losses = -self._predicted(model, users, items, False).reshape(n_users, n_items)
        losses[seen] = np.inf
        largest: Any = np.finfo(losses.dtype).max  # leaves out what is infinite, or no number
        if n < n_items:
            largest = np.fmin(np.partition(losses, n - 1, axis=1)[:, n - 1 : n], largest)
        users, items = np.divmod(np.flatnonzero(losses <= largest), n_items)
        values = -losses[users, items]
        order = np.lexsort((-values, users))  # equal ones stay in the order of items
        order = order[np.arange(len(order)) - np.searchsorted(users, users) < n]
        return users[order], items[order], values[order]

    @cached_property
    def entry(self) -> PrivateAlgorithm:
        return self.statement.entry()

    def _predicted(self, model: Model, users: Longs, items: Longs, clip: bool) -> Doubles:
        """(n,) predictions on the scale of the data set, which leave a model only here."""
        found = np.asarray(model.predict(users.astype(np.int32), items.astype(np.int32))[:, 0], np.float64)
        scale, stars = self.statement.dataset.scale, self.statement.dataset.stars
        if self.entry.scores_only:  # they order items, and are no ratings
            return found
        found = stars.back(found) if stars else found
        return np.clip(found, scale.minimum, scale.maximum) if clip else found

    def for_users(self, asked: Ids, own: OwnRatings | None = None, rows: Longs | None = None) -> Model:
        """The model with only these users, none of them twice; it predicts for their positions.

        `rows` are their `places` in `user_ids`, found here unless given. Ratings enter a model only here: of `own`,
        those of these users, for items that the model knows.
        """
        arrays = dict(self.arrays)
        if self.user_ids is not None:
            rows = places(self.user_ids, asked) if rows is None else rows
            users = {name: array for name, array in self.arrays.items() if name.startswith("users")}
            arrays |= {name: _rows(array, rows) for name, array in users.items()}
        scale, stars = self.statement.dataset.scale, self.statement.dataset.stars
        none = np.empty(0, np.int32)
        theirs = Ratings(none, none, np.empty(0, np.float32), len(asked), len(self.item_ids), scale)
        if own is not None and self.statement.privacy.joint:
            if not ((own.values >= scale.minimum) & (own.values <= scale.maximum)).all():
                within_scale = f"within {scale.minimum:g} to {scale.maximum:g}"
                raise DpmfError(f"own ratings are not all {within_scale}; correct those that are not")
            rated, items = places(asked, own.users), places(self.item_ids, own.items)
            here = (rated >= 0) & (items >= 0)
            theirs = with_ratings(theirs, rated[here], items[here], own.values[here])
        ratings = stars.of(theirs) if stars else theirs
        return restored(self.statement.kind, arrays, self.entry, ratings)


PAIRS_AT_ONCE = 1 << 21
"""For how many pairs `recommendations` predicts at a time, unless one user has more."""


def _cut(users: Longs, starts: range) -> list[Longs]:
    """The places in `users` of those of each block, in their order; −1 is in no block."""
    order = np.argsort(users, kind="stable")
    return np.split(order, np.searchsorted(users[order], starts))[1:]


def _rows(array: NDArray[Any], rows: Longs) -> NDArray[Any]:
    """The `rows` of users; one of −1 is an unknown user: the mean of all rows, or False in a mask."""
    found: NDArray[Any] = array[np.maximum(rows, 0)]
    if (rows < 0).any():
        known = array.dtype.kind == "b"
        found[rows < 0] = False if known else array.mean(axis=0, dtype=np.float64).astype(array.dtype)
    return found


_SEPARATORS = ",;\t|"
"""Possible separators of fields; a file has the one that its header has most often."""


def read_pairs(path: Path, names: Mapping[str, str]) -> tuple[NDArray[np.str_], NDArray[np.str_]]:
    """(n,) users and (n,) items of a CSV file. Raises DpmfError with the line and the fix."""
    users, items = _read(path, ("user", "item"), names)
    return np.array(users, np.str_), np.array(items, np.str_)


def read_own(path: Path, names: Mapping[str, str]) -> OwnRatings:
    """The ratings of a CSV file. Raises DpmfError with the line and the fix."""
    users, items, texts = _read(path, ("user", "item", "rating"), names)
    values = []
    for line, text in enumerate(texts, 2):
        try:
            values.append(float(text.replace(",", ".")))  # a decimal comma
        except ValueError:
            values.append(math.nan)
        if not math.isfinite(values[-1]):
            fault = f'the rating "{text[:40]}" is not a finite number'
            raise DpmfError(f"{path}:{line}: {fault}; correct the line")
    return OwnRatings(np.array(users, np.str_), np.array(items, np.str_), np.array(values, np.float64))


def _read(path: Path, roles: tuple[str, ...], names: Mapping[str, str]) -> list[list[str]]:
    """The columns of these roles, found by the data set's names for them, or by the names of the roles."""
    try:
        text = read_file(path).decode("utf-8-sig")
        separator = max(_SEPARATORS, key=text.partition("\n")[0].count)
        lines = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if row]
    except OSError as error:
        raise DpmfError(f"{path}: cannot be read: {error.strerror or error}; give a CSV file") from None
    except UnicodeDecodeError:
        raise DpmfError(f"{path}: is not UTF-8; save the file as UTF-8") from None
    except csv.Error as error:
        raise DpmfError(f"{path}: {error}; correct the file") from None
    header = lines[0] if lines else []
    found = []
    for role in roles:
        name = names.get(role, role)
        at = next((header.index(each) for each in (name, role) if header.count(each) == 1), None)
        if at is None:
            raise DpmfError(
                f'{path}:1: no column "{name}" ({role}); it has: {", ".join(header) or "nothing"}. Write a header '
                "line with the names"
            )
        found.append(at)
    for number, row in enumerate(lines[1:], 2):
        if len(row) != len(header):
            fault = f"{len(row)} field(s) where the header has {len(header)}"
            raise DpmfError(f"{path}:{number}: {fault}; correct the line")
    return [[row[at] for row in lines[1:]] for at in found]
