"""Factorisations that Friedman et al. 2016, section 7, name or suggest without having them."""

from typing import Literal

from pydantic import Field

from dpmf_cli.algorithms.shared.base import Paper, in_both_modes
from dpmf_cli.algorithms.shared.cost import LINE, Cost, Shape, effects_cost
from dpmf_cli.algorithms.shared.private_factorization import (
    NormBoundedFactorization,
    PrivateLeastSquares,
    RowMoves,
    Side,
)
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.als import solve_perturbed
from dpmf_cli.kernels.clipped_gradients import BatchStep, step_batch
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import repeated_k_norm
from dpmf_cli.privacy.neighbours import Neighbours


class ObjectivePrivateALS(PrivateLeastSquares):
    """ALS with objective perturbation (Chaudhuri et al. 2011), as the paper's conclusion suggests. Bounded.

        p_u ← argmin J_Q(p_u) + 2·b·p_u = A⁻¹(Σ_i r̃_ui·q_i − b),  A = Σ_i q_i·q_iᵀ + n_u·λ·I

    A is public given the released Q, so this is K-norm noise on the vector Σ r̃·q, whose sensitivity is q_max·Δr
    (`sensitivity.least_squares_right_hand_side`). Since A ≥ n_u·λ·I, the noise on p_u is never larger than that of
    output perturbation at the same ε, and it is smaller the more items the user rated.
    """

    title = "PALS, objective"
    about = "ALS with objective perturbation, which Friedman et al. 2016, section 7, suggest."
    paper = Paper.DPMF
    variants = in_both_modes(Neighbours.BOUNDED)
    revision = 2
    solver = solve_perturbed

    algorithm: Literal["pals_objective"]

    def moves(self, side: Side, scale: Scale) -> RowMoves:
        of_others = self.norms(side)[1]
        return RowMoves(sensitivity.least_squares_right_hand_side(of_others, self.bound(scale), scale))


class PrivateBatchGradientDescent(NormBoundedFactorization):
    """In each of k steps, errors e are clamped so that ‖e·q_i‖ + ‖e·p_u‖ ≤ C for every rating:

        p_u ← (1 − γλ)·p_u + γ(Σ_i e·q_i + noise),   q_i ← (1 − γλ)·q_i + γ(Σ_u e·p_u + noise),   then the norm bounds

    One rating touches only two rows. K-norm noise for the sum of the rows' L2 norms has length Gamma(d, k·Δ/ε) in
    every row, with Δ = C unbounded and 2C bounded (`sensitivity.clipped_gradients`). It covers both sides at once.
    Every row gets noise, rated or not, and no scale depends on private counts, so ε is provable for both kinds of
    neighbours.
    """

    title = "PBGD"
    about = (
        "PBGD: batch gradient descent with joint clipping, a direction that Friedman et al. 2016 "
        "name in section 7."
    )
    paper = Paper.DPMF
    variants = in_both_modes(Neighbours.BOUNDED, Neighbours.UNBOUNDED)
    revision = 2

    algorithm: Literal["pbgd"]
    learning_rate: float = Field(0.02, gt=0, le=1, description="γ, on sums of gradients")
    epochs: int = Field(5, ge=1, description="k: steps, each with ε/k")
    clip: float = Field(
        0.5, ge=1e-6, le=1e6, description="C: the most that one rating may add to both gradients together"
    )

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> FactorModel:
        effects = self.measure_effects(train, epsilons, curator)
        steps = repeated_k_norm(
            "gradients",
            (train.n_users + train.n_items, self.factors),
            repetitions=self.epochs,
            sensitivity=sensitivity.clipped_gradients(self.clip, self.neighbours),
            epsilon=self.for_factors(epsilons),
            curator=curator,
        )
        model = self.start_within_norms(train, effects, streams)
        bound, norms = self.bound(train.scale), (self.user_norm, self.item_norm)
        step = BatchStep(self.learning_rate, self.regularization, bound, self.clip, *norms)
        for gradients in steps:
            gradients.inside(step_batch, model, train, step)
        return model

    def cost(self, shape: Shape, grid: int) -> Cost:
        visits = shape.ratings * self.epochs * len(groups(grid)) * self.factors * 8e-9
        factors = 2 * shape.rows * (self.factors + 1) * LINE * len(groups(grid))
        return effects_cost(shape, grid) + Cost(visits, factors)
