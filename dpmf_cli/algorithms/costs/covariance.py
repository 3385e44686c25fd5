"""What a covariance and predictions from it take: seconds of one core, and bytes."""

import math
from typing import Any

from dpmf_cli.algorithms.costs.averages import effects_cost
from dpmf_cli.algorithms.costs.cost import Cost, Shape
from dpmf_cli.kernels.covariance import triangle_size
from dpmf_cli.kernels.grams import side_by_side
from dpmf_cli.lane_groups import groups
from dpmf_cli.privacy.neighbours import Mode, Neighbours

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
SECONDS_PER_FIRST_VECTOR = 2.3e-8
"""One pair of items, in finding the first eigenvector alone."""
SECONDS_PER_GRAM_VISIT, SECONDS_PER_GRAM_ENTRY, SECONDS_PER_NORMAL = 4.5e-9, 4e-9, 1.3e-8
"""One product of two ratings of one user, added to all matrices that are held side by side; one pair of items in one
of them; a normal number drawn for that pair."""
SECONDS_PER_COEFFICIENT = 1e-9
"""One rating of a user and one of the user's coefficients, in a step of Frank–Wolfe."""
ASKED = 1 / 9
"""Ratings to predict for each one in the training set, under ten-fold cross-validation."""


def covariance_cost(shape: Shape, grid: int, *, private_weights: bool, rank: int | None = None) -> Cost:
    """Cov for each ε, Wgt, their noise and shrinkage; and `rank` leading eigenvectors, if that is not None."""
    pairs = triangle_size(shape.items)
    products = Cost((grid + 1) * shape.squares / 2 * SECONDS_PER_PRODUCT, 60.0 * shape.ratings)
    triangles = 10 if private_weights else 6  # of 4 bytes; sums and noise are float64
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


def pknn(entry: Any, shape: Shape, grid: int) -> Cost:
    """Averages, a covariance with public or private weights, and predictions by kNN."""
    private = entry.neighbours is not Neighbours.BOUNDED
    matrix = covariance_cost(shape, grid, private_weights=private)
    found = neighbours_cost(shape, grid, entry.k, searches=grid if private else 1)
    return effects_cost(shape, grid) + matrix + found


def public_knn(entry: Any, shape: Shape, grid: int) -> Cost:
    """Averages, and kNN with a covariance that needs no data."""
    sums = Cost(5e-9 * grid * (1 + entry.k * ASKED) * shape.ratings, 40.0 * shape.ratings)
    cost = effects_cost(shape, grid) + sums
    if entry.neighbours is not Neighbours.BOUNDED:
        return cost
    search = neighbours_cost(shape, 0, entry.k, searches=1)
    return cost + covariance_cost(shape, 0, private_weights=False) + search


def mm_public(entry: Any, shape: Shape, grid: int) -> Cost:
    """Averages, and a covariance that needs no data over all of a user's ratings."""
    return effects_cost(shape, grid) + Cost(5e-9 * grid * shape.ratings, 40.0 * shape.ratings)


def mm_knn(entry: Any, shape: Shape, grid: int) -> Cost:
    """kNN on the private covariance."""
    return private_covariance(entry, shape, grid, neighbours_cost(shape, grid, entry.k, searches=grid))


def mm_svd(entry: Any, shape: Shape, grid: int) -> Cost:
    """SVD of the private covariance."""
    return private_covariance(entry, shape, grid, subspace_cost(shape, grid, entry.k))


def private_covariance(entry: Any, shape: Shape, grid: int, predictions: Cost) -> Cost:
    """Averages, the covariance, and `predictions` of a test fold; with refitting, of the validation ratings too."""
    rank, tried = entry.eigenpairs, entry.candidates
    cost = effects_cost(shape, grid) + predictions
    cost += covariance_cost(shape, grid, private_weights=True, rank=rank)
    if not tried:
        return cost
    trials = Cost(tried * entry.validation / ASKED * predictions.seconds, 0.0)
    return cost + trials + trial_cost(shape, tried * grid, rank)


def frank_wolfe(entry: Any, shape: Shape, grid: int) -> Cost:
    """Matrices of products side by side, their noise and first eigenvectors, in each step; and each user's steps."""
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
