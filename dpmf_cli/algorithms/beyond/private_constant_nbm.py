"""The neighbourhood model with a constant similarity and private averages."""

from typing import ClassVar, Literal

from dpmf_cli.algorithms.shared.base import Paper, Variants, in_mode
from dpmf_cli.algorithms.shared.budget import ItemAveragesBudget
from dpmf_cli.algorithms.shared.private_neighbourhood import CERTIFIED, PrivateNeighbourhood
from dpmf_cli.kernels.similarities import NeighbourhoodModel, neighbourhood_model
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class PrivateConstantNeighbourhood(PrivateNeighbourhood):
    """`ConstantNeighbourhood` with private item averages, which get all of ε.

    The difference from this model at the same ε shows what a privately learned similarity is worth.
    """

    title: ClassVar[str] = "Constant similarity, private averages"
    paper: ClassVar[Paper] = Paper.DPMF
    variants: ClassVar[Variants] = in_mode(Mode.CORRECTED, *CERTIFIED)
    revision: ClassVar[int] = 2

    algorithm: Literal["private_constant_nbm"]
    mode: Mode = Mode.CORRECTED
    budget: ItemAveragesBudget = ItemAveragesBudget()

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        averages = self.item_averages(train, epsilons, curator)
        return neighbourhood_model(train, self.neighbours_of_items(train), 1.0, averages)
