"""The cost of alternating minimisation in which users solve for themselves and items learn from sums over users."""

from typing import Any

from dpmf_cli.algorithms.costs.cost import Cost, Shape
from dpmf_cli.algorithms.costs.factorization import LINE, ROW_IN_RATINGS, fetched, gram_entries
from dpmf_cli.compiled.lane_groups import groups, padded_grid
from dpmf_cli.kernels.normal_equations import HELD

USER_ENTRY, ITEM_ENTRY = 1.2e-9, 2.4e-9
"""Seconds per rating, entry of a row's Gram matrix and group of 16 lanes: without noise, and weighted in doubles."""
EIGEN_ENTRY = 4e-9
"""Seconds per item and ε, times d³, for the eigenvectors of its Gram matrix."""
EQUATION_ENTRY = 3e-8
"""Seconds per entry of one item's Gram matrix and ε, to add noise, round and unpack."""


def _users(entry: Any, shape: Shape, grid: int, times: int) -> Cost:
    """Returns the cost of solving users `times` times and of holding factors, weights, and the ratings by item."""
    parts, d = padded_grid(grid) / 16, entry.factors
    solved = times * parts * (shape.ratings + ROW_IN_RATINGS * shape.users) * gram_entries(d) * USER_ENTRY
    rows = (shape.users + shape.items) * (d + 5) * LINE * len(groups(grid))
    far = (fetched(shape.items, d, times * shape.ratings * len(groups(grid))),)
    return Cost(solved + 2e-7 * shape.ratings, rows + 60.0 * shape.ratings, far)


def dpals(entry: Any, shape: Shape, grid: int) -> Cost:
    """DPALS: normal equations of all items in each step."""
    times, parts, d = entry.iterations, padded_grid(grid) / 16, entry.factors
    summed = times * parts * shape.ratings * gram_entries(d) * ITEM_ENTRY
    equations = times * grid * shape.items * (d**3 * EIGEN_ENTRY + gram_entries(d) * EQUATION_ENTRY)
    held = 24.0 * shape.items * gram_entries(d) + 48.0 * HELD
    far = (fetched(shape.users, d, times * shape.ratings * len(groups(grid))),)
    return _users(entry, shape, grid, times + 1) + Cost(summed + equations, held, far)


def dpam(entry: Any, shape: Shape, grid: int) -> Cost:
    """DPAM: noisy gradients of all items in each inner step."""
    steps, parts, d = entry.iterations * entry.steps, padded_grid(grid) / 16, entry.factors
    summed = steps * parts * shape.ratings * 6 * d * ITEM_ENTRY
    noise = steps * grid * shape.items * d * EQUATION_ENTRY
    held = 48.0 * shape.items * d * padded_grid(grid)
    far = (fetched(shape.users, d, steps * shape.ratings * len(groups(grid))),)
    return _users(entry, shape, grid, entry.iterations + 1) + Cost(summed + noise, held, far)
