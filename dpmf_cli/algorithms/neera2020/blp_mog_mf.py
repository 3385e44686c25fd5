"""BLP-MoG-MF: bounded Laplace noise modelled as a mixture of Gaussians. Neera et al. 2020, algorithm 2."""

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.local_factorization import LocalFactorization
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.mixture import (
    LEAST_VARIANCE,
    Mixture,
    by_item,
    by_user,
    mixture_sums,
    residual_variances,
    solve_mixture,
)
from dpmf_cli.kernels.movement import UserFactors
from dpmf_cli.privacy.local import PerturbedRatings
from dpmf_cli.streams import Streams
from dpmf_cli.strict_model import later


class MixtureFactorization(LocalFactorization):
    """r* = p_u·q_i + e, e ~ Σ_k π_k·N(0, σ_k²), by EM; equations 7 to 14.

        γ_k ∝ π_k·N(e; 0, σ_k²)                                                   (10, anew before each step below)
        p_u ← argmin Σ_i w_ui(r*_ui − p·q_i)² + 12·n_u·λ‖p‖²,  w = Σ_k γ_k/σ_k²     (13, 14), then the same for items
        π_k = Σ γ_k/N,   σ_k² = Σ γ_k·e²/Σ γ_k                                      (12)

    until U moves by less than `tolerance` of its norm, or `iterations` times.

    Where this departs from algorithm 2. Factors come before π_k and σ_k, where the listing has these first
    (`order`): the errors of factors that are drawn at random say nothing about the noise. The weighted L2 problem is
    solved by alternating least squares, one sweep an iteration, in place of WPCA (De la Torre and Black 2003), which
    alternates the same two weighted regressions. The listing prints its E-step before its loop, where no fitted
    factor reaches it; it is repeated here before each of the three steps (multicycle ECM, Meng and Rubin 1993,
    section 3), which keeps the likelihood from falling and saves storing the weights. The paper has no ridge; with λ
    > 0 it is the likelihood times a Gaussian prior that is maximised. The factor 12 gives λ the meaning that it has
    in `LocalMatrixFactorization` where messages are hardly more than noise, uniform on [0, 1] with variance 1/12.
    """

    title: ClassVar[str] = "BLP-MoG-MF"
    paper: ClassVar[Paper] = Paper.NEERA
    revision: ClassVar[int] = 2

    algorithm: Literal["blp_mog_mf"]
    regularization: float = Field(0.04, gt=0, description="λ; not in the paper, which has none")
    components: int = Field(3, ge=2, le=8, description="K; not in the paper")
    iterations: int = Field(20, ge=1, description="at most; not in the paper")
    tolerance: float = Field(1e-3, ge=0, description="stop where ‖U − U′‖ ≤ tolerance·‖U‖; not in the paper")
    order: Literal["factors_first", "mixture_first"] = later(
        "factors_first", description="of an iteration; mixture_first is the listing's"
    )

    def factorise(self, model: FactorModel, received: PerturbedRatings, streams: Streams) -> None:
        for _ in self.steps(model, received, streams):
            pass

    def steps(self, model: FactorModel, received: PerturbedRatings, streams: Streams) -> Iterator[Mixture]:
        """Iterates EM, factors in place, and yields the mixture as it is after each iteration.

        A model that has converged no longer moves, whatever the others of the grid do.
        """
        values, users, items = received.values, by_user(received), by_item(received)
        mixture = self.initial_mixture(residual_variances(model, received, values) + LEAST_VARIANCE, streams)
        active = np.ones(len(received.epsilons), np.bool_)
        for _ in range(self.iterations):
            before = UserFactors.of(model)
            if self.order == "mixture_first":
                mixture = _maximised(mixture, active, *mixture_sums(model, users, values, mixture, active))
            for side in (users, items):
                solve_mixture(model, side, values, mixture, regularization=self.regularization, active=active)
            if self.order == "factors_first":
                mixture = _maximised(mixture, active, *mixture_sums(model, users, values, mixture, active))
            yield mixture
            active = active & (before.moved(model) > self.tolerance)
            if not active.any():
                return

    def initial_mixture(self, variances: NDArray[np.float64], streams: Streams) -> Mixture:
        """Random: proportions uniform on the simplex, variances 0.1 to 1 times those of the ratings, (E,)."""
        rng = streams.start("initial mixture")
        proportions = rng.dirichlet(np.ones(self.components))[:, None] * np.ones_like(variances)
        return Mixture(proportions, rng.uniform(0.1, 1.0, (self.components, 1)) * variances)


def _maximised(
    mixture: Mixture,
    active: NDArray[np.bool_],
    counts: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> Mixture:
    """Equation 12, for the models that are active and have ratings. counts, squares (K, E)."""
    alive, ratings = counts > 0, counts.sum(axis=0)
    active = active & (ratings > 0)
    ratings = np.where(active, ratings, 1.0)
    variances = np.where(alive, squares / np.where(alive, counts, 1.0), mixture.variances)
    return Mixture(
        np.where(active, counts / ratings, mixture.proportions),
        np.where(active, np.maximum(variances, LEAST_VARIANCE), mixture.variances),
    )
