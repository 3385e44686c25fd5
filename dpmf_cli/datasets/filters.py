"""Leaves ratings out of a data set: all but a sample, or those of users and items with few of them."""

from dataclasses import replace
from typing import Any

import numpy as np

from dpmf_cli.core.arrays import Flags, Longs
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import named_generator
from dpmf_cli.datasets.canonical import Canonical, NoRatingsError, dense
from dpmf_cli.datasets.spec import CatalogSpec, CsvSpec, SampleSpec

BINARY = Scale(0.0, 1.0, 1.0)


def selected(whole: Canonical, rows: Longs) -> Canonical:
    """The ratings at ascending rows (n,), with the users and items that have some."""
    ratings = whole.ratings
    users, of_users = dense(np.asarray(ratings.users[rows]))
    items, of_items = dense(np.asarray(ratings.items[rows]))
    columns = {name: np.asarray(column[rows]) for name, column in ratings.columns.items()}
    values = np.asarray(ratings.values[rows])
    of_each = {name: np.asarray(column[of_items]) for name, column in ratings.item_columns.items()}
    reduced = Ratings(users, items, values, len(of_users), len(of_items), ratings.scale, columns, of_each)
    ids: Any = whole.user_ids[of_users], whole.item_ids[of_items]
    return replace(whole, ratings=reduced, user_ids=ids[0], item_ids=ids[1])


def sampled(whole: Canonical, spec: CatalogSpec, sample: SampleSpec) -> Canonical:
    """The ratings of `sample.users` random users, or `sample.ratings` of them at random, in canonical form.

    Users and items without a rating are left out; if ratings are drawn, these may include a few of the users. Raises
    DpmfError if the users have fewer ratings than asked for.
    """
    ratings = whole.ratings
    rng = named_generator(sample.seed, spec.name, "sample of users")
    chosen = np.zeros(ratings.n_users, np.bool_)
    chosen[rng.permutation(ratings.n_users)[sample.skip :][: sample.users]] = True
    rows = np.flatnonzero(chosen[ratings.users])
    if sample.ratings is not None:
        if sample.ratings > len(rows):
            raise DpmfError(
                f"{spec.name}: the {sample.users:,} users of this sample have {len(rows):,} ratings, not "
                f"{sample.ratings:,}; ask for more users or fewer ratings"
            )
        rng = named_generator(sample.seed, spec.name, "sample of ratings")
        rows = np.sort(rng.permutation(rows)[: sample.ratings])
    return selected(whole, rows)


def core(whole: Canonical, user: int, item: int) -> Canonical:
    """The largest part of the ratings in which each user has `user` and each item `item` ratings or more.

    Leaving out users and items with fewer, again and again until none is left, gives that part whatever the order
    (the k-core: Seidman 1983; of a bipartite graph with two numbers, Ahmed et al. 2007). `left_out` has the counts.

    Those with 1 in a column `test` all stay, and do not count, because they must not decide what is trained on.
    """
    ratings = whole.ratings
    tested = ratings.columns.get("test", np.zeros(len(ratings))) == 1
    rows = np.flatnonzero(~tested)
    enough: Flags = np.zeros(len(rows), np.bool_)
    while not enough.all():
        users, items = ratings.users[rows], ratings.items[rows]
        enough = (np.bincount(users)[users] >= user) & (np.bincount(items)[items] >= item)
        rows = rows[enough]
    # Without a rating to train on, there is nothing to predict from.
    rows = np.union1d(rows, np.flatnonzero(tested)) if len(rows) else rows
    kept = selected(whole, rows)
    gone = {
        "minimum_ratings": len(ratings) - len(rows),
        "users": ratings.n_users - kept.ratings.n_users,
        "items": ratings.n_items - kept.ratings.n_items,
    }
    return replace(kept, left_out={**whole.left_out, **gone})


def binary(whole: Canonical, threshold: float) -> Canonical:
    """The same pairs, with 1 for ratings of at least the threshold and 0 for lower ones."""
    values = (whole.ratings.values >= threshold).astype(np.float32)
    return replace(whole, ratings=replace(whole.ratings, values=values, scale=BINARY))


def filtered(whole: Canonical, spec: CsvSpec, *, empty: bool = False) -> Canonical:
    """What `minimum_ratings`, then `threshold` of a spec make of ratings.

    empty   whether nothing may be left; otherwise that raises `NoRatingsError`
    """
    if least := spec.minimum_ratings:
        whole = core(whole, least.user, least.item)
        if not (empty or len(whole.ratings)):
            raise NoRatingsError(f"{spec.path}: `minimum_ratings` leaves no rating; lower its numbers")
    return whole if spec.threshold is None else binary(whole, spec.threshold)
