"""The cost of an item-item covariance and of predictions from it: seconds of one core, and bytes."""

from dpmf_cli.algorithms.shared.cost import ASKED, Cost, Shape
from dpmf_cli.kernels.covariance import measured_together, triangle_size

SECONDS_PER_PRODUCT = 2e-9
"""Per product of two ratings of one user, added to the covariance of their items."""
SECONDS_PER_VISIT, SECONDS_PER_SUM = 1.7e-9, 2e-10
"""If one pass sums the covariances of several ε: per product, and per product and ε."""
SECONDS_PER_ENTRY = 6e-9
"""Per pair of items and ε: adding noise, shrinkage, its part in the average covariance, and storing it."""
SECONDS_PER_NUMBER = 1.3e-8
"""Per number of unit noise: 0.9e-8 for the normal law, 1.7e-8 for Laplace's."""
SECONDS_PER_CANDIDATE = 5e-9
"""Per rating of a user that is considered as a neighbour of one item to predict."""
SECONDS_PER_SOLVE_ENTRY = 4e-9
"""Per entry of the k × k system of one prediction, to eliminate it. It comes from a random place of the triangle."""
SECONDS_PER_EIGEN_ENTRY, SECONDS_PER_SCALED_EIGEN_ENTRY = 1.5e-7, 4e-8
"""Per pair of items, to find the leading eigenvectors by some hundred products of a matrix and a vector. A covariance
scaled by √counts has fewer directions that are alike, so it takes less: 2.4e-8 on ML-1M, 5e-8 at the size of
Netflix."""


def covariance_cost(shape: Shape, grid: int, *, private_weights: bool) -> Cost:
    """The cost of Cov for each ε, of Wgt, and of their noise and shrinkage.

    The triangles of a few ε and the noise of one are held at once.
    """
    pairs, lanes = triangle_size(shape.items), min(grid, measured_together(shape.items))
    passes = -(-grid // lanes) if grid else 0
    of_weight = SECONDS_PER_VISIT if private_weights else 0.0
    visits = passes * (SECONDS_PER_VISIT + of_weight) + grid * SECONDS_PER_SUM
    public = 0.0 if private_weights else SECONDS_PER_PRODUCT
    draws = passes * (2 if private_weights else 1) * SECONDS_PER_NUMBER
    seconds = shape.squares / 2 * (visits + public) + pairs * (draws + grid * SECONDS_PER_ENTRY)
    held = 8.0 * lanes + 8 if private_weights else 4.0 * lanes + 12
    return Cost(seconds, held * pairs + 60.0 * shape.ratings)


def search_cost(shape: Shape, k: int, *, searches: int) -> Cost:
    """The cost of `searches` searches for the neighbours of a test fold."""
    found = ASKED * shape.squares * SECONDS_PER_CANDIDATE
    return Cost(searches * found, ASKED * shape.ratings * 8.0 * k)


def solve_cost(shape: Shape, k: int, predictions: float) -> Cost:
    """The cost of so many predictions by kNN once their neighbours are found."""
    entries = predictions * min(k, shape.ratings / shape.users) ** 2 / 2
    within = 4.0 * triangle_size(shape.items)
    return Cost(entries * SECONDS_PER_SOLVE_ENTRY, 0.0, ((entries, within),))


def spectra_cost(shape: Shape, times: int, *, cleaned: bool) -> Cost:
    """The cost of finding the leading eigenpairs of a covariance `times` times."""
    per_entry = SECONDS_PER_SCALED_EIGEN_ENTRY if cleaned else SECONDS_PER_EIGEN_ENTRY
    return Cost(times * triangle_size(shape.items) * per_entry, 0.0)


def nearest_items_cost(
    shape: Shape, grid: int, k: int, pairs: float, calls: int, *, private_weights: bool
) -> Cost:
    """The cost of predicting so many pairs in so many calls: for each, a search for neighbours and their system."""
    candidates = shape.ratings / shape.users * SECONDS_PER_CANDIDATE * (grid if private_weights else 1)
    return Cost(pairs * candidates, 8.0 * k * pairs / calls) + solve_cost(shape, k, grid * pairs)
