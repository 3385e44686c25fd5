"""What averages take, with or without noise."""

from dpmf_cli.algorithms.costs.cost import Cost, Shape

SECONDS_PER_RESIDUAL = 1e-9
"""One rating, one ε of the grid, in the sums of residuals."""


def effects_cost(shape: Shape, grid: int) -> Cost:
    """What measuring the averages takes."""
    seconds = shape.ratings * (2e-8 + grid * SECONDS_PER_RESIDUAL) + (shape.users + shape.items) * grid * 5e-8
    return Cost(seconds, (shape.users + shape.items) * grid * 8.0 * 5)


def averages(entry: object, shape: Shape, grid: int) -> Cost:
    """Averages alone: GA, IA, GE, PGE, and item averages beside a user's own mean."""
    return effects_cost(shape, grid)
