"""The cost of neighbourhood models: the search for neighbours, steps of learning, predictions."""

from typing import Any

from dpmf_cli.algorithms.costs.averages import effects_cost
from dpmf_cli.algorithms.costs.cost import Cost, Shape
from dpmf_cli.compiled.lane_groups import padded_grid

SECONDS_PER_NEIGHBOUR = 1e-9
"""Per neighbour of one rating in one lane of a prediction."""
STEP = 0.6
"""The time that a neighbour takes in a step of learning, divided by its time in a prediction."""
FAVOUR = 3
"""How many times more often a user has rated one of the k nearest items than an item in general."""


def neighbourhood_cost(shape: Shape, grid: int, k: int, *, steps: int) -> Cost:
    """Returns the cost of `steps` steps of learning and of predicting a test fold."""
    lanes, k = padded_grid(grid), min(k, shape.items)
    met = shape.squares * min(1.0, FAVOUR * k / shape.items)
    visits = (STEP * steps + 0.25) * met * (SECONDS_PER_NEIGHBOUR * lanes + 1e-9)
    rows = float(shape.items) * k
    held = rows * (4.0 * lanes + 24.0) + 24.0 * shape.ratings
    return Cost(visits + steps * rows * (1e-8 + 2e-9 * lanes), held)


def constant_nbm(entry: Any, shape: Shape, grid: int) -> Cost:
    """A constant similarity, without privacy."""
    return effects_cost(shape, grid) + neighbourhood_cost(shape, 1, entry.k, steps=0)


def pnbm(entry: Any, shape: Shape, grid: int) -> Cost:
    """Similarities learned without privacy."""
    return effects_cost(shape, grid) + neighbourhood_cost(shape, 1, entry.k, steps=entry.iterations)


def correlation(entry: Any, shape: Shape, grid: int) -> Cost:
    """PCC and COS: products of all pairs of items, or of users, then predictions."""
    if entry.between == "users":
        shape = Shape(shape.items, shape.users, shape.ratings)
    products = Cost(3 * shape.squares * 4e-9 + shape.items**2 * 1e-7, shape.squares / 4 * 12.0)
    return effects_cost(shape, grid) + products + neighbourhood_cost(shape, 1, entry.k, steps=0)


def private_constant_nbm(entry: Any, shape: Shape, grid: int) -> Cost:
    """A constant similarity with private averages."""
    return _private(entry, shape, grid, steps=0)


def private_pnbm(entry: Any, shape: Shape, grid: int) -> Cost:
    """Similarities learned under privacy: DPSGD-PNBM and DPPS-PNBM."""
    return _private(entry, shape, grid, steps=entry.iterations)


def _private(entry: Any, shape: Shape, grid: int, *, steps: int) -> Cost:
    k = entry.neighbourhood if entry.chooses_neighbours else shape.items
    return effects_cost(shape, grid) + neighbourhood_cost(shape, grid, k, steps=steps)
