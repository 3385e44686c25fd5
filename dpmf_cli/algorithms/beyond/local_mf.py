"""Matrix factorisation of perturbed ratings by unweighted ALS."""

from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.algorithms.shared.base import Choices, Paper
from dpmf_cli.algorithms.shared.cost import SOLVED_ENTRY, Cost, Shape, gram_entries
from dpmf_cli.algorithms.shared.local_averages import item_and_user_means
from dpmf_cli.algorithms.shared.local_factorization import LocalFactorization
from dpmf_cli.compiled.lane_groups import groups
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.mixture import (
    LEAST_VARIANCE,
    REFERENCE,
    Mixture,
    by_item,
    by_user,
    residual_variances,
    solve_mixture,
)
from dpmf_cli.privacy.local import PerturbedRatings
from dpmf_cli.privacy.local_mechanisms import Mechanism
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.streams import Streams


class LocalMatrixFactorization(LocalFactorization):
    """Alternating least squares on the perturbed ratings, with equal weights; ‖·‖² is weighted by n as in ALS-WR:

        p_u ← argmin Σ_i (r*_ui − p·q_i)² + n_u·λ‖p‖²,  then the same for items,  `iterations` times

    The difference between `MixtureFactorization` and this method shows what a mixture of Gaussians adds.

    With `means`, it factorises the residuals of `LocalMeans`, and the ridge grows with their variance, so that λ is
    the same prior for every mechanism and ε. Without `means`, messages of large variance (unbiased ones at small ε)
    are overfitted.
    """

    title: ClassVar[str] = "MF of perturbed ratings"
    paper: ClassVar[Paper] = Paper.DPMF
    revision: ClassVar[int] = 2
    by_rating: ClassVar[bool] = True

    algorithm: Literal["local_mf"]
    means: bool = Field(
        False,
        description="factorise the residuals of shrunk item and user means, with λ in units of their variance",
    )
    iterations: int = Field(20, ge=1, description="how often users, then items, are solved")

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (tuple({"mechanism": kind.value} for kind in Mechanism),)

    def averages_of(self, received: PerturbedRatings) -> EffectsModel:
        return item_and_user_means(received) if self.means else super().averages_of(received)

    def factorise(self, model: FactorModel, received: PerturbedRatings, streams: Streams) -> None:
        values, users, items = received.values, by_user(received), by_item(received)
        variances = np.full(len(received.epsilons), REFERENCE)
        if self.means:
            variances = residual_variances(model, received, values) + LEAST_VARIANCE
        alone = Mixture(np.ones((1, len(variances))), variances[None])
        everything = np.ones(len(variances), np.bool_)
        for _ in range(self.iterations):
            for side in (users, items):
                solve_mixture(
                    model, side, values, alone, regularization=self.regularization, active=everything
                )

    def cost(self, shape: Shape, grid: int) -> Cost:
        solved = 2 * self.iterations * shape.ratings * gram_entries(self.factors)
        seconds = solved * SOLVED_ENTRY * len(groups(grid))
        return super().cost(shape, grid) + Cost(seconds, 12.0 * shape.ratings)
