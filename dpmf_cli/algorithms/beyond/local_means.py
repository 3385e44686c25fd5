"""Item and user means of perturbed ratings, debiased and shrunk."""

from typing import ClassVar, Literal

from pydantic import Field

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.algorithms.shared.base import Paper
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.local_averages import item_and_user_means
from dpmf_cli.algorithms.shared.local_model import LocalAlgorithm
from dpmf_cli.privacy.local import PerturbedRatings
from dpmf_cli.streams import Streams


class LocalMeans(LocalAlgorithm):
    """r̂_ui = item mean + user mean, debiased and shrunk by how noisy the messages are.

        item_i = m + (Σ_u (r*_ui − m))/(n_i + σ²/τ²),   user_u = (Σ_i (r*_ui − item_i))/(n_u + σ′²/τ′²)

    These are the best linear estimates if the items' true means have variance τ² around m, and messages have variance
    σ² around their item's mean. Both variances are estimated from the messages themselves (`spread`), so nothing is
    tuned. Where noise hides all differences between items (or users), τ² = 0 and the prediction is the mean m, which
    is clipped to [0, 1].
    """

    title: ClassVar[str] = "item and user means"
    paper: ClassVar[Paper] = Paper.DPMF
    revision: ClassVar[int] = 2

    algorithm: Literal["local_means"]
    debias: bool = Field(True, description="read messages as ½ + (p − ½)/s, so that their mean is the rating")

    def aggregate(self, received: PerturbedRatings, streams: Streams) -> EffectsModel:
        return item_and_user_means(received)

    def cost(self, shape: Shape, grid: int) -> Cost:
        sums = shape.rows * grid * 16.0 + 24.0 * shape.ratings
        return super().cost(shape, grid) + Cost(shape.ratings * grid * 3e-8, sums)
