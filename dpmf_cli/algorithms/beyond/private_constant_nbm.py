"""The neighbourhood model whose similarities nobody has learned, with private averages."""

from typing import ClassVar, Literal

from dpmf_cli.algorithms.shared.base import Variants
from dpmf_cli.algorithms.shared.budget import ItemAveragesBudget
from dpmf_cli.algorithms.shared.neighbourhood import (
    NeighbourhoodModel,
    start_models,
)
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.private_neighbourhood import PrivateNeighbourhood
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class PrivateConstantNeighbourhood(PrivateNeighbourhood):
    """`ConstantNeighbourhood` with averages of items that are released under privacy: the whole ε is for them.

    What a privately learned similarity is worth is the difference from this at the same ε.
    """

    title: ClassVar[str] = "Constant similarity, private averages"
    paper: ClassVar[Paper] = Paper.DPMF
    variants: ClassVar[Variants] = frozenset(
        (neighbours, Mode.CORRECTED)
        for neighbours in (Neighbours.BOUNDED, Neighbours.UNBOUNDED, Neighbours.USER)
    )

    algorithm: Literal["private_constant_nbm"]
    mode: Mode = Mode.CORRECTED
    budget: ItemAveragesBudget = ItemAveragesBudget()

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        averages = self.item_averages(train, epsilons, curator)
        return NeighbourhoodModel(train, start_models(self.neighbours_of_items(train), 1.0, averages))
