"""DP-PMF: PMF by objective perturbation. Zhang, Liu, Chen and Zhong 2018, section 4, algorithm 2."""

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm, Variants, in_both_modes
from dpmf_cli.algorithms.shared.factorization import KnownModel
from dpmf_cli.algorithms.shared.objective_perturbation import ObjectivePerturbation, private_global_average
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.private_factorization import Side
from dpmf_cli.algorithms.shared.probabilistic import GradientDescentPMF, Kept, sampled_model
from dpmf_cli.kernels.als import RowProblem, by_item, by_user, solve_perturbed
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.gradients import Descent, step_noisy, sum_gradients
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import redrawn_k_norm, repeated_k_norm
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class PrivatePMF(GradientDescentPMF, ObjectivePerturbation, PrivateAlgorithm):
    """PMF under privacy, as published and as the paper's theorem 4 means it.

    These are two algorithms that share only d. Each refuses parameters that only the other uses.
    """

    title: ClassVar[str] = "DP-PMF"
    paper: ClassVar[Paper] = Paper.ZHANG
    variants: ClassVar[Variants] = in_both_modes(Neighbours.BOUNDED, Neighbours.UNBOUNDED)
    averaged: ClassVar[bool] = False

    revision: ClassVar[int] = 2

    algorithm: Literal["dp_pmf"]
    noisy_epochs: int = Field(50, ge=1, description="k₂, published; the paper does not give it")


class PublishedDPPMF(PrivatePMF):
    """Algorithm 2, by batches of b ratings:

        U, V = PMF without noise, k₁ epochs                                                lines 1 to 13
        for k₂ epochs:  v_j ← v_j − γ/b·(−Σ_i (r_ij − u_i·v_j)·u_i + η_j + λ·v_j)          from line 14
                        ‖η_j‖ ~ Gamma(d, r_max/ε), drawn anew every time                   line 17

    Lines 14 and 17 undo what theorem 4 proves: V starts from the data, and the noise of many draws averages out. U is
    fitted on the ratings too, and neither ‖u‖ ≤ 1 nor |r − u·v| ≤ r_max holds. Nothing is provable. Only V is
    released: a prediction u_i·v_j uses the user's own u_i, fitted to that user's clean ratings (‡).
    """

    variants: ClassVar[Variants] = frozenset(
        (kind, Mode.PUBLISHED) for kind in (Neighbours.BOUNDED, Neighbours.UNBOUNDED)
    )
    joint: ClassVar[bool] = True
    shares_lanes: ClassVar[bool] = True
    of_the_other: ClassVar[tuple[str, ...]] = tuple(ObjectivePerturbation.model_fields)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> KnownModel:
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


class CorrectedDPPMF(PrivatePMF):
    """Objective perturbation as theorem 4 means it: η is drawn once, and U is not taken from the ratings.

        m = the average rating, noisy;    r̃_ij = clamp(r_ij − m, ±B)
        u_i = a public unit row of a constant and a random direction, so that it may be treated as constant
        v_j = argmin over ‖v‖ ≤ R of ½Σ_i (r̃_ij − u_i·v)² + ½w‖v‖² + η_j·v,   η_j drawn once
        `passes` − 1 times:  u_i likewise given the released V, over ‖u‖ ≤ 1;  then v_j again
        r̂_ij = m + u_i·v_j

    Each solution gets an equal part of ε, and gives every row noise, rated or not. It is solved in float64 and put on
    a grid of 2⁻¹⁰·R. Bounded, the release is the noisy vector Σ r̃·u, on the grid of its noise. Unbounded, the
    release is the solution, on its own grid (`privacy.grid`).
    """

    variants: ClassVar[Variants] = frozenset(
        (kind, Mode.CORRECTED) for kind in (Neighbours.BOUNDED, Neighbours.UNBOUNDED)
    )
    of_the_other: ClassVar[tuple[str, ...]] = tuple(
        {*GradientDescentPMF.model_fields, "noisy_epochs"} - {"factors"}
    )

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> FactorModel:
        share = self.average_share
        average = private_global_average(train, share * epsilons, self.neighbours, curator=curator)
        each = (1 - share) * epsilons / (2 * self.passes - 1)
        item_noises = self.noises("item", train, self.passes, each, curator)
        user_noises = self.noises("user", train, self.passes - 1, each, curator)
        items, users = self.problem("item", each), self.problem("user", each)
        ratings_by_user, ratings_by_item = by_user(train), by_item(train)
        model = factor_model(
            self.public_rows(train.n_users, self.factors, streams.start("public user factors")),
            np.zeros((train.n_items, self.factors)),
            np.zeros((train.n_users, len(epsilons))),
            np.broadcast_to(average, (train.n_items, len(epsilons))),
        )
        of_user, of_item = self.norms("user")
        next(item_noises).inside(solve_perturbed, model, ratings_by_item, items, of_item)
        for of_users, of_items in zip(user_noises, item_noises, strict=True):
            of_users.inside(solve_perturbed, model, ratings_by_user, users, of_user)
            of_items.inside(solve_perturbed, model, ratings_by_item, items, of_item)
        return model

    def problem(self, side: Side, each: Epsilons) -> RowProblem:
        """Returns the problem to solve for each row of a side, with ε `each` (E,)."""
        own, other = self.norms(side)
        return RowProblem(
            self.ridge(other, each),
            self.residual_clamp,
            per_rating=False,
            ball=own,
            private_raters=self.neighbours is Neighbours.UNBOUNDED,
        )

    def noises(
        self, side: Side, train: Ratings, count: int, each: Epsilons, curator: Curator
    ) -> Iterator[Release]:
        """Yields η for `count` solutions of one side, each with ε `each` (E,). Unbounded, the determinant gets a part
        of this ε."""
        if count == 0:
            return iter(())
        own, other = self.norms(side)
        step, rows = f"objective, {side} factors", train.n_users if side == "user" else train.n_items
        if self.neighbours is Neighbours.BOUNDED:
            return repeated_k_norm(
                step,
                (rows, self.factors),
                repetitions=count,
                sensitivity=sensitivity.least_squares_right_hand_side(
                    other, self.residual_clamp, train.scale
                ),
                epsilon=count * each,
                curator=curator,
            )
        determinants = self.spend_on_determinants(side, other, count, each, curator)
        drawn = repeated_k_norm(
            step,
            (rows, self.factors),
            repetitions=count,
            sensitivity=sensitivity.ridge_objective_unbounded(own, other, self.residual_clamp),
            epsilon=count * each - determinants.claimed,
            curator=curator,
            rounded=False,
        )
        return (release.paid_for_volume(determinants) for release in drawn)
