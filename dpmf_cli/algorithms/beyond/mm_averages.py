"""Private item averages and the user's own mean: the covariance methods without their covariance."""

from typing import ClassVar, Literal

from dpmf_cli.algorithms.shared.base import Paper
from dpmf_cli.algorithms.shared.budget import ItemAveragesBudget
from dpmf_cli.algorithms.shared.own_means import OwnMeansAlgorithm, OwnMeansModel
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class AveragesAndOwnMean(OwnMeansAlgorithm):
    """r̂_ui = MAvg_i + r̄_u: released item averages, and the user's own mean, which only the user sees."""

    title: ClassVar[str] = "MM averages"
    paper: ClassVar[Paper] = Paper.DPMF
    revision: ClassVar[int] = 2

    algorithm: Literal["mm_averages"]
    budget: ItemAveragesBudget = ItemAveragesBudget()

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> OwnMeansModel:
        averages = self.released_averages(train, self.measurer(epsilons, curator))
        return OwnMeansModel(self.own_means(train, averages))
