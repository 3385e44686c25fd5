"""BLP-MoG-MF: bounded Laplace noise modelled as a mixture of Gaussians. Neera et al. 2020, algorithm 2."""

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.local_factorization import LocalFactorization, sides
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.kernels.factors import FactorLanes
from dpmf_cli.kernels.mixture import (
    LEAST_VARIANCE,
    Mixture,
    mixture_sums,
)
from dpmf_cli.privacy.local import PerturbedRatings
from dpmf_cli.streams import Streams


class MixtureFactorization(LocalFactorization):
    """r* = p_u·q_i + e, e ~ Σ_k π_k·N(0, σ_k²), by EM; equations 7 to 14.

        γ_k ∝ π_k·N(e; 0, σ_k²)                                                   (10, anew before each step below)
        p_u ← argmin Σ_i w_ui(r*_ui − p·q_i)² + 12·n_u·λ‖p‖²,  w = Σ_k γ_k/σ_k²     (13, 14), then the same for items
        π_k = Σ γ_k/N,   σ_k² = Σ γ_k·e²/Σ γ_k                                      (12)

    until U moves by less than `tolerance` of its norm, or `iterations` times.

    Where this departs from algorithm 2. The weighted L2 problem is solved by alternating least squares, one sweep an
    iteration, in place of WPCA (De la Torre and Black 2003), which alternates the same two weighted regressions.
    The E-step is repeated before each of the three steps (multicycle ECM, Meng and Rubin 1993, section 3), which
    keeps the likelihood from falling and saves storing the weights. The paper has no ridge; with λ > 0 it is the
    likelihood times a Gaussian prior that is maximised. The factor 12 gives λ the meaning that it has in
    `LocalMatrixFactorization` where messages are hardly more than noise, uniform on [0, 1] with variance 1/12.
    """

    title: ClassVar[str] = "BLP-MoG-MF"
    paper: ClassVar[Paper] = Paper.NEERA

    algorithm: Literal["blp_mog_mf"]
    regularization: float = Field(0.04, gt=0, description="λ; not in the paper, which has none")
    components: int = Field(3, ge=2, le=8, description="K; not in the paper")
    iterations: int = Field(20, ge=1, description="at most; not in the paper")
    tolerance: float = Field(1e-3, ge=0, description="stop where ‖U − U′‖ ≤ tolerance·‖U‖; not in the paper")

    def factorise(
        self, factors: FactorLanes, received: PerturbedRatings, values: NDArray[np.float32], streams: Streams
    ) -> None:
        for _ in self.steps(factors, received, values, streams):
            pass

    def steps(
        self, factors: FactorLanes, received: PerturbedRatings, values: NDArray[np.float32], streams: Streams
    ) -> Iterator[Mixture]:
        """Iterates EM, factors in place, and yields the mixture as it is after each iteration.

        A model that has converged no longer moves, whatever the others of its group do.
        """
        users, items = sides(received)
        spread = values[:, : factors.lanes].var(axis=0, dtype=np.float64) + LEAST_VARIANCE
        mixture = self.initial_mixture(spread, streams)
        active = np.ones(factors.lanes, np.bool_)
        rows = factors.users.reshape(received.n_users, factors.factors + 1, factors.width)
        for _ in range(self.iterations):
            before = rows.copy()
            self.solve_both(factors, (users, items), values, mixture, active)
            mixture = _maximised(mixture, active, *mixture_sums(factors, users, values, mixture))
            yield mixture
            active = active & (_moves(before, rows)[: factors.lanes] > self.tolerance)
            if not active.any():
                return

    def initial_mixture(self, spread: NDArray[np.float64], streams: Streams) -> Mixture:
        """Random: proportions uniform on the simplex, variances between 0.1 and 1 times that of the ratings."""
        rng = streams.start("initial mixture")
        proportions = rng.dirichlet(np.ones(self.components))[:, None] * np.ones_like(spread)
        return Mixture(proportions, rng.uniform(0.1, 1.0, (self.components, 1)) * spread)


def _maximised(
    mixture: Mixture,
    active: NDArray[np.bool_],
    counts: NDArray[np.float64],
    squares: NDArray[np.float64],
) -> Mixture:
    """Equation 12, for the models that are still active. counts, squares (K, lanes)."""
    alive = counts > 0
    variances = np.where(alive, squares / np.where(alive, counts, 1.0), mixture.variances)
    return Mixture(
        np.where(active, counts / counts.sum(axis=0), mixture.proportions),
        np.where(active, np.maximum(variances, LEAST_VARIANCE), mixture.variances),
    )


def _moves(before: NDArray[np.float32], after: NDArray[np.float32]) -> NDArray[np.float64]:
    """(width,) ‖U − U′‖/‖U‖ of each model, U (n_users, d + 1, width) with its row of effects, which is 0."""
    norms = np.sqrt(np.square(after).sum(axis=(0, 1), dtype=np.float64))
    distances = np.sqrt(np.square(after - before).sum(axis=(0, 1), dtype=np.float64))
    return np.asarray(distances / np.maximum(norms, 1e-30))
