"""PSGD: stochastic gradient perturbation. Friedman, Berkovsky, Kaafar 2016, section 4.3, algorithms 4 and 5."""

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Cost, Shape, Variants, in_both_modes
from dpmf_cli.algorithms.shared.factorization import FactorModel
from dpmf_cli.algorithms.shared.factorization_cost import noise_on_rows, private_cost, sgd_fetches
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.private_factorization import NormBoundedFactorization, Side, Visits
from dpmf_cli.kernels.lanes import groups
from dpmf_cli.kernels.perturb import perturb_items, perturb_users
from dpmf_cli.kernels.sgd import descend_noisy_errors
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import repeated_k_norm, repeated_laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams

SECONDS_PER_VISIT_AND_FACTOR = 4.5e-9
"""One rating visited by one group of 16 lanes, per latent factor, projections included."""


class PrivateSGD(NormBoundedFactorization):
    """Bounded, algorithm 4, for each of k passes and each rating:

        e = clamp(r̃_ui − p_u·q_i + Laplace(k·2B/ε), ±e_max)
        p_u ← p_u + γ(e·q_i − λ·p_u),  q_i ← q_i + γ(e·p_u − λ·q_i),  then ‖p_u‖ ≤ p_max, ‖q_i‖ ≤ q_max

    A rating enters a pass through its own error alone, everything else follows from noisy errors: ε is provable.

    Unbounded, algorithm 5: a pass of SGD with errors clamped to ±(B + p_max·q_max) and no noise, then K-norm noise of
    ε/(2k) on every p_u and every q_i, then the norm bounds. Its noise is scaled to what *one* update can move. The
    added rating also changes every later update of the pass, and no bound on that is known: no ε is provable, and
    there is no corrected mode. `pbgd` goes the way that the paper's conclusion names.
    """

    title: ClassVar[str] = "PSGD"
    paper: ClassVar[Paper] = Paper.FRIEDMAN
    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED) | {
        (Neighbours.UNBOUNDED, Mode.PUBLISHED)
    }

    algorithm: Literal["psgd"]
    learning_rate: float = Field(
        0.02, gt=0, le=1, description="γ; the paper's 0.01 with the factor 2 of the gradient that eq. 2 drops"
    )
    epochs: int = Field(5, ge=1, description="k, section 5.2")
    error_bound: float = Field(2.0, gt=0, description="e_max of algorithm 4, bounded only")
    order: Literal["user_major", "shuffled"] = "user_major"

    def fit(self, train: Ratings, *, streams: Streams, ledger: Ledger) -> FactorModel:
        effects = self.measure_effects(train, streams, ledger)
        parts = groups(len(ledger.epsilons))
        models = self.start_within_norms(train, effects, parts, streams)
        visits = Visits(train, self.order, streams)
        if self.neighbours is Neighbours.BOUNDED:
            errors = repeated_laplace(
                "errors",
                (len(train),),
                repetitions=self.epochs,
                sensitivity=sensitivity.clamped_residuals(self.bound(train.scale), train.scale),
                epsilon=self.factorization_epsilon(ledger),
                rng=streams.generator("errors"),
                ledger=ledger,
                dtype=np.float32,
            )
            for noise in errors:
                for factors, lanes in zip(models, parts, strict=True):
                    descend_noisy_errors(
                        factors,
                        visits.users,
                        visits.items,
                        visits.values,
                        noise.unit,
                        noise.scale[lanes],
                        learning_rate=self.learning_rate,
                        regularization=self.regularization,
                        bound=self.bound(train.scale),
                        error_bound=self.error_bound,
                        user_limit=self.user_norm,
                        item_limit=self.item_norm,
                    )
            return FactorModel(models)

        noises = [self._vector_noise(side, train, streams, ledger) for side in ("user", "item")]
        silence = np.zeros(len(train), np.float32)
        everybody, everything = np.ones(train.n_users), np.ones(train.n_items)
        for user_noise, item_noise in zip(*noises, strict=True):
            for factors, lanes in zip(models, parts, strict=True):
                descend_noisy_errors(
                    factors,
                    visits.users,
                    visits.items,
                    visits.values,
                    silence,
                    np.zeros(factors.lanes),
                    learning_rate=self.learning_rate,
                    regularization=self.regularization,
                    bound=self.bound(train.scale),
                    error_bound=self.bound(train.scale) + self.user_norm * self.item_norm,
                    user_limit=np.inf,
                    item_limit=np.inf,
                )
                perturb_users(factors, user_noise, everybody, self.user_norm, lanes)
                perturb_items(factors, item_noise, everything, self.item_norm, lanes)
        return FactorModel(models)

    def _vector_noise(
        self, side: Side, train: Ratings, streams: Streams, ledger: Ledger
    ) -> Iterator[LaneNoise]:
        """K-norm noise for the vectors of one side after each pass: algorithm 5, lines 1-2 and 10-16."""
        own, other = self.norms(side)
        rows = train.n_users if side == "user" else train.n_items
        return repeated_k_norm(
            f"{side} factors",
            (rows, self.factors),
            repetitions=self.epochs,
            sensitivity=sensitivity.no_bound_known(
                2, Neighbours.UNBOUNDED, "a rating changes all later updates of a pass"
            ),
            calibrated_to=sensitivity.sgd_pass_unbounded(
                self.learning_rate, self.regularization, self.bound(train.scale) + own * other, own, other
            ),
            epsilon=self.factorization_epsilon(ledger) / 2,
            rng=streams.generator(f"{side} factors"),
            ledger=ledger,
        )

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes = self.epochs * len(groups(grid))
        seconds = shape.ratings * (passes * self.factors * SECONDS_PER_VISIT_AND_FACTOR + 3e-8)
        far = sgd_fetches(shape, self.factors, epochs=passes, by_user=self.order == "user_major")
        if self.neighbours is Neighbours.BOUNDED:  # two draws of noise are held at once, and the signs of one
            seconds, held = seconds + 1e-8 * self.epochs * shape.ratings, 17.0 * shape.ratings
            noise = Cost(0.0, 0.0)
        else:
            held, noise = 8.0 * shape.ratings, noise_on_rows(shape, self.factors, self.epochs)
        whole = private_cost(shape, grid, self.factors, seconds=seconds, held=held)
        return whole + noise + Cost(0.0, 0.0, far)
