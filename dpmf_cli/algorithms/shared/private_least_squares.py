"""What private alternating least squares share. Friedman, Berkovsky, Kaafar 2016, section 4.4."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import Field

from dpmf_cli.algorithms.shared.base import Cost, Shape
from dpmf_cli.algorithms.shared.factorization_cost import fetched, noise_on_rows, private_cost
from dpmf_cli.algorithms.shared.private_factorization import NormBoundedFactorization, Side
from dpmf_cli.kernels.als import RowProblem
from dpmf_cli.lane_groups import groups
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import repeated_k_norm
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings, Scale

SECONDS_PER_GRAM_ENTRY = 7.5e-10
"""One rating, one entry of the lower triangle of its row's Gram matrix, one group of 16 lanes."""
ROW_IN_RATINGS = 10
"""Solving a row's system takes as long as adding so many ratings to it."""


@dataclass(frozen=True)
class RowMoves:
    """How far numbers can move, and what their noise is scaled to where a paper takes something else."""

    true: Sensitivity
    calibrated_to: Sensitivity | None = None


class PrivateLeastSquares(NormBoundedFactorization):
    """k times: every user's ridge regression on the items with noise of ε/(2k), ‖p_u‖ ≤ p_max; then every item's."""

    regularization: float = Field(0.045, gt=0, description="λ, table 3; the noise is scaled by 1/λ")
    iterations: int = Field(5, ge=1, description="k, section 5.2")

    def problem(self, side: Side, scale: Scale) -> RowProblem:
        """What is solved for each row of a side."""
        return RowProblem(self.regularization, self.bound(scale))

    def moves(self, side: Side, scale: Scale) -> RowMoves:
        """How far the numbers of one side that get noise can move."""
        raise NotImplementedError(f"{type(self).__name__} has neighbours and a mode that no class is for")

    def noises(self, side: Side, train: Ratings, epsilons: Epsilons, curator: Curator) -> Iterator[Release]:
        """Noise of ε/(2k) for the rows of one side, k times."""
        moves = self.moves(side, train.scale)
        return repeated_k_norm(
            f"{side} factors",
            (train.n_users if side == "user" else train.n_items, self.factors),
            repetitions=self.iterations,
            sensitivity=moves.true,
            calibrated_to=moves.calibrated_to,
            epsilon=self.for_factors(epsilons) / 2,
            curator=curator,
        )

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes = self.iterations * len(groups(grid))
        entries = (self.factors + 1) * (self.factors + 2) / 2
        rows = ROW_IN_RATINGS * (shape.users + shape.items)
        seconds = (
            passes * (2 * shape.ratings + rows) * entries * SECONDS_PER_GRAM_ENTRY + 3e-8 * shape.ratings
        )
        whole = private_cost(shape, grid, self.factors, seconds=seconds, held=8.0 * shape.ratings)
        sides = (shape.items, shape.users)
        far = tuple(fetched(side, self.factors, passes * shape.ratings) for side in sides)
        return whole + noise_on_rows(shape, self.factors, self.iterations) + Cost(0.0, 0.0, far)
