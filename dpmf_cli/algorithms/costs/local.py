"""The cost of methods of the local model: messages, and the aggregator's fit on them."""

from typing import Any

from dpmf_cli.algorithms.costs.cost import Cost, Shape
from dpmf_cli.algorithms.costs.factorization import LINE, gram_entries
from dpmf_cli.compiled.lane_groups import groups, padded_grid
from dpmf_cli.privacy.neighbours import Mode, Neighbours

SECONDS_PER_MESSAGE, SECONDS_PER_REPORT = 3e-8, 1.1e-8
"""Per rating to perturb and ε; per report, of a rating or of a coordinate of a gradient, and ε."""
GRAM_ENTRY = 1.2e-9
"""Seconds per rating, entry of the lower triangle of its row's Gram matrix and group of 16 lanes."""
SGD_VISIT = 2.8e-9
"""Seconds per rating that SGD visits, latent factor and group of 16 lanes."""
COMPONENT = 1.1e-8
"""Seconds per rating, component of the mixture and group of 16 lanes. It is spent three times an iteration."""


def local_mean(entry: Any, shape: Shape, grid: int) -> Cost:
    """Perturbing ratings, and keeping the messages received."""
    return Cost(shape.ratings * grid * SECONDS_PER_MESSAGE, shape.ratings * (4.0 * padded_grid(grid) + 16))


def local_means(entry: Any, shape: Shape, grid: int) -> Cost:
    """Messages, and their sums by item and user."""
    sums = (shape.users + shape.items) * grid * 16.0 + 24.0 * shape.ratings
    return local_mean(entry, shape, grid) + Cost(shape.ratings * grid * 3e-8, sums)


def local_mf(entry: Any, shape: Shape, grid: int) -> Cost:
    """Unweighted ALS on messages."""
    solved = 2 * entry.iterations * shape.ratings * gram_entries(entry.factors)
    seconds = solved * GRAM_ENTRY * len(groups(grid))
    return _with_factors(entry, shape, grid) + Cost(seconds, 12.0 * shape.ratings)


def isgd_local(entry: Any, shape: Shape, grid: int) -> Cost:
    """SGD on messages."""
    visits = entry.epochs * shape.ratings * len(groups(grid))
    return _with_factors(entry, shape, grid) + Cost(visits * entry.factors * SGD_VISIT, 8.0 * shape.ratings)


def blp_mog_mf(entry: Any, shape: Shape, grid: int) -> Cost:
    """EM of a mixture of Gaussians around factors."""
    each = 2 * gram_entries(entry.factors) * GRAM_ENTRY + 3 * entry.components * COMPONENT
    seconds = entry.iterations * shape.ratings * len(groups(grid)) * each
    before = shape.users * (entry.factors + 1) * LINE * len(groups(grid))
    return _with_factors(entry, shape, grid) + Cost(seconds, 12.0 * shape.ratings + before)


def pg_mf(entry: Any, shape: Shape, grid: int) -> Cost:
    """First a report of each rating; then, in each iteration, users solved on their devices, and a report of each
    rating or of each user."""
    of_each = entry.neighbours is Neighbours.LOCAL and entry.mode is Mode.PUBLISHED
    reports = entry.iterations * (shape.ratings if of_each else shape.users) + shape.ratings
    solved = entry.iterations * shape.ratings * gram_entries(entry.factors) * 2e-9 * len(groups(grid))
    rows = (shape.users + shape.items) * (entry.factors + 1) * LINE * len(groups(grid))
    held = 4.0 * (grid + (padded_grid(grid) if of_each else 0)) + 40
    return Cost(reports * grid * SECONDS_PER_REPORT + solved, rows + shape.ratings * held)


def _with_factors(entry: Any, shape: Shape, grid: int) -> Cost:
    """Perturbing ratings, and the memory of factors."""
    rows = Cost(0, (shape.users + shape.items) * (entry.factors + 1) * LINE * len(groups(grid)))
    return local_mean(entry, shape, grid) + rows
