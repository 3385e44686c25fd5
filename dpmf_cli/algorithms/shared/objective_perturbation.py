"""Objective perturbation of rows of ridge regression with a proved ε, as theorem 4 of Zhang et al. 2018 means it."""

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.private_factorization import Side
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.accounting import LEAST_SHARE
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Entry, Epsilons
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.ratings import Ratings
from dpmf_cli.strict_model import StrictModel


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

    def spend_on_determinants(
        self, side: Side, other: float, count: int, each: Epsilons, curator: Curator
    ) -> Entry:
        """Enters the cost of the determinants of `count` solutions of one side in the ledger. Returns the entry."""
        hessian = sensitivity.hessian_unbounded(other)
        cost = sensitivity.jacobian_epsilon(hessian, self.ridge(other, each))
        return curator.ledger.spend(
            f"determinants, {side} factors",
            "change of variables" + (f" × {count}" if count > 1 else ""),
            hessian,
            count * cost,
            repetitions=count,
        )


def private_global_average(
    train: Ratings, epsilon: NDArray[np.float64], neighbours: Neighbours, *, curator: Curator
) -> NDArray[np.float64]:
    """(E,) the mean rating, measured with ε `epsilon` and clamped to the scale.

    The sum is of r − middle of the scale. Bounded: the number of ratings is public. Unbounded: it gets half of ε.
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
