"""What private kNN is to be compared with: the same predictor, with a covariance that no data were used for."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm, Variants, in_both_modes
from dpmf_cli.algorithms.shared.budget import AveragesBudget
from dpmf_cli.algorithms.shared.effects import Effects
from dpmf_cli.algorithms.shared.item_covariance import inverse_counts, own_residuals
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.kernels.covariance import Raters, weighted_products
from dpmf_cli.kernels.neighbours import nearest
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class PublicKNN(PrivateAlgorithm):
    """`PrivateKNN` with Avg_ii = v and Avg_ij = c for all items, v and c public; the whole ε is for the averages.

        r̂_ui = IAvg(i) + UAvg(u) + c/(v + ridge + (m − 1)·c) · Σ_{j ∈ N} (r_uj − IAvg(j) − UAvg(u)),   m = |N|

    which is what (Avg_NN + ridge·I)⁻¹ Avg_Ni comes to. What a private covariance is worth is the difference from
    this. Like private kNN it uses the target user's own ratings without noise: *joint* differential privacy.

    Neighbours are found with what is public. Bounded, that is who rated what: the k items j of the user with the
    largest Wgt_ij, as in private kNN. Unbounded, nothing is: all other items that the user rated.
    """

    title: ClassVar[str] = "kNN, fixed covariance"
    paper: ClassVar[Paper] = Paper.DPMF
    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED, Neighbours.UNBOUNDED)
    joint: ClassVar[bool] = True
    revision: ClassVar[int] = 2

    algorithm: Literal["public_knn"]
    budget: AveragesBudget = AveragesBudget(global_averages=0.02, item_averages=0.54, user_averages=0.44)
    k: int = Field(20, ge=1, le=1000, description="neighbours of a prediction, at most; bounded only")
    ridge: float = Field(0.2, gt=0, description="as in private kNN, in units of B²")
    variance: float = Field(0.5, gt=0, le=1, description="v, in units of B²")
    covariance: float = Field(0.05, ge=0, le=1, description="c, in units of B²")

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> "FixedCovarianceModel":
        effects = self.averages(train, self.budget.for_effects(epsilons), curator)
        bounded = self.neighbours is Neighbours.BOUNDED
        return FixedCovarianceModel(
            train, effects, self.variance + self.ridge, self.covariance, self.k if bounded else None
        )


@dataclass(frozen=True)
class FixedCovarianceModel:
    """Averages, and a covariance of `own` on the diagonal (ridge included) and `common` elsewhere, in units of B².

    nearest  how many of the user's ratings are used, by public Wgt; None for all
    """

    train: Ratings
    effects: Effects
    own: float
    common: float
    nearest: int | None = None

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        out = np.asarray(self.effects.items[items] + self.effects.users[users])
        if self.nearest is None:
            counts, totals = self._sums_of_others(users, items)
        else:
            counts, totals = self._sums_of_nearest(users, items, self.nearest)
        spread = self.own + (counts - 1) * self.common
        # `spread` is positive for m = 0 too unless c is the larger part of it; a sum of nothing is 0 anyway.
        weight = np.where(counts > 0, self.common / np.where(counts > 0, spread, 1.0), 0.0)
        return np.asarray(out + weight[:, None] * totals)

    def _sums_of_nearest(
        self, users: NDArray[np.int32], items: NDArray[np.int32], k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(n,) how many neighbours each pair has, (n, E) the sum of their residuals."""
        train = self.train
        everywhere = np.ones(len(train))
        products = weighted_products(train, Raters.of(train), everywhere, inverse_counts(train))
        similarity = products.astype(np.float32)
        found = nearest(train, users, items, similarity, k)
        totals = np.empty((len(users), self.effects.users.shape[1]))
        for lane in range(totals.shape[1]):
            # Place −1, where the user has fewer than k, is the 0 behind the last residual.
            residuals = np.append(own_residuals(train, self.effects, lane), 0.0)
            totals[:, lane] = residuals[found].sum(axis=1)
        return (found >= 0).sum(axis=1), totals

    def _sums_of_others(
        self, users: NDArray[np.int32], items: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The same for all ratings of the user but that of the item asked for, if there is one."""
        train = self.train
        keys = train.users.astype(np.int64) * train.n_items + train.items
        asked = users.astype(np.int64) * train.n_items + items
        places = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        itself = keys[places] == asked
        totals = np.empty((len(users), self.effects.users.shape[1]))
        for lane in range(totals.shape[1]):
            residuals = own_residuals(train, self.effects, lane)
            sums = np.bincount(train.users, residuals, train.n_users)
            totals[:, lane] = sums[users] - np.where(itself, residuals[places], 0.0)
        return train.user_counts[users] - itself, totals
