"""PSGD: stochastic gradient perturbation. Friedman, Berkovsky, Kaafar 2016, section 4.3, algorithms 4 and 5."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from dpmf_cli.algorithms.shared.base import Paper, Variants, in_both_modes
from dpmf_cli.algorithms.shared.cost import Cost, Shape, factors_cost, noise_on_rows, sgd_fetches
from dpmf_cli.algorithms.shared.private_factorization import RowMoves, Side, TwoSidedFactorization, in_order
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.releasing import perturb_side
from dpmf_cli.kernels.sgd import Sgd, descend_clamped_errors, descend_noisy_errors
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import repeated_laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release

VISIT = 4.5e-9
"""Seconds per rating, latent factor and group of 16 lanes, with the projection of two rows."""


class PrivateSGD(TwoSidedFactorization):
    """Gradients are perturbed while they are descended: algorithm 4 bounded, algorithm 5 unbounded."""

    title: ClassVar[str] = "PSGD"
    paper: ClassVar[Paper] = Paper.FRIEDMAN
    revision: ClassVar[int] = 2
    by_rating: ClassVar[bool] = True

    algorithm: Literal["psgd"]
    learning_rate: float = Field(
        0.02, gt=0, le=1, description="γ; the paper's 0.01, times the gradient's factor 2, which eq. 2 drops"
    )
    epochs: int = Field(5, ge=1, description="k, section 5.2")
    error_bound: float = Field(2.0, ge=1e-6, le=1e6, description="e_max of algorithm 4, bounded only")
    order: Literal["user_major", "shuffled"] = "user_major"

    def algorithm_4(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> FactorModel:
        """Algorithm 4, with its line numbers, on the residuals r̃ that the averages leave:

            1        P, Q ← random, within ‖p_u‖ ≤ p_max and ‖q_i‖ ≤ q_max
            2        for k passes
            3          for each rating r̃_ui, in the order of the visits
            4            e ← r̃_ui − p_u·q_i + Laplace(k·Δr/ε)
            5            e ← clamp(e, ±e_max)
            6, 7         q_i ← q_i + γ(e·p_u − λ·q_i),  p_u ← p_u + γ(e·q_i − λ·p_u), both from the old rows
            sec. 5.2     ‖p_u‖ ≤ p_max,  ‖q_i‖ ≤ q_max
            8        return P, Q

        Δr is min(2B, r_max − r_min), since residuals are clamped to ±B (section 4.2). ε is the part that the averages
        leave. A rating enters a pass only through its own error, and everything else follows from noisy errors, so ε
        is provable.
        """
        effects = self.measure_effects(train, epsilons, curator)
        bound = self.bound(train.scale)
        model = self.start_within_norms(train, effects, streams)  # line 1
        visits = in_order(train, self.order, streams)
        passes = repeated_laplace(
            "errors",
            (len(train),),
            repetitions=self.epochs,
            sensitivity=sensitivity.clamped_residuals(bound, train.scale),
            epsilon=self.for_factors(epsilons),
            curator=curator,
        )
        sgd = Sgd(
            self.learning_rate, self.regularization, bound, self.error_bound, self.user_norm, self.item_norm
        )
        for errors in passes:  # line 2
            errors.inside(descend_noisy_errors, model, visits, sgd)  # lines 3 to 7, and the norm bounds
        return model

    @property
    def ignored(self) -> frozenset[str]:
        return super().ignored | ({"user_share"} if self.neighbours is Neighbours.BOUNDED else set())

    def algorithm_5(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> FactorModel:
        """Algorithm 5, with its line numbers, on the residuals r̃ that the averages leave:

            1, 2     s_q, s_p: how far one update can move a row
            3        P, Q ← random, within their norms
            4        for k passes
            5, 6       for each rating r̃_ui: e ← clamp(r̃_ui − p_u·q_i, ±(B + p_max·q_max))
            7, 8         q_i ← q_i + γ(e·p_u − λ·q_i),  p_u ← p_u + γ(e·q_i − λ·p_u), both from the old rows
            10-12      p_u ← p_u + noise with density ∝ exp(−ε‖b‖/(2k·s_p))
            13         ‖p_u‖ ≤ p_max
            14-16      q_i ← q_i + noise with density ∝ exp(−ε‖b‖/(2k·s_q))
            17         ‖q_i‖ ≤ q_max
            19       return P, Q

        The noise is scaled to how far *one* update can move a row. But an added rating also changes every later
        update of the pass, and no bound on this change is known. So no ε is provable, and there is no corrected mode.
        `pbgd` follows the direction that the paper's conclusion names.
        """
        effects = self.measure_effects(train, epsilons, curator)
        bound = self.bound(train.scale)
        model = self.start_within_norms(train, effects, streams)  # line 3
        visits = in_order(train, self.order, streams)
        of_users = self._vector_noise("user", train, epsilons, curator)
        of_items = self._vector_noise("item", train, epsilons, curator)
        error_bound = bound + self.user_norm * self.item_norm
        sgd = Sgd(self.learning_rate, self.regularization, bound, error_bound)
        for user_vectors, item_vectors in zip(of_users, of_items, strict=True):  # line 4
            descend_clamped_errors(model, visits, sgd)  # lines 5 to 8
            user_vectors.inside(perturb_side, model, "users", self.user_norm)  # lines 10 to 13
            item_vectors.inside(perturb_side, model, "items", self.item_norm)  # lines 14 to 17
        return model

    def _vector_noise(
        self, side: Side, train: Ratings, epsilons: Epsilons, curator: Curator
    ) -> Iterator[Release]:
        """K-norm noise for the vectors of one side after each pass: algorithm 5, lines 1-2 and 10-16."""
        own, other = self.norms(side)
        reach, why = self.bound(train.scale) + own * other, "a rating changes all later updates of a pass"
        moves = RowMoves(
            sensitivity.no_bound_known(2, Neighbours.UNBOUNDED, why),
            sensitivity.sgd_pass_unbounded(self.learning_rate, self.regularization, reach, own, other),
        )
        return self.side_noises(side, train, self.epochs, moves, epsilons, curator)

    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED, run=algorithm_4) | {
        (Neighbours.UNBOUNDED, Mode.PUBLISHED): algorithm_5
    }

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes = self.epochs * len(groups(grid))
        seconds = shape.ratings * (passes * self.factors * VISIT + 3e-8)
        fetches = sgd_fetches(shape, self.factors, epochs=passes, by_user=self.order == "user_major")
        if self.neighbours is Neighbours.BOUNDED:  # two draws of noise are held at once, and the signs of one
            seconds, held = seconds + 1e-8 * self.epochs * shape.ratings, 25.0 * shape.ratings
            return factors_cost(shape, grid, self.factors, seconds=seconds, held=held) + fetches
        whole = factors_cost(shape, grid, self.factors, seconds=seconds, held=8.0 * shape.ratings)
        return whole + noise_on_rows(shape, self.factors, self.epochs) + fetches
