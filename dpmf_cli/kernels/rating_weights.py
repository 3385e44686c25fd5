"""The weight of a rating in sums over users, for each model of a grid."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.examples import ITEMS, USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.lane_groups import pad
from dpmf_cli.ratings import Ratings


@dataclass(frozen=True)
class RatingWeights:
    """The weight of a rating: w_ui = users[u]·items[i], or 0 if ranks[i] > last[u]. It is never negative.

    users, last    (n_users, E)
    items, ranks   (n_items, E); `ranks` is None if no user leaves out an item
    """

    users: NDArray[np.float64]
    items: NDArray[np.float64]
    ranks: NDArray[np.float64] | None = None
    last: NDArray[np.float64] | None = None

    def of_group(self, group: FactorLanes) -> tuple[NDArray[np.float64], ...]:
        """Returns √users, √items, `ranks` and `last`, flat, in the lanes of a group. The last two may be empty."""
        part, width = group.part, group.width
        roots = (pad(np.sqrt(own[:, part]), width, np.float64).ravel() for own in (self.users, self.items))
        if self.ranks is None or self.last is None:
            return (*roots, np.empty(0), np.empty(0))
        places = (pad(own[:, part], width, np.float64).ravel() for own in (self.ranks, self.last))
        return (*roots, *places)


def last_ranks(train: Ratings, ranks: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """(n_users, E) the `most`-th smallest rank of each user's items; inf for a user with at most `most` items.

    So at most `most` of a user's items have ranks up to this number.

    ranks  (n_items, E); no two ranks of a model are equal
    """
    out = np.empty((train.n_users, ranks.shape[1]))
    _last_ranks(train.user_starts, train.items, np.ascontiguousarray(ranks.T), most, out)
    return out


@compiled(example(ranks=numbers(2, ITEMS), most=2, out=np.zeros((USERS, 2))))
def _last_ranks(starts, items, ranks, most, out):
    for u in range(len(starts) - 1):
        own = items[starts[u] : starts[u + 1]]
        for e in range(len(ranks)):
            out[u, e] = np.partition(ranks[e][own], most - 1)[most - 1] if len(own) > most else np.inf


def squared_weights(train: Ratings, weights: RatingWeights) -> NDArray[np.float64]:
    """(n_users, E) Σ_i items[i]² over the items that each user rated and does not leave out."""
    out = np.zeros_like(weights.users)
    for lane in range(out.shape[1]):
        squares = weights.items[train.items, lane] ** 2
        if weights.ranks is not None and weights.last is not None:
            squares *= weights.ranks[train.items, lane] <= weights.last[train.users, lane]
        out[:, lane] = np.bincount(train.users, squares, train.n_users)
    return out
