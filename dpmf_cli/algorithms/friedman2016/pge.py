"""PGE: private global effects. Friedman, Berkovsky, Kaafar 2016, section 4.1 and table 4."""

from typing import ClassVar, Literal

from dpmf_cli.algorithms.shared.averages import EffectsModel, averages_of
from dpmf_cli.algorithms.shared.base import Paper, PrivateAlgorithm, Variants, in_both_modes
from dpmf_cli.algorithms.shared.budget import AveragesBudget
from dpmf_cli.algorithms.shared.cost import Cost, Shape, effects_cost
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Neighbours


class PrivateGlobalEffects(PrivateAlgorithm):
    """r̂_ui = IAvg(i) + UAvg(u), with the averages of algorithms 1 and 2, which get all of ε.

    Bounded, every step is a Laplace mechanism with the right sensitivity, so published and corrected mode are the
    same and the claimed ε is provable. For unbounded neighbours, see `shared.averages`.
    """

    title: ClassVar[str] = "PGE"
    paper: ClassVar[Paper] = Paper.FRIEDMAN
    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED, Neighbours.UNBOUNDED)
    revision: ClassVar[int] = 2

    algorithm: Literal["pge"]
    budget: AveragesBudget = AveragesBudget(global_averages=0.02, item_averages=0.54, user_averages=0.44)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        effects = averages_of(self, train, self.budget.for_effects(epsilons), curator)
        return EffectsModel(effects.items, effects.users)

    def cost(self, shape: Shape, grid: int) -> Cost:
        return effects_cost(shape, grid)
