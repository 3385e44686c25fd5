"""Reduces a data set at random to some users, with all or some of their ratings."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.datasets.cache import Cached
from dpmf_cli.datasets.canonical import Canonical, Ids
from dpmf_cli.datasets.spec import CatalogSpec, SampleSpec
from dpmf_cli.errors import DpmfError
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import named_generator

SAMPLE_VERSION = 1
"""Raise it when the same spec makes another sample."""


def sampled(whole: Cached | Canonical, spec: CatalogSpec, sample: SampleSpec) -> Canonical:
    """Returns the ratings of `sample.users` random users, or `sample.ratings` of them at random, in canonical form.

    Users and items without a rating are left out; if ratings are drawn, these may include a few of the users. Raises
    DpmfError if there are fewer users or ratings than asked for.
    """
    ratings = whole.ratings
    if sample.users > ratings.n_users:
        raise DpmfError(
            f"{spec.name} has {ratings.n_users:,} users, too few for a sample of {sample.users:,}"
        )
    rng = named_generator(sample.seed, spec.name, "sample of users")
    chosen = np.zeros(ratings.n_users, np.bool_)
    chosen[rng.permutation(ratings.n_users)[: sample.users]] = True
    rows = np.flatnonzero(chosen[ratings.users])
    if sample.ratings is not None:
        if sample.ratings > len(rows):
            raise DpmfError(
                f"{spec.name}: the {sample.users:,} users of this sample have {len(rows):,} ratings, not "
                f"{sample.ratings:,}; ask for more users or fewer ratings"
            )
        rng = named_generator(sample.seed, spec.name, "sample of ratings")
        rows = np.sort(rng.permutation(rows)[: sample.ratings])
    users, user_ids = _dense(ratings.users[rows], whole.user_ids)
    items, item_ids = _dense(ratings.items[rows], whole.item_ids)
    columns = {name: np.asarray(column[rows]) for name, column in ratings.columns.items()}
    values = np.asarray(ratings.values[rows])
    reduced = Ratings(users, items, values, len(user_ids), len(item_ids), ratings.scale, columns)
    return Canonical(reduced, user_ids, item_ids)


def _dense(indices: NDArray[np.int32], ids: Ids) -> tuple[NDArray[np.int32], Ids]:
    """Returns indices without gaps, in the order of the old ones, and the ids that are left."""
    present = np.zeros(len(ids), np.bool_)
    present[indices] = True
    index = np.cumsum(present, dtype=np.int32) - np.int32(1)
    return index[indices], ids[present]
