"""The cost of methods on a public pattern."""

from typing import Any

from dpmf_cli.algorithms.costs.cost import Cost, Shape
from dpmf_cli.algorithms.costs.factorization import LINE, gram_entries
from dpmf_cli.compiled.lane_groups import groups

VISIT = 4e-9
"""Seconds per rating and group of 16 lanes, for each factor in a prediction or feature in a sum."""
SINGULAR = 6e-8
"""Seconds per rating and feature, for the singular vectors of who rated what."""
OWN_ENTRY = 1.5e-9
"""Seconds per rating, entry of its user's Gram matrix and group of lanes."""


def public_pattern(entry: Any, shape: Shape, grid: int) -> Cost:
    """Features, five passes over the ratings, and coefficients of rows."""
    k = entry.factors
    return _measured(entry, shape, grid, features=k, passes=3 * 2 * k + 3 * k + 2)


def own_pattern(entry: Any, shape: Shape, grid: int) -> Cost:
    """Features, two passes over the ratings, and the users' own regressions."""
    k, features = entry.factors, max(entry.own_features, entry.factors)
    measured = _measured(entry, shape, grid, features=features, passes=3 * k + 1)
    entries = gram_entries(entry.own_features + k + 1)
    own = len(groups(grid)) * (shape.ratings + 10 * shape.users) * entries * OWN_ENTRY
    rows = (shape.users + shape.items) * (entry.own_features + k + 2) * LINE * len(groups(grid))
    return measured + Cost(own, rows)


def _measured(entry: Any, shape: Shape, grid: int, *, features: int, passes: int) -> Cost:
    """Returns the cost of measuring. `passes` counts a rating's factors and features in all passes together."""
    k, rows = entry.factors, shape.users + shape.items
    visits = shape.ratings * passes * len(groups(grid)) * VISIT
    solved = rows * k * k * (1e-7 + grid * 2e-8)
    held = rows * k * (8.0 * k + 40.0 * grid) + shape.ratings * 60.0
    return Cost(visits + solved + shape.ratings * features * SINGULAR, held)
