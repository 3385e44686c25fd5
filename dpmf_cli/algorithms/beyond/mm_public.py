"""The covariance methods of McSherry and Mironov 2009 with a covariance that needs no data."""

from typing import ClassVar, Literal

from pydantic import Field

from dpmf_cli.algorithms.shared.base import Paper
from dpmf_cli.algorithms.shared.budget import ItemAveragesBudget
from dpmf_cli.algorithms.shared.cost import Cost, Shape, effects_cost
from dpmf_cli.algorithms.shared.fixed_covariance import AllAlike
from dpmf_cli.algorithms.shared.own_means import OwnMeansAlgorithm
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class OwnMeanFixedCovariance(OwnMeansAlgorithm):
    """`CovarianceKNN` over all the user's other ratings, with Avg_ii = v and Avg_ij = c, both public.

        r̂_ui = MAvg_i + r̄_u + c/(v + ridge + (m − 1)·c) · Σ_j (r_uj − MAvg_j − r̄_u)

    m is the number of u's other ratings. `CovarianceSVD` on this covariance predicts the same: the only direction
    that counts has the same coordinate for all items.
    """

    title: ClassVar[str] = "MM fixed covariance"
    paper: ClassVar[Paper] = Paper.DPMF
    revision: ClassVar[int] = 2

    algorithm: Literal["mm_public"]
    budget: ItemAveragesBudget = ItemAveragesBudget()
    ridge: float = Field(0.2, ge=1e-6, le=1e6, description="as in mm_knn, in units of B²")
    variance: float = Field(0.5, gt=0, le=1, description="v, in units of B²")
    covariance: float = Field(0.05, ge=0, le=1, description="c, in units of B²")

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> AllAlike:
        averages = self.released_averages(train, self.measurer(epsilons, curator))
        own_means = self.own_means(train, averages)
        return AllAlike(train, own_means, self.of_an_item, self.covariance)

    @property
    def of_an_item(self) -> float:
        """v + ridge, in units of B²."""
        return self.variance + self.ridge

    def cost(self, shape: Shape, grid: int) -> Cost:
        return effects_cost(shape, grid) + Cost(5e-9 * grid * shape.ratings, 40.0 * shape.ratings)
