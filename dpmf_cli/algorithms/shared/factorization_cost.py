"""What factorisations have in common in what they take: memory of factors, rows fetched from afar, noise on rows."""

from dpmf_cli.algorithms.shared.averages_baseline import effects_cost
from dpmf_cli.algorithms.shared.base import Cost, Shape
from dpmf_cli.lane_groups import groups

LINE = 64.0
"""Bytes of a cache line: sixteen lanes of float32, one latent factor of one row."""
SECONDS_PER_DRAW = 3e-8
"""One coordinate of K-norm noise drawn, scaled and added."""


def private_cost(shape: Shape, grid: int, factors: int, *, seconds: float, held: float) -> Cost:
    """Averages, then factors: `seconds` of the visits beside what they fetch from afar, `held` bytes beside factors.

    The averages are turned into float32 beside the factors, and measuring them takes memory of its own before.
    """
    averages, rows = effects_cost(shape, grid), shape.users + shape.items
    lanes = rows * (factors + 1) * LINE * len(groups(grid))
    return Cost(averages.seconds + seconds, max(averages.bytes, lanes + rows * grid * 16.0 + held))


def fetched(rows: int, factors: int, visits: float) -> tuple[float, float]:
    """The cache lines that so many visits of random rows of one side take, and the bytes that these lie in."""
    return visits * (factors + 1), rows * (factors + 1) * LINE


def sgd_fetches(
    shape: Shape, factors: int, *, epochs: float, by_user: bool, visits: float | None = None
) -> tuple[tuple[float, float], ...]:
    """Those of SGD, which visits all ratings, or `visits`, in each epoch; a user's row stays near while their own
    ratings are visited one after the other."""
    each = shape.ratings if visits is None else visits
    return (
        fetched(shape.items, factors, epochs * each),
        fetched(shape.users, factors, epochs * (shape.users if by_user else each)),
    )


def noise_on_rows(shape: Shape, factors: int, repetitions: int) -> Cost:
    """K-norm noise on all rows of both sides, so many times; two draws and their parts are held at once."""
    numbers = (shape.users + shape.items) * float(factors)
    return Cost(repetitions * numbers * SECONDS_PER_DRAW, 32.0 * numbers)
