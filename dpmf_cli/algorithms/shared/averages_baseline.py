"""The baselines GA, IA and GE: the private averages' own code with ε = ∞, hence without noise.

Friedman, Berkovsky, Kaafar 2016, section 5.1.
"""

from typing import ClassVar

from dpmf_cli.algorithms.shared.averages import private_effects
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.cost import NOTHING, Cost, Shape, choice_of_averages, effects_cost
from dpmf_cli.algorithms.shared.effects import Effects, EffectsBudget, EffectsParameters
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.ratings import Ratings


class AveragesBaseline(Algorithm):
    """An average without noise."""

    stochastic: ClassVar[bool] = False

    effects: EffectsParameters = EffectsParameters()

    def measure(self, train: Ratings, epsilons: Epsilons, curator: Curator) -> Effects:
        """Measures the averages of algorithms 1 and 2. Each step gets the grid's ε in full, which is ∞."""
        everything = EffectsBudget(epsilons, epsilons, epsilons)
        return private_effects(
            train,
            self.chosen(train),
            everything,
            neighbours=Neighbours.BOUNDED,
            mode=Mode.PUBLISHED,
            curator=curator,
        )

    def chosen(self, train: Ratings) -> EffectsParameters:
        """The parameters of the averages: those of the config, unless a subclass chooses them on the training
        ratings."""
        return self.effects

    def cost(self, shape: Shape, grid: int) -> Cost:
        chosen = choice_of_averages(shape) if getattr(self, "tuned", False) else NOTHING
        return effects_cost(shape, grid) + chosen
