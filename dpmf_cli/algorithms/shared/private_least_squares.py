"""The base of private alternating least squares. Friedman, Berkovsky, Kaafar 2016, section 4.4."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import Field

from dpmf_cli.algorithms.shared.cost import (
    ROW_IN_RATINGS,
    Cost,
    Shape,
    factors_cost,
    fetched,
    gram_entries,
    noise_on_rows,
)
from dpmf_cli.algorithms.shared.private_factorization import Side, TwoSidedFactorization
from dpmf_cli.kernels.als import RowProblem
from dpmf_cli.lane_groups import groups
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import repeated_k_norm
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings, Scale


@dataclass(frozen=True)
class RowMoves:
    """The true sensitivity of numbers, and the sensitivity to which a paper scales their noise, if that differs."""

    true: Sensitivity
    calibrated_to: Sensitivity | None = None


class PrivateLeastSquares(TwoSidedFactorization):
    """Repeats k times: every user's ridge regression on the items with noise of ε/(2k), ‖p_u‖ ≤ p_max; then every
    item's on the users. The 2 comes from `user_share`, a half by default."""

    regularization: float = Field(
        0.045,
        ge=1e-6,
        description="λ, table 3; the noise is scaled by 1/λ. Below the limit, errors of solving a row in float64 are "
        "larger than noise hides",
    )
    iterations: int = Field(5, ge=1, description="k, section 5.2")

    def problem(self, side: Side, scale: Scale) -> RowProblem:
        """The regression that is solved for each row of a side."""
        return RowProblem(self.regularization, self.bound(scale))

    def moves(self, side: Side, scale: Scale) -> RowMoves:
        """The sensitivity of the numbers of one side that get noise."""
        raise NotImplementedError(f"{type(self).__name__} has no class for these neighbours and this mode")

    def noises(self, side: Side, train: Ratings, epsilons: Epsilons, curator: Curator) -> Iterator[Release]:
        """Noise for the rows of one side, k times, each time with 1/k of the side's ε."""
        moves = self.moves(side, train.scale)
        return repeated_k_norm(
            f"{side} factors",
            (train.n_users if side == "user" else train.n_items, self.factors),
            repetitions=self.iterations,
            sensitivity=moves.true,
            calibrated_to=moves.calibrated_to,
            epsilon=self.for_side(side, epsilons),
            curator=curator,
        )

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes, d = self.iterations * len(groups(grid)), self.factors
        solved = passes * (2 * shape.ratings + ROW_IN_RATINGS * shape.rows) * gram_entries(d) * 7.5e-10
        seconds = solved + 3e-8 * shape.ratings
        whole = factors_cost(shape, grid, d, seconds=seconds, held=8.0 * shape.ratings)
        far = tuple(fetched(side, d, passes * shape.ratings) for side in (shape.items, shape.users))
        return whole + noise_on_rows(shape, d, self.iterations) + Cost(0.0, 0.0, far)
