"""ISGD: input perturbation followed by SGD. Friedman, Berkovsky, Kaafar 2016, section 4.2, algorithm 3."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.averages import Effects, side_by_side
from dpmf_cli.algorithms.shared.base import Paper, Variants, Where, in_both_modes
from dpmf_cli.algorithms.shared.cost import LINE, Cost, Shape, factors_cost, sgd_fetches
from dpmf_cli.algorithms.shared.factorization import Kept
from dpmf_cli.algorithms.shared.private_factorization import PrivateFactorization, in_order
from dpmf_cli.algorithms.shared.sample_fits import one_by_one
from dpmf_cli.core.compiled.lane_groups import MAXIMUM_WIDTH, groups
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.gradients import sample_bits
from dpmf_cli.kernels.sgd import Sgd, descend_perturbed, kept_bytes
from dpmf_cli.kernels.survivors import descend_survivors
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import keyed_laplace, laplace
from dpmf_cli.privacy.neighbours import Neighbours

VISIT, CELL = 2.75e-9, 5e-9
"""Seconds per rating, latent factor and group of 16 lanes; and per cell of the perturbed matrix, for its noise and to
decide whether it survives."""


class InputPerturbationSGD(PrivateFactorization):
    """Ratings are perturbed once, and everything after the noise is post-processing.

    So the claimed ε is provable, with one exception: in unbounded published mode, the noise of the averages is too
    small (`shared.averages`).
    """

    title: ClassVar[str] = "ISGD"
    paper: ClassVar[Paper] = Paper.FRIEDMAN
    revision: ClassVar[int] = 2
    shares_lanes: ClassVar[bool | Where] = Where(
        lambda entry: entry.neighbours is Neighbours.UNBOUNDED, "with unbounded neighbours"
    )
    small: ClassVar[Mapping[str, Any]] = {"epochs": 3}
    by_rating: ClassVar[bool] = True

    algorithm: Literal["isgd"]
    learning_rate: float = Field(
        0.02, gt=0, le=1, description="γ; the paper's 0.01, times the gradient's factor 2, which eq. 2 drops"
    )
    epochs: int = Field(20, ge=1, description="k, section 5.2")
    order: Literal["user_major", "shuffled"] = "user_major"
    threshold: float = Field(0.6, gt=0, description="α, unbounded only: smaller perturbed values are dropped")

    def bounded(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> FactorModel:
        """Algorithm 3, with its line numbers. Neighbours differ in the value of one rating.

        eq. 7    r̃_ui = clamp(r_ui − IAvg(i) − UAvg(u), [−B, B])
        1        r′_ui = r̃_ui + Laplace(2B/ε)                        for every rating, once
        2        r′_ui clamped to [−B, B]
        3        (P, Q) = SGD on Σ (r′_ui − p_u·q_i)² + λ(‖p_u‖² + ‖q_i‖²)
        4        return P, Q
        """
        effects = self.measure_effects(train, epsilons, curator)
        bound = self.bound(train.scale)
        residuals = laplace(
            "residuals",
            (len(train),),
            sensitivity=sensitivity.clamped_residuals(bound, train.scale),
            epsilon=self.for_factors(epsilons),
            curator=curator,
        )
        model, visits = self.start(train, effects, streams), in_order(train, self.order, streams)
        sgd = Sgd(self.learning_rate, self.regularization, bound, epochs=self.epochs)
        residuals.inside(descend_perturbed, model, visits, sgd)  # lines 1 to 3
        return model

    def unbounded(
        self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator
    ) -> FactorModel:
        """Algorithm 3 over all cells of the users × items matrix. Neighbours differ in the presence of one rating.

            r̃_ui = 0 where there is no rating
            r′_ui = clamp(r̃_ui + Laplace(B/ε), [−B, B])          for every cell, once
            cells with |r′_ui| ≤ α are dropped                    equation 8
            (P, Q) = SGD on the cells that are left

        `kernels.survivors` does this without the matrix. Models of different samples are fitted side by side. A
        rating that is not in a model's sample is an empty cell to that model.
        """
        return self.fit_samples(train, None, epsilons, streams=streams, curator=curator)

    def fit_samples(
        self, train: Ratings, kept: Kept | None, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> FactorModel:
        """Measures the averages of one sample after the other, then fits all cells in one pass.

        Without `kept`, each model has all ratings, and their averages are measured once for all.
        """
        if kept is None:
            effects, bits = self.measure_effects(train, epsilons, curator), None
        else:

            def measure(place: int, epsilon: Epsilons, alone: Curator) -> Effects:
                return self.measure_effects(train.select(kept[:, place]), epsilon, alone)

            effects, bits = side_by_side(one_by_one(measure, epsilons, curator)), sample_bits(kept)
        bound = self.bound(train.scale)
        residuals = keyed_laplace(
            "residuals of all cells",
            sensitivity=sensitivity.residual_cells_unbounded(bound),
            epsilon=self.for_factors(epsilons),
            curator=curator,
        )
        rng = streams.generator("order of visits")
        order = rng.permutation(train.n_items).astype(np.int32)
        shifts = rng.integers(train.n_items, size=train.n_users)
        model = self.start(train, effects, streams)
        sgd = Sgd(
            self.learning_rate, self.regularization, bound, threshold=self.threshold, epochs=self.epochs
        )
        residuals.inside(descend_survivors, model, train, sgd, order, shifts, bits)
        return model

    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED, run=bounded) | in_both_modes(
        Neighbours.UNBOUNDED, run=unbounded
    )

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes, visit = self.epochs * len(groups(grid)), self.factors * VISIT
        if self.neighbours is Neighbours.UNBOUNDED:  # the rows of the cells' items stay near
            seconds = float(shape.users) * shape.items * passes * (CELL + visit)
            held = shape.items * (self.factors + 1) * LINE
            return factors_cost(shape, grid, self.factors, seconds=seconds, held=held)
        seconds, held = shape.ratings * (passes * visit + 4e-8), 17.0 * shape.ratings
        if self.epochs > 1:
            held += kept_bytes(shape.ratings, min(grid, MAXIMUM_WIDTH))
        fetches = sgd_fetches(shape, self.factors, epochs=passes, by_user=self.order == "user_major")
        return factors_cost(shape, grid, self.factors, seconds=seconds, held=held) + fetches
