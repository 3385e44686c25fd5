"""The baselines GA, IA and GE: the private averages' own code with ε = ∞, hence without noise.

Friedman, Berkovsky, Kaafar 2016, section 5.1.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.cost import NOTHING, Cost, Shape, choice_of_averages, effects_cost
from dpmf_cli.algorithms.shared.effects import Effects, EffectsBudget, EffectsParameters
from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.algorithms.shared.private_averages import bounded_effects
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings

_CHUNK = 1 << 18


@dataclass(frozen=True)
class EffectsModel:
    """Predicts from averages alone: the sum of `items` (n_items, E) and `users` (n_users, E)."""

    items: NDArray[np.float64]
    users: NDArray[np.float64]

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        out = self.items[items]
        for start in range(0, len(out), _CHUNK):
            out[start : start + _CHUNK] += self.users[users[start : start + _CHUNK]]
        return out

    @property
    def published(self) -> Arrays:
        """The arrays `items` and `users`."""
        return {"items": self.items, "users": self.users}

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any = None, own: Any = None) -> Self:
        """The model made again from what was `published`."""
        return cls(arrays["items"], arrays["users"])


class AveragesBaseline(Algorithm):
    """An average without noise."""

    stochastic: ClassVar[bool] = False

    effects: EffectsParameters = EffectsParameters()

    def measure(self, train: Ratings, epsilons: Epsilons, curator: Curator) -> Effects:
        """Measures the averages of algorithms 1 and 2. Each step gets the grid's ε in full, which is ∞."""
        everything = EffectsBudget(epsilons, epsilons, epsilons)
        return bounded_effects(train, self.chosen(train), everything, curator=curator)

    def chosen(self, train: Ratings) -> EffectsParameters:
        """The parameters of the averages: those of the config, unless a subclass chooses them on the training
        ratings."""
        return self.effects

    def cost(self, shape: Shape, grid: int) -> Cost:
        chosen = choice_of_averages(shape) if getattr(self, "tuned", False) else NOTHING
        return effects_cost(shape, grid) + chosen
