"""The neighbourhood model whose similarities nobody has learned, with private averages."""

from typing import ClassVar, Literal

from dpmf_cli.algorithms.shared.base import Variants
from dpmf_cli.algorithms.shared.budget import ItemAveragesBudget
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.private_neighbourhood import CERTIFIED, PrivateNeighbourhood
from dpmf_cli.kernels.similarities import NeighbourhoodModel, neighbourhood_model
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class PrivateConstantNeighbourhood(PrivateNeighbourhood):
    """`ConstantNeighbourhood` with averages of items that are released under privacy: the whole ε is for them.

    What a privately learned similarity is worth is the difference from this at the same ε.
    """

    title: ClassVar[str] = "Constant similarity, private averages"
    paper: ClassVar[Paper] = Paper.DPMF
    variants: ClassVar[Variants] = CERTIFIED
    revision: ClassVar[int] = 2

    algorithm: Literal["private_constant_nbm"]
    mode: Mode = Mode.CORRECTED
    budget: ItemAveragesBudget = ItemAveragesBudget()

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        averages = self.item_averages(train, epsilons, curator)
        return neighbourhood_model(train, self.neighbours_of_items(train), 1.0, averages)
