"""GA: the global average. Friedman, Berkovsky, Kaafar 2016, section 5.1."""

from typing import ClassVar, Literal

import numpy as np

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.algorithms.shared.averages_baseline import AveragesBaseline
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class GlobalAverage(AveragesBaseline):
    """r̂_ui = GAvg: the upper bound for error."""

    title: ClassVar[str] = "GA"
    algorithm: Literal["ga"]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        effects = self.measure(train, epsilons, curator)
        items = np.broadcast_to(effects.overall, effects.items.shape)
        return EffectsModel(items, np.zeros_like(effects.users))
