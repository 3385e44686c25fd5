"""Matrix factorisation of perturbed ratings by unweighted ALS."""

from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.averages_baseline import EffectsModel
from dpmf_cli.algorithms.shared.local_averages import item_and_user_means
from dpmf_cli.algorithms.shared.local_factorization import LocalFactorization, sides
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.kernels.mixture import (
    LEAST_VARIANCE,
    REFERENCE,
    Mixture,
)
from dpmf_cli.privacy.local import PerturbedRatings
from dpmf_cli.streams import Streams


class LocalMatrixFactorization(LocalFactorization):
    """Alternating least squares on the perturbed ratings, all of the same weight; ‖·‖² weighted by n as in ALS-WR.

    What a mixture of Gaussians adds is the difference between `MixtureFactorization` and this.

    With `means` it factorises what `LocalMeans` leaves, and the ridge grows with the variance of that: λ is the same
    prior for every mechanism and ε. Without, messages of large variance (unbiased ones at small ε) are overfitted.
    """

    title: ClassVar[str] = "MF of perturbed ratings"
    paper: ClassVar[Paper] = Paper.DPMF

    algorithm: Literal["local_mf"]
    means: bool = Field(
        False, description="factorise what shrunk item and user means leave, λ in units of its variance"
    )
    iterations: int = Field(20, ge=1, description="users, then items, so many times")

    def factorise(
        self, factors: FactorLanes, received: PerturbedRatings, values: NDArray[np.float32], streams: Streams
    ) -> None:
        users, items = sides(received)
        variances = np.full((1, factors.lanes), REFERENCE)
        if self.means:
            values = values - factors.effects(received.users, received.items)
            variances = values[:, : factors.lanes].var(axis=0, dtype=np.float64)[None] + LEAST_VARIANCE
        alone = Mixture(np.ones_like(variances), variances)
        everything = np.ones(factors.lanes, np.bool_)
        for _ in range(self.iterations):
            self.solve_both(factors, (users, items), values, alone, everything)

    def effects_of(self, received: PerturbedRatings) -> EffectsModel:
        return item_and_user_means(received) if self.means else super().effects_of(received)
