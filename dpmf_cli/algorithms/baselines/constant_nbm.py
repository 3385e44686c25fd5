"""The neighbourhood model with a constant similarity: nothing is learned."""

from typing import ClassVar, Literal

from dpmf_cli.algorithms.shared.neighbourhood import most_co_rated
from dpmf_cli.algorithms.shared.neighbourhood_baseline import NeighbourhoodBaseline
from dpmf_cli.kernels.similarities import NeighbourhoodModel, neighbourhood_model
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class ConstantNeighbourhood(NeighbourhoodBaseline):
    """r̂_ui = r̄_i + the mean of r_uj − r̄_j over the neighbours of item i that user u rated: s_ij = 1.

    Neighbours are the items with the most common raters. The difference from this model shows what a learned
    similarity is worth.
    """

    title: ClassVar[str] = "Constant similarity"

    algorithm: Literal["constant_nbm"]

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        averages = self.measure(train, epsilons, curator).items
        return neighbourhood_model(train, most_co_rated(train, self.k), 1.0, averages)
