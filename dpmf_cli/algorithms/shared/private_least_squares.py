"""What private alternating least squares share. Friedman, Berkovsky, Kaafar 2016, section 4.4."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import Field

from dpmf_cli.algorithms.shared.private_factorization import Side, TwoSidedFactorization
from dpmf_cli.kernels.als import RowProblem
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import repeated_k_norm
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings, Scale


@dataclass(frozen=True)
class RowMoves:
    """How far numbers can move, and what their noise is scaled to where a paper takes something else."""

    true: Sensitivity
    calibrated_to: Sensitivity | None = None


class PrivateLeastSquares(TwoSidedFactorization):
    """k times: every user's ridge regression on the items with noise of ε/(2k), ‖p_u‖ ≤ p_max; then every item's. The
    2 is of `user_share`, a half."""

    regularization: float = Field(
        0.045,
        ge=1e-6,
        description="λ, table 3; the noise is scaled by 1/λ, and with a smaller λ float64 solves a row less exactly "
        "than noise hides",
    )
    iterations: int = Field(5, ge=1, description="k, section 5.2")

    def problem(self, side: Side, scale: Scale) -> RowProblem:
        """What is solved for each row of a side."""
        return RowProblem(self.regularization, self.bound(scale))

    def moves(self, side: Side, scale: Scale) -> RowMoves:
        """How far the numbers of one side that get noise can move."""
        raise NotImplementedError(f"{type(self).__name__} has neighbours and a mode that no class is for")

    def noises(self, side: Side, train: Ratings, epsilons: Epsilons, curator: Curator) -> Iterator[Release]:
        """Noise for the rows of one side, k times, each with a k-th of the side's ε."""
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
