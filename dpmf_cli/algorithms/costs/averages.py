"""The cost of averages, with or without noise."""

from typing import Any

from dpmf_cli.algorithms.costs.cost import NOTHING, Cost, Shape

SECONDS_PER_RESIDUAL = 1e-9
"""Per rating and ε of the grid, in the sums of residuals."""


def effects_cost(shape: Shape, grid: int) -> Cost:
    """Returns the cost of measuring the averages."""
    seconds = shape.ratings * (2e-8 + grid * SECONDS_PER_RESIDUAL) + (shape.users + shape.items) * grid * 5e-8
    return Cost(seconds, (shape.users + shape.items) * grid * 8.0 * 5)


SECONDS_PER_CHOICE = 5e-7
"""Per training rating, to choose β_m and β_u from all pairs of their values."""


def averages(entry: Any, shape: Shape, grid: int) -> Cost:
    """Averages alone: GA, UA, IA, GE, PGE, and item averages beside a user's own mean."""
    chosen = choice_of_averages(shape) if getattr(entry, "tuned", False) else NOTHING
    return effects_cost(shape, grid) + chosen


def choice_of_averages(shape: Shape) -> Cost:
    """Returns the cost of choosing β_m and β_u.

    The errors of a fifth of the ratings, for ten β_m, are held at once.
    """
    return Cost(
        shape.ratings * SECONDS_PER_CHOICE, shape.ratings * 32.0 + (shape.users + shape.items) * 160.0
    )
