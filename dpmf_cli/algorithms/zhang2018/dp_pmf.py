"""DP-PMF: PMF by objective perturbation. Zhang, Liu, Chen and Zhong 2018, section 4, algorithm 2."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import (
    IN_PUBLISHED_MODE,
    ByMode,
    Paper,
    PrivateAlgorithm,
    Variants,
    Where,
)
from dpmf_cli.algorithms.shared.cost import LINE, PERTURBED_ENTRY, Cost, Shape, gram_entries
from dpmf_cli.algorithms.shared.factorization import KnownModel
from dpmf_cli.algorithms.shared.private_factorization import Side
from dpmf_cli.algorithms.shared.probabilistic import GradientDescentPMF, Kept, sampled_model
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.kernels.als import RowProblem, by_item, by_user, solve_perturbed
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.gradients import Descent, step_noisy, sum_gradients
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.accounting import LEAST_SHARE
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import laplace, redrawn_k_norm, repeated_k_norm
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release


class ObjectivePerturbation(StrictModel):
    """The parameters of objective perturbation, and the ε that it spends besides noise.

    Bounded: the noise η hides only the vectors Σ r̃·u (`sensitivity.least_squares_right_hand_side`). Unbounded: w is
    so large that the change of the determinant costs no more than its share of ε (`sensitivity.hessian_unbounded`).
    The rest of ε scales the noise (`sensitivity.ridge_objective_unbounded`). The same w, about 1/(share·ε), serves
    both.
    """

    least_ridge: float = Field(
        1.0,
        ge=1e-3,
        description="corrected: the least w; with less, float64 solves rows of 10⁵ ratings too inexactly",
    )
    passes: int = Field(1, ge=1, description="corrected: how often the items are solved")
    average_share: float = Field(
        0.05, ge=LEAST_SHARE, le=0.9, description="corrected: fraction of ε for the global average"
    )
    jacobian_share: float = Field(
        0.1,
        ge=LEAST_SHARE,
        le=0.9,
        description="corrected: fraction of a solution's ε for its determinant; sets w",
    )
    residual_clamp: float = Field(
        2.0, ge=1e-6, le=1e6, description="corrected: B, the clamp of ratings less their average"
    )
    item_norm: float = Field(
        1.5,
        ge=1e-6,
        le=1e6,
        description="corrected: R, the largest norm of an item's row; above the limit its square overflows float32",
    )
    public_constant: float = Field(0.9, ge=0, le=1, description="corrected: the constant in a unit row")

    def public_rows(self, rows: int, dimension: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """(rows, dimension) unit rows that do not depend on any rating."""
        if dimension == 1:
            return np.ones((rows, 1))
        direction = rng.standard_normal((rows, dimension - 1))
        direction *= np.sqrt(1 - self.public_constant**2) / np.linalg.norm(direction, axis=1, keepdims=True)
        return np.column_stack([np.full(rows, self.public_constant), direction])

    def norms(self, side: Side) -> tuple[float, float]:
        """The largest ‖row‖₂ of this side, and of the other side."""
        return (self.item_norm, 1.0) if side == "item" else (1.0, self.item_norm)

    def ridge(self, other: float, each: Epsilons) -> NDArray[np.float64]:
        """(E,) w of solutions that each spend ε `each` (E,), if the other side's rows have norms up to `other`."""
        hessian = sensitivity.hessian_unbounded(other)
        return np.maximum(
            self.least_ridge, sensitivity.ridge_for_jacobian(hessian, self.jacobian_share * each)
        )


def private_global_average(
    train: Ratings, epsilon: NDArray[np.float64], neighbours: Neighbours, *, curator: Curator
) -> NDArray[np.float64]:
    """(E,) the mean rating, measured with ε `epsilon` and clamped to the scale.

    The sum is of r − middle of the scale. Bounded: the number of ratings is public. Unbounded: it gets half of ε.
    """
    scale, unbounded, known = train.scale, neighbours is Neighbours.UNBOUNDED, float(len(train))
    moves = sensitivity.centred_rating_sums_unbounded(scale) if unbounded else sensitivity.rating_sums(scale)
    spent = epsilon / 2 if unbounded else epsilon
    centred = train.values.sum(dtype=np.float64) - len(train) * scale.middle
    total = laplace("global sum", (), sensitivity=moves, epsilon=spent, curator=curator).added_to(centred)
    count = np.full(len(epsilon), known)
    if unbounded:
        moves = sensitivity.rating_counts_unbounded()
        noise = laplace("global count", (), sensitivity=moves, epsilon=spent, curator=curator)
        count = noise.added_to(np.asarray(known))
    average = scale.middle + total / np.maximum(count, 1)
    return np.asarray(np.clip(average, scale.minimum, scale.maximum))


class PrivatePMF(GradientDescentPMF, ObjectivePerturbation, PrivateAlgorithm):
    """PMF under privacy, as published and as the paper's theorem 4 means it.

    These are two algorithms that share only d. Each refuses parameters that only the other uses.
    """

    title: ClassVar[str] = "DP-PMF"
    paper: ClassVar[Paper] = Paper.ZHANG
    averaged: ClassVar[bool] = False
    joint: ClassVar[bool | Where] = IN_PUBLISHED_MODE
    shares_lanes: ClassVar[bool | Where] = IN_PUBLISHED_MODE
    revision: ClassVar[int] = 2
    small: ClassVar[Mapping[str, Any]] = {"epochs": 3, "noisy_epochs": 3, "learning_rate": 0.1}
    """The published learning rate is meant for 10⁵ ratings, and diverges on a few."""
    only: ClassVar[ByMode] = {
        Mode.PUBLISHED: (
            *(name for name in GradientDescentPMF.model_fields if name != "factors"),
            "noisy_epochs",
        ),
        Mode.CORRECTED: tuple(ObjectivePerturbation.model_fields),
    }

    algorithm: Literal["dp_pmf"]
    noisy_epochs: int = Field(50, ge=1, description="k₂, published; the paper does not give it")

    def published(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> KnownModel:
        """Algorithm 2, by batches of b ratings:

            U, V = PMF without noise, k₁ epochs                                                lines 1 to 13
            for k₂ epochs:  v_j ← v_j − γ/b·(−Σ_i (r_ij − u_i·v_j)·u_i + η_j + λ·v_j)          from line 14
                            ‖η_j‖ ~ Gamma(d, r_max/ε), drawn anew every time                   line 17

        Lines 14 and 17 undo what theorem 4 proves: V starts from the data, and the noise of many draws averages out.
        U is fitted on the ratings too, and neither ‖u‖ ≤ 1 nor |r − u·v| ≤ r_max holds. Nothing is provable. Only V
        is released: a prediction u_i·v_j uses the user's own u_i, fitted to that user's clean ratings (‡).
        """
        kept = np.ones((len(train), len(epsilons)), np.bool_)
        return self.fit_samples(train, kept, epsilons, streams=streams, curator=curator)

    def fit_samples(
        self, train: Ratings, kept: Kept, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> KnownModel:
        """Fits each model of the grid on the ratings of its column of `kept` (n_ratings, E)."""
        gradients = redrawn_k_norm(
            "objective",
            (train.n_items, self.factors),
            sensitivity=sensitivity.no_bound_known(
                2, self.neighbours, "Zhang et al. 2018, algorithm 2: noise redrawn, U and V fitted before"
            ),
            calibrated_to=sensitivity.published_objective(train.scale, self.neighbours),
            epsilon=epsilons,
            curator=curator,
        )
        model, schedule = self.descend(train, kept, streams)
        descent = Descent(model, momentum=0.0)
        for epoch in range(self.noisy_epochs):
            for batch in schedule.stretches:
                sum_gradients(descent, schedule.visits, batch.first, batch.last, of_users=False)
                gradients(f"{epoch} {batch.place}").inside(
                    step_noisy, descent, "items", batch.rates, self.regularization
                )
        return sampled_model(train, kept, model)

    def corrected(
        self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator
    ) -> FactorModel:
        """Objective perturbation as theorem 4 means it: η is drawn once, and U is not taken from the ratings.

            m = the average rating, noisy;    r̃_ij = clamp(r_ij − m, ±B)
            u_i = a public unit row of a constant and a random direction, so that it may be treated as constant
            v_j = argmin over ‖v‖ ≤ R of ½Σ_i (r̃_ij − u_i·v)² + ½w‖v‖² + η_j·v,   η_j drawn once
            `passes` − 1 times:  u_i likewise given the released V, over ‖u‖ ≤ 1;  then v_j again
            r̂_ij = m + u_i·v_j

        Each solution gets an equal part of ε, and gives every row noise, rated or not. It is solved in float64 and
        put on a grid of 2⁻¹⁰·R. Bounded, the release is the noisy vector Σ r̃·u, on the grid of its noise. Unbounded,
        the release is the solution, on its own grid (`privacy.grid`).
        """
        share = self.average_share
        average = private_global_average(train, share * epsilons, self.neighbours, curator=curator)
        each = (1 - share) * epsilons / (2 * self.passes - 1)
        item_noises = self.noises("item", train, self.passes, each, curator)
        user_noises = self.noises("user", train, self.passes - 1, each, curator)
        items, users = self.problem("item", each), self.problem("user", each)
        ratings_by_user, ratings_by_item = by_user(train), by_item(train)
        public = self.public_rows(train.n_users, self.factors, streams.start("public user factors"))
        nothing, no_effects = (
            np.zeros((train.n_items, self.factors)),
            np.zeros((train.n_users, len(epsilons))),
        )
        averages = np.broadcast_to(average, (train.n_items, len(epsilons)))
        model = factor_model(public, nothing, no_effects, averages)
        of_user, of_item = self.norms("user")
        next(item_noises).inside(solve_perturbed, model, ratings_by_item, items, of_item)
        for of_users, of_items in zip(user_noises, item_noises, strict=True):
            of_users.inside(solve_perturbed, model, ratings_by_user, users, of_user)
            of_items.inside(solve_perturbed, model, ratings_by_item, items, of_item)
        return model

    def problem(self, side: Side, each: Epsilons) -> RowProblem:
        """The problem to solve for each row of a side, with ε `each` (E,)."""
        own, other = self.norms(side)
        ridge, hidden = self.ridge(other, each), self.neighbours is Neighbours.UNBOUNDED
        return RowProblem(ridge, self.residual_clamp, per_rating=False, ball=own, private_raters=hidden)

    def noises(
        self, side: Side, train: Ratings, count: int, each: Epsilons, curator: Curator
    ) -> Iterator[Release]:
        """η for `count` solutions of one side, each with ε `each` (E,). Unbounded, the determinant gets a part
        of this ε."""
        if count == 0:
            return iter(())
        (own, other), clamp = self.norms(side), self.residual_clamp
        step, rows = f"objective, {side} factors", train.n_users if side == "user" else train.n_items
        draw = partial(repeated_k_norm, step, (rows, self.factors), repetitions=count, curator=curator)
        if self.neighbours is Neighbours.BOUNDED:
            moves = sensitivity.least_squares_right_hand_side(other, clamp, train.scale)
            return draw(sensitivity=moves, epsilon=count * each)
        hessian = sensitivity.hessian_unbounded(other)
        determinants = curator.ledger.spend(
            f"determinants, {side} factors",
            "change of variables" + (f" × {count}" if count > 1 else ""),
            hessian,
            count * sensitivity.jacobian_epsilon(hessian, self.ridge(other, each)),
            repetitions=count,
        )
        moves = sensitivity.ridge_objective_unbounded(own, other, clamp)
        drawn = draw(sensitivity=moves, epsilon=count * each - determinants.claimed, rounded=False)
        return (release.paid_for_volume(determinants) for release in drawn)

    variants: ClassVar[Variants] = {
        (Neighbours.BOUNDED, Mode.PUBLISHED): published,
        (Neighbours.BOUNDED, Mode.CORRECTED): corrected,
        (Neighbours.UNBOUNDED, Mode.PUBLISHED): published,
        (Neighbours.UNBOUNDED, Mode.CORRECTED): corrected,
    }

    def cost(self, shape: Shape, grid: int) -> Cost:
        d, parts = self.factors, len(groups(grid))
        if self.mode is Mode.PUBLISHED:
            descent = self.descent_cost(shape, grid, self.epochs + self.noisy_epochs)
            steps = self.noisy_epochs * self.batches_of(shape.ratings)
            return Cost(descent.seconds + steps * shape.items * d * 2e-8, descent.bytes)
        work = (shape.ratings + 20 * d * shape.rows) * gram_entries(d) * PERTURBED_ENTRY
        seconds = (2 * self.passes - 1) * parts * work + 1e-7 * shape.ratings
        return Cost(seconds, shape.rows * (d + 1) * LINE * parts + 40.0 * shape.ratings)
