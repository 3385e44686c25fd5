"""GE: item and user averages. Friedman, Berkovsky, Kaafar 2016, section 5.1."""

from typing import ClassVar, Literal

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.algorithms.shared.averages_baseline import AveragesBaseline
from dpmf_cli.algorithms.shared.effects import EffectsParameters
from dpmf_cli.algorithms.shared.tuned_averages import tuned_for_both
from dpmf_cli.algorithms.shared.tuning import tuned_field
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class GlobalEffects(AveragesBaseline):
    """r̂_ui = IAvg(i) + UAvg(u): the simplest personalisation."""

    title: ClassVar[str] = "GE"
    algorithm: Literal["ge"]
    tuned: bool = tuned_field()

    def chosen(self, train: Ratings) -> EffectsParameters:
        return tuned_for_both(train, self.effects) if self.tuned else self.effects

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        effects = self.measure(train, epsilons, curator)
        return EffectsModel(effects.items, effects.users)
