"""What stands beside a private covariance: averages alone, and a covariance that no data went into.

McSherry and Mironov 2009 have neither. Everything goes to the averages, so that the difference from `mm_knn` and
`mm_svd` *at the same ε* is what measuring a covariance is worth. At the same θ it is not, where noise is Gaussian:
μ is θ·√Σf_i², 0.98θ here and 0.81θ there.
"""

from typing import ClassVar, Literal

from pydantic import Field

from dpmf_cli.algorithms.base import Cost, Shape
from dpmf_cli.algorithms.baselines import EffectsModel, effects_cost
from dpmf_cli.algorithms.budget import Fractions
from dpmf_cli.algorithms.own_means import OwnMeansAlgorithm
from dpmf_cli.algorithms.papers import Paper
from dpmf_cli.algorithms.public_knn import FixedCovarianceModel
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class ItemAveragesBudget(Fractions):
    """Fractions of θ: for both global averages, and the item averages."""

    global_averages: float = Field(0.02, gt=0, lt=1)
    item_averages: float = Field(0.98, gt=0, lt=1)


class AveragesAndOwnMean(OwnMeansAlgorithm):
    """r̂_ui = MAvg_i + r̄_u: released item averages, and the user's own mean, which only the user sees."""

    title: ClassVar[str] = "MM averages"
    paper: ClassVar[Paper] = Paper.DPMF
    algorithm: Literal["mm_averages"]
    budget: ItemAveragesBudget = ItemAveragesBudget()

    def fit(self, train: Ratings, *, streams: Streams, ledger: Ledger) -> EffectsModel:
        effects = self.own_means(train, self.released_averages(train, self.measurer(streams, ledger)))
        return EffectsModel(effects.items, effects.users)

    def cost(self, shape: Shape, grid: int) -> Cost:
        return effects_cost(shape, grid)


class OwnMeanFixedCovariance(OwnMeansAlgorithm):
    """`CovarianceKNN` over all the user's other ratings, with Avg_ii = v and Avg_ij = c, both public.

        r̂_ui = MAvg_i + r̄_u + c/(v + ridge + (m − 1)·c) · Σ_j (r_uj − MAvg_j − r̄_u),   m other ratings of u

    `CovarianceSVD` on it is the same: its only direction with any say is that of all items alike.
    """

    title: ClassVar[str] = "MM fixed covariance"
    paper: ClassVar[Paper] = Paper.DPMF
    algorithm: Literal["mm_public"]
    budget: ItemAveragesBudget = ItemAveragesBudget()
    ridge: float = Field(0.2, ge=1e-6, le=1e6, description="as in mm_knn, in units of B²")
    variance: float = Field(0.5, gt=0, le=1, description="v, in units of B²")
    covariance: float = Field(0.05, ge=0, le=1, description="c, in units of B²")

    def fit(self, train: Ratings, *, streams: Streams, ledger: Ledger) -> FixedCovarianceModel:
        effects = self.own_means(train, self.released_averages(train, self.measurer(streams, ledger)))
        return FixedCovarianceModel(train, effects, self.variance + self.ridge, self.covariance)

    def cost(self, shape: Shape, grid: int) -> Cost:
        return effects_cost(shape, grid) + Cost(5e-9 * grid * shape.ratings, 40.0 * shape.ratings)
