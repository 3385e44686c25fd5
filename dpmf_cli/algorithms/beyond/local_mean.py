"""The mean of all perturbed ratings: what a local method has to beat."""

from typing import ClassVar, Literal

import numpy as np

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.algorithms.shared.base import Paper
from dpmf_cli.algorithms.shared.local_model import LocalAlgorithm
from dpmf_cli.privacy.local import PerturbedRatings
from dpmf_cli.streams import Streams


class LocalMean(LocalAlgorithm):
    """r̂_ui = the mean of all perturbed ratings: a method that does worse has learned nothing."""

    title: ClassVar[str] = "mean of perturbed ratings"
    paper: ClassVar[Paper] = Paper.DPMF
    revision: ClassVar[int] = 2

    algorithm: Literal["local_mean"]

    def aggregate(self, received: PerturbedRatings, streams: Streams) -> EffectsModel:
        items = np.broadcast_to(received.means, (received.n_items, len(received.epsilons)))
        return EffectsModel(items, np.zeros((received.n_users, len(received.epsilons))))
