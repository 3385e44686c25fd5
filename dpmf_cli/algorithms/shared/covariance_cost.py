"""What a covariance and predictions from it take: seconds of one core, and bytes."""

from dpmf_cli.algorithms.shared.base import Cost, Shape
from dpmf_cli.kernels.covariance import triangle_size

SECONDS_PER_PRODUCT = 2e-9
"""One product of two ratings of one user, added to the covariance of their items."""
SECONDS_PER_ENTRY = 1.5e-8
"""One pair of items: its noise, its shrinkage, and its part in the average covariance."""
SECONDS_PER_CANDIDATE = 5e-9
"""One rating of a user, considered as the neighbour of one item that is asked for."""
SECONDS_PER_SOLVE_ENTRY = 2e-8
"""One entry of the k × k system of one prediction, fetched and eliminated."""
SECONDS_PER_EIGEN_ENTRY = 1.5e-7
"""One pair of items, in finding the leading eigenvectors: some hundred products of a matrix and a vector."""
ASKED = 1 / 9
"""Ratings to predict for each one in the training set, under ten-fold cross-validation."""


def covariance_cost(shape: Shape, grid: int, *, private_weights: bool, rank: int | None = None) -> Cost:
    """Cov for each ε, Wgt, their noise and shrinkage; and `rank` leading eigenvectors, if that is not None."""
    pairs = triangle_size(shape.items)
    products = Cost((grid + 1) * shape.squares / 2 * SECONDS_PER_PRODUCT, 60.0 * shape.ratings)
    triangles = 8 if private_weights else 5  # in float32; sums are float64
    return products + Cost(trial_cost(shape, grid, rank).seconds, triangles * 4.0 * pairs)


def trial_cost(shape: Shape, times: int, rank: int | None) -> Cost:
    """One triangle copied, shrunk and, if `rank` is not None, cleaned or factored, so many times."""
    pairs = triangle_size(shape.items)
    eigen = SECONDS_PER_EIGEN_ENTRY + 1e-9 * rank if rank else 0.0
    return Cost(times * pairs * (SECONDS_PER_ENTRY + eigen), 4.0 * pairs)


def neighbours_cost(shape: Shape, grid: int, k: int, *, searches: int) -> Cost:
    """Predictions by kNN of a test fold, neighbours being sought `searches` times."""
    asked, per_user = ASKED * shape.ratings, shape.ratings / shape.users
    search = ASKED * shape.squares * SECONDS_PER_CANDIDATE
    solve = asked * min(k, per_user) ** 2 / 2 * SECONDS_PER_SOLVE_ENTRY
    return Cost(searches * search + grid * solve, asked * 8.0 * (k + grid))


def subspace_cost(shape: Shape, grid: int, k: int) -> Cost:
    """Predictions by SVD of a test fold."""
    return Cost(
        grid * (shape.ratings * k**2 + shape.users * k**3) * 5e-10, ASKED * shape.ratings * 8.0 * grid
    )
