"""Ids of users and items: the ids that a caller has, the ids that a model knows, and public lists of ids."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmf_cli.datasets.canonical import Ids
from dpmf_cli.errors import DpmfError
from dpmf_cli.files import read_file
from dpmf_cli.ratings import Ratings


def as_ids(ids: ArrayLike, what: str) -> Ids:
    """Returns (n,) ids as whole numbers or as text. Raises DpmfError for any other type."""
    found: NDArray[Any] = np.atleast_1d(np.asarray(ids))
    if found.dtype.kind in "iu":
        return found.astype(np.int64)
    if found.dtype.kind == "O" or not len(found):
        found = np.array([str(each) for each in found], np.str_)
    if found.dtype.kind != "U" or found.ndim != 1:
        raise DpmfError(
            f"{what}: ids must be a list of whole numbers or of text, not {found.dtype}; convert them"
        )
    return found


def places(known: Ids, asked: Ids) -> NDArray[np.int64]:
    """Returns (n,) the position of each id of `asked` in `known`, which has no id twice; −1 if it is not there."""
    if known.dtype.kind != asked.dtype.kind:
        known, asked = known.astype(str), asked.astype(str)
    if not len(known):
        return np.full(len(asked), -1)
    order = np.argsort(known, kind="stable")
    at = order[np.minimum(np.searchsorted(known, asked, sorter=order), len(known) - 1)]
    return np.where(known[at] == asked, at, -1)


def different(ids: Ids) -> tuple[Ids, NDArray[np.intp]]:
    """Returns the distinct ids among n ids, in order, and (n,) the position of each of the n among them."""
    found: Any = np.unique(ids, return_inverse=True)
    return found[0], found[1]


def read_list(path: Path) -> Ids:
    """Reads the ids of a file with one id in each line. Raises DpmfError if there is none, or one stands twice."""
    try:
        lines = read_file(path).decode("utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DpmfError(
            f"{path}: cannot be read: {error}; give a UTF-8 file with one id in each line"
        ) from None
    ids = [line.strip() for line in lines if line.strip()]
    first: dict[str, int] = {}
    for number, name in enumerate(ids, 1):
        if first.setdefault(name, number) != number:
            raise DpmfError(f"{path}: the id {name} stands there twice; remove one")
    if not ids:
        raise DpmfError(f"{path}: holds no id; write one in each line")
    return np.array(ids)


def within(
    ratings: Ratings, user_ids: Ids, item_ids: Ids, users: Ids | None, items: Ids | None
) -> tuple[Ratings, Ids, Ids]:
    """Returns the ratings in the index space of the given lists of ids, and the ids.

    A list may be None: then the ids are those in the ratings. Raises DpmfError for an id that is not listed.
    """
    if users is None and items is None:
        return ratings, user_ids, item_ids
    rows, user_ids = _placed(user_ids, users, "user")
    columns, item_ids = _placed(item_ids, items, "item")
    of_users, of_items = rows[ratings.users], columns[ratings.items]
    order = np.lexsort((of_items, of_users))
    moved = replace(
        ratings,
        users=of_users[order].astype(np.int32),
        items=of_items[order].astype(np.int32),
        values=ratings.values[order],
        n_users=len(user_ids),
        n_items=len(item_ids),
        columns={name: column[order] for name, column in ratings.columns.items()},
    )
    return moved, user_ids, item_ids


def _placed(own: Ids, listed: Ids | None, what: str) -> tuple[NDArray[np.int64], Ids]:
    if listed is None:
        return np.arange(len(own)), own
    found = places(listed, own)
    if (found < 0).any():
        missing = own[int(np.argmin(found))]
        raise DpmfError(
            f"the {what} {missing} has ratings, but is not in the list of {what}s; list all of them"
        )
    return found, listed
