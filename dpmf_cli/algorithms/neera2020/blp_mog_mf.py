"""BLP-MoG-MF: bounded Laplace noise modelled as a mixture of Gaussians. Neera et al. 2020, algorithm 2."""

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Paper
from dpmf_cli.algorithms.shared.cost import LINE, SOLVED_ENTRY, Cost, Shape, gram_entries
from dpmf_cli.algorithms.shared.local_model import LocalFactorization
from dpmf_cli.core.compiled.lane_groups import LaneValues, groups
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import later
from dpmf_cli.kernels.als import SideRatings
from dpmf_cli.kernels.factors import FactorModel, users_moved
from dpmf_cli.kernels.mixture import (
    LEAST_VARIANCE,
    Mixture,
    by_item,
    by_user,
    mixture_sums,
    residual_variances,
    solve_mixture,
)
from dpmf_cli.privacy.local import PerturbedRatings

COMPONENT = 1.1e-8
"""Seconds per rating, component of the mixture and group of 16 lanes. It is spent three times an iteration."""


class MixtureFactorization(LocalFactorization):
    """r* = p_u·q_i + e, e ~ Σ_k π_k·N(0, σ_k²), by EM; equations 7 to 14.

        γ_k ∝ π_k·N(e; 0, σ_k²)                                                   (10, anew before each step below)
        p_u ← argmin Σ_i w_ui(r*_ui − p·q_i)² + 12·n_u·λ‖p‖²,  w = Σ_k γ_k/σ_k²     (13, 14), then the same for items
        π_k = Σ γ_k/N,   σ_k² = Σ γ_k·e²/Σ γ_k                                      (12)

    until U moves by less than `tolerance` of its norm, or `iterations` times.

    Departures from algorithm 2:

    Order. Factors come before π_k and σ_k, where the listing has these first (`order`), because the errors of random
    factors say nothing about the noise.

    Regressions. Alternating least squares solve the weighted L2 problem, with one sweep an iteration. The paper uses
    WPCA (De la Torre and Black 2003), which alternates the same two weighted regressions.

    E-step. The listing prints it before the loop, where no fitted factor reaches it. Here it is repeated before each
    of the three steps (multicycle ECM, Meng and Rubin 1993, section 3). This keeps the likelihood from falling and
    saves storing the weights.

    Ridge. The paper has none. With λ > 0, the likelihood times a Gaussian prior is maximised. The factor 12 gives λ
    the same meaning as in `LocalMatrixFactorization` if messages are hardly more than noise: noise that is uniform on
    [0, 1] has variance 1/12.
    """

    title: ClassVar[str] = "BLP-MoG-MF"
    paper: ClassVar[Paper] = Paper.NEERA
    revision: ClassVar[int] = 2
    by_rating: ClassVar[bool] = True

    algorithm: Literal["blp_mog_mf"]
    regularization: float = Field(0.04, gt=0, description="λ; the paper has no ridge")
    components: int = Field(3, ge=2, le=8, description="K; not in the paper")
    iterations: int = Field(20, ge=1, description="the most iterations; not in the paper")
    tolerance: float = Field(1e-3, ge=0, description="stop where ‖U − U′‖ ≤ tolerance·‖U‖; not in the paper")
    order: Literal["factors_first", "mixture_first"] = later(
        "factors_first",
        description="order of an iteration's steps; mixture_first is as in the paper's listing",
    )

    def factorise(self, model: FactorModel, received: PerturbedRatings, streams: Streams) -> None:
        for _ in self.steps(model, received, streams):
            pass

    def steps(self, model: FactorModel, received: PerturbedRatings, streams: Streams) -> Iterator[Mixture]:
        """Iterates EM, moves the factors in place, and yields the mixture after each iteration.

        A model that has converged no longer moves, even if others of the grid still do.
        """
        values, users, items = received.values, by_user(received), by_item(received)
        mixture = self.initial_mixture(residual_variances(model, received, values) + LEAST_VARIANCE, streams)
        active = np.ones(len(received.epsilons), np.bool_)
        for _ in range(self.iterations):
            before = [group.users.copy() for group in model.groups]
            if self.order == "mixture_first":
                mixture = _maximised(model, users, values, mixture, active)
            for side in (users, items):
                solve_mixture(model, side, values, mixture, regularization=self.regularization, active=active)
            if self.order == "factors_first":
                mixture = _maximised(model, users, values, mixture, active)
            yield mixture
            active = active & (users_moved(before, model) > self.tolerance)
            if not active.any():
                return

    def initial_mixture(self, variances: NDArray[np.float64], streams: Streams) -> Mixture:
        """Draws proportions uniformly on the simplex, and variances of 0.1 to 1 times `variances` (E,), those of the
        ratings."""
        rng = streams.start("initial mixture")
        proportions = rng.dirichlet(np.ones(self.components))[:, None] * np.ones_like(variances)
        return Mixture(proportions, rng.uniform(0.1, 1.0, (self.components, 1)) * variances)

    def cost(self, shape: Shape, grid: int) -> Cost:
        each = 2 * gram_entries(self.factors) * SOLVED_ENTRY + 3 * self.components * COMPONENT
        seconds = self.iterations * shape.ratings * len(groups(grid)) * each
        before = shape.users * (self.factors + 1) * LINE * len(groups(grid))
        return super().cost(shape, grid) + Cost(seconds, 12.0 * shape.ratings + before)


def _maximised(
    model: FactorModel, users: SideRatings, values: LaneValues, mixture: Mixture, active: NDArray[np.bool_]
) -> Mixture:
    """Equation 12, for the models that are active and have ratings."""
    counts, squares = mixture_sums(model, users, values, mixture, active)
    alive, ratings = counts > 0, counts.sum(axis=0)
    active = active & (ratings > 0)
    ratings = np.where(active, ratings, 1.0)
    variances = np.where(alive, squares / np.where(alive, counts, 1.0), mixture.variances)
    return Mixture(
        np.where(active, counts / ratings, mixture.proportions),
        np.where(active, np.maximum(variances, LEAST_VARIANCE), mixture.variances),
    )
