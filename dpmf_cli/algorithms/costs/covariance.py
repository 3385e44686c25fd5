"""The cost of a covariance and of predictions from it: seconds of one core, and bytes."""

import math
from typing import Any

from dpmf_cli.algorithms.costs.averages import effects_cost
from dpmf_cli.algorithms.costs.cost import NOTHING, Cost, Shape
from dpmf_cli.compiled.lane_groups import groups
from dpmf_cli.kernels.covariance import measured_together, triangle_size
from dpmf_cli.kernels.frank_wolfe import side_by_side
from dpmf_cli.privacy.neighbours import Mode, Neighbours

SECONDS_PER_PRODUCT = 2e-9
"""Per product of two ratings of one user, added to the covariance of their items."""
SECONDS_PER_VISIT, SECONDS_PER_SUM = 1.7e-9, 2e-10
"""If one pass sums the covariances of several ε: per product, and per product and ε."""
SECONDS_PER_ENTRY = 6e-9
"""Per pair of items and ε: adding noise, shrinkage, its part in the average covariance, and storing it."""
SECONDS_PER_DRAW = 1.3e-8
"""Per number of unit noise: 0.9e-8 for the normal law, 1.7e-8 for Laplace's."""
SECONDS_PER_CANDIDATE = 5e-9
"""Per rating of a user that is considered as a neighbour of one item to predict."""
SECONDS_PER_SOLVE_ENTRY = 4e-9
"""Per entry of the k × k system of one prediction, to eliminate it. It comes from a random place of the triangle."""
SECONDS_PER_EIGEN_ENTRY, SECONDS_PER_SCALED_EIGEN_ENTRY = 1.5e-7, 4e-8
"""Per pair of items, to find the leading eigenvectors by some hundred products of a matrix and a vector. A covariance
scaled by √counts has fewer directions that are alike, so it takes less: 2.4e-8 on ML-1M, 5e-8 at the size of
Netflix."""
SECONDS_PER_FIRST_VECTOR = 2.3e-8
"""Per pair of items, to find only the first eigenvector."""
SECONDS_PER_GRAM_VISIT, SECONDS_PER_GRAM_ENTRY, SECONDS_PER_NORMAL = 4.5e-9, 4e-9, 1.3e-8
"""Per product of two ratings of one user, added to all matrices that are held side by side; per pair of items in one
matrix; per normal number drawn for that pair."""
SECONDS_PER_COEFFICIENT = 1e-9
"""Per rating of a user and coefficient of that user, in a step of Frank–Wolfe."""
ASKED = 1 / 9
"""Ratings to predict per training rating, under ten-fold cross-validation."""


def covariance_cost(shape: Shape, grid: int, *, private_weights: bool) -> Cost:
    """Returns the cost of Cov for each ε, of Wgt, and of their noise and shrinkage.

    The triangles of a few ε and the noise of one are held at once.
    """
    pairs, lanes = triangle_size(shape.items), min(grid, measured_together(shape.items))
    passes = -(-grid // lanes) if grid else 0
    of_weight = SECONDS_PER_VISIT if private_weights else 0.0
    visits = passes * (SECONDS_PER_VISIT + of_weight) + grid * SECONDS_PER_SUM
    public = 0.0 if private_weights else SECONDS_PER_PRODUCT
    draws = passes * (2 if private_weights else 1) * SECONDS_PER_DRAW
    seconds = shape.squares / 2 * (visits + public) + pairs * (draws + grid * SECONDS_PER_ENTRY)
    held = 8.0 * lanes + 8 if private_weights else 4.0 * lanes + 12
    return Cost(seconds, held * pairs + 60.0 * shape.ratings)


def trial_cost(shape: Shape, times: int) -> Cost:
    """Returns the cost of copying and shrinking one triangle `times` times. The triangle before is held too."""
    pairs = triangle_size(shape.items)
    return Cost(times * pairs * SECONDS_PER_ENTRY, 8.0 * pairs)


def search_cost(shape: Shape, k: int, *, searches: int) -> Cost:
    """Returns the cost of `searches` searches for the neighbours of a test fold."""
    found = ASKED * shape.squares * SECONDS_PER_CANDIDATE
    return Cost(searches * found, ASKED * shape.ratings * 8.0 * k)


def solve_cost(shape: Shape, k: int, predictions: float) -> Cost:
    """Returns the cost of so many predictions by kNN once their neighbours are found."""
    entries = predictions * min(k, shape.ratings / shape.users) ** 2 / 2
    within = 4.0 * triangle_size(shape.items)
    return Cost(entries * SECONDS_PER_SOLVE_ENTRY, 0.0, ((entries, within),))


def subspace_cost(shape: Shape, grid: int, k: int) -> Cost:
    """Returns the cost of predicting a test fold by SVD."""
    return Cost(
        grid * (shape.ratings * k**2 + shape.users * k**3) * 5e-10, ASKED * shape.ratings * 8.0 * grid
    )


def pknn(entry: Any, shape: Shape, grid: int) -> Cost:
    """Averages, a covariance with public or private weights, and predictions by kNN."""
    private = entry.neighbours is not Neighbours.BOUNDED
    matrix = covariance_cost(shape, grid, private_weights=private)
    found = search_cost(shape, entry.k, searches=grid if private else 1)
    return effects_cost(shape, grid) + matrix + found + solve_cost(shape, entry.k, grid * asked(shape))


def public_knn(entry: Any, shape: Shape, grid: int) -> Cost:
    """Averages, and kNN with a covariance that needs no data."""
    sums = Cost(5e-9 * grid * (1 + entry.k * ASKED) * shape.ratings, 40.0 * shape.ratings)
    cost = effects_cost(shape, grid) + sums
    if entry.neighbours is not Neighbours.BOUNDED:
        return cost
    search = search_cost(shape, entry.k, searches=1)
    return cost + covariance_cost(shape, 0, private_weights=False) + search


def mm_public(entry: Any, shape: Shape, grid: int) -> Cost:
    """Averages, and kNN over all of a user's ratings with a covariance that needs no data."""
    return effects_cost(shape, grid) + Cost(5e-9 * grid * shape.ratings, 40.0 * shape.ratings)


def mm_knn(entry: Any, shape: Shape, grid: int) -> Cost:
    """kNN on the private covariance."""
    search = search_cost(shape, entry.k, searches=grid)
    return private_covariance(entry, shape, grid, search, solve_cost(shape, entry.k, grid * asked(shape)))


def mm_svd(entry: Any, shape: Shape, grid: int) -> Cost:
    """SVD of the private covariance."""
    return private_covariance(entry, shape, grid, NOTHING, subspace_cost(shape, grid, entry.k))


def private_covariance(entry: Any, shape: Shape, grid: int, search: Cost, predictions: Cost) -> Cost:
    """Averages, the covariance and its eigenvectors, and `predictions` of a test fold after a `search`.

    With refitting, each candidate also predicts the validation ratings.
    """
    cost = effects_cost(shape, grid) + covariance_cost(shape, grid, private_weights=True)
    cost += search + predictions
    if entry.eigenpairs is not None:
        cost += spectra_cost(entry, shape, grid * max(entry.shrinkages, 1))
    part = entry.validation / ASKED
    trials = Cost(
        part * (search.seconds + entry.candidates * predictions.seconds),
        0.0,
        tuple((part * entry.candidates * count, within) for count, within in predictions.far),
    )
    tried = entry.candidates > 0
    return cost + trials + trial_cost(shape, entry.shrinkages * grid) if tried else cost


def spectra_cost(entry: Any, shape: Shape, times: int) -> Cost:
    """Returns the cost of finding the leading eigenpairs of a covariance `times` times."""
    per_entry = SECONDS_PER_SCALED_EIGEN_ENTRY if entry.cleaning else SECONDS_PER_EIGEN_ENTRY
    return Cost(times * triangle_size(shape.items) * per_entry, 0.0)


def asked(shape: Shape) -> float:
    """Returns the number of ratings in a test fold."""
    return ASKED * shape.ratings


def frank_wolfe(entry: Any, shape: Shape, grid: int) -> Cost:
    """In each step, matrices of products side by side, their noise and first eigenvectors; then each user's steps."""
    if entry.mode is Mode.PUBLISHED and shape.ratings > entry.most_ratings * shape.users:
        kept = entry.most_ratings * shape.users
        shape = Shape(shape.users, shape.items, kept, float(entry.most_ratings * kept))
    pairs, times, at_once = triangle_size(shape.items), entry.iterations * grid, side_by_side(shape.items)
    visits = entry.iterations * math.ceil(grid / at_once) * shape.squares / 2
    drawn = entry.iterations * pairs * SECONDS_PER_NORMAL
    matrices = times * pairs * (SECONDS_PER_GRAM_ENTRY + SECONDS_PER_FIRST_VECTOR)
    steps = times * entry.iterations * shape.ratings * SECONDS_PER_COEFFICIENT
    factors = 64.0 * (shape.users + shape.items) * (entry.iterations + 1) * len(groups(grid))
    held = (4.0 * min(grid, at_once) + 8.0) * pairs + 160.0 * shape.ratings + factors
    seconds = visits * SECONDS_PER_GRAM_VISIT + drawn + matrices + steps
    return effects_cost(shape, grid) + Cost(seconds, held)
