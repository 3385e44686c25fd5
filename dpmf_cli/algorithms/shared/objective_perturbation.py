"""Objective perturbation of rows of ridge regression, with proof: what Zhang et al. 2018, theorem 4, asks for."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.private_factorization import Side
from dpmf_cli.kernels.als import RowProblem, by_item, by_user, solve_perturbed_items, solve_perturbed_users
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import laplace, repeated_k_norm
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams
from dpmf_cli.strict_model import StrictModel


class ObjectivePerturbedRows(StrictModel):
    """Ratings are centred on a private global average m and clamped to ±B. U is public, so that it may be taken for
    a constant: unit rows of a constant and a random direction. Then for every item, to single precision,

        v_j = argmin over ‖v‖ ≤ R of ½Σ_i (r̃_ij − u_i·v)² + ½w‖v‖² + η_j·v,   η_j drawn once,   r̂_ij = m + u_i·v_j

    With `passes` above 1, users' rows are solved likewise given the released V, ‖u‖ ≤ 1, and items again; every
    solution has an equal part of ε. Every row gets noise, rated or not.

    Bounded: η hides the vectors Σ r̃·u alone (`sensitivity.least_squares_right_hand_side`). Unbounded: w is so large
    that the change of the determinant costs no more than its share of ε (`sensitivity.hessian_unbounded`), and what
    is left scales the noise (`sensitivity.ridge_objective_unbounded`). The same w, about 1/(share·ε), serves both.
    """

    least_ridge: float = Field(1.0, gt=0, description="corrected: the least w")
    passes: int = Field(1, ge=1, description="corrected: how often the items are solved")
    average_share: float = Field(0.05, gt=0, le=0.9, description="corrected: of ε, for the global average")
    jacobian_share: float = Field(0.1, gt=0, le=0.9, description="corrected: of a solution's ε; sets w")
    residual_clamp: float = Field(2.0, gt=0, description="corrected: B, for ratings less their average")
    item_norm: float = Field(1.5, gt=0, description="corrected: R")
    public_constant: float = Field(0.9, ge=0, le=1, description="corrected: the constant in a unit row")

    def fit_rows(
        self,
        train: Ratings,
        dimension: int,
        neighbours: Neighbours,
        epsilons: Epsilons,
        *,
        streams: Streams,
        curator: Curator,
    ) -> FactorModel:
        """Factors of `dimension`."""
        average = private_global_average(train, self.average_share * epsilons, neighbours, curator=curator)
        each = (1 - self.average_share) * epsilons / (2 * self.passes - 1)

        def solutions(side: Side, rows: int, count: int) -> tuple[RowProblem, Iterator[Release]]:
            return self._solutions(side, (rows, dimension), count, each, neighbours, train, curator)

        items, item_noises = solutions("item", train.n_items, self.passes)
        users, user_noises = (
            solutions("user", train.n_users, self.passes - 1) if self.passes > 1 else (items, iter(()))
        )
        ratings_by_user, ratings_by_item = by_user(train), by_item(train)
        start = self.public_rows(train.n_users, dimension, streams.start("public user factors"))
        grid = len(epsilons)
        model = factor_model(
            start,
            np.zeros((train.n_items, dimension)),
            np.zeros((train.n_users, grid)),
            np.broadcast_to(average, (train.n_items, grid)),
        )
        for number, of_items in enumerate(item_noises):
            if number > 0:
                next(user_noises).inside(solve_perturbed_users, model, ratings_by_user, users)
            of_items.inside(solve_perturbed_items, model, ratings_by_item, items)
        return model

    def public_rows(self, rows: int, dimension: int, rng: np.random.Generator) -> NDArray[np.float64]:
        """(rows, dimension) unit rows that no rating has touched."""
        if dimension == 1:
            return np.ones((rows, 1))
        direction = rng.standard_normal((rows, dimension - 1))
        direction *= np.sqrt(1 - self.public_constant**2) / np.linalg.norm(direction, axis=1, keepdims=True)
        return np.column_stack([np.full(rows, self.public_constant), direction])

    def _solutions(
        self,
        side: Side,
        shape: tuple[int, int],
        count: int,
        each: NDArray[np.float64],
        neighbours: Neighbours,
        train: Ratings,
        curator: Curator,
    ) -> tuple[RowProblem, Iterator[Release]]:
        """The problem of one side, and noise for `count` solutions of it, each with ε `each` (E,)."""
        own, other = (self.item_norm, 1.0) if side == "item" else (1.0, self.item_norm)
        hessian = sensitivity.hessian_unbounded(other)
        ridge = np.maximum(
            self.least_ridge, sensitivity.ridge_for_jacobian(hessian, self.jacobian_share * each)
        )
        for_noise = each
        if neighbours is Neighbours.UNBOUNDED:
            moves = sensitivity.ridge_objective_unbounded(own, other, self.residual_clamp)
            for_jacobian = sensitivity.jacobian_epsilon(hessian, ridge)
            for_noise = each - for_jacobian
            curator.ledger.spend(
                f"determinants, {side} factors",
                "change of variables" + (f" × {count}" if count > 1 else ""),
                hessian,
                count * for_jacobian,
            )
        else:
            moves = sensitivity.least_squares_right_hand_side(other, self.residual_clamp, train.scale)
        noises = repeated_k_norm(
            f"objective, {side} factors",
            shape,
            repetitions=count,
            sensitivity=moves,
            epsilon=count * for_noise,
            curator=curator,
        )
        problem = RowProblem(ridge, self.residual_clamp, per_rating=False, ball=own)
        return problem, noises


def private_global_average(
    train: Ratings, epsilon: NDArray[np.float64], neighbours: Neighbours, *, curator: Curator
) -> NDArray[np.float64]:
    """(E,) the mean rating with ε `epsilon`, clamped to the scale.

    Sums are of r − middle of the scale. Bounded: the number of ratings is public. Unbounded: it has half of the ε.
    """
    scale = train.scale
    centred = train.values.sum(dtype=np.float64) - len(train) * scale.middle
    unbounded = neighbours is Neighbours.UNBOUNDED
    total = laplace(
        "global sum",
        (),
        sensitivity=sensitivity.centred_rating_sums_unbounded(scale)
        if unbounded
        else sensitivity.rating_sums(scale),
        epsilon=epsilon / 2 if unbounded else epsilon,
        curator=curator,
    ).added_to(centred)
    count = np.full(len(epsilon), float(len(train)))
    if unbounded:
        count = laplace(
            "global count",
            (),
            sensitivity=sensitivity.rating_counts_unbounded(),
            epsilon=epsilon / 2,
            curator=curator,
        ).added_to(np.asarray(float(len(train))))
    average = scale.middle + total / np.maximum(count, 1)
    return np.asarray(np.clip(average, scale.minimum, scale.maximum))
