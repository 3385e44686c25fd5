"""UA: the user average."""

from typing import ClassVar, Literal

import numpy as np

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.algorithms.shared.averages_baseline import AveragesBaseline
from dpmf_cli.algorithms.shared.effects import EffectsParameters
from dpmf_cli.algorithms.shared.tuned_averages import average_by_user, tuned_for_users
from dpmf_cli.algorithms.shared.tuning import tuned_field
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class UserAverage(AveragesBaseline):
    """r̂_ui = (Σ_{R_u} r_ui + β_u·GAvg)/(|R_u| + β_u): how a user rates, whatever the item.

    It is more accurate than the item average where users differ more than items. None of the papers here has it.
    """

    title: ClassVar[str] = "UA"
    algorithm: Literal["ua"]
    tuned: bool = tuned_field()

    def chosen(self, train: Ratings) -> EffectsParameters:
        return tuned_for_users(train, self.effects) if self.tuned else self.effects

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        users = average_by_user(train, np.array([self.chosen(train).beta_u]))
        return EffectsModel(np.zeros((train.n_items, 1)), users)
