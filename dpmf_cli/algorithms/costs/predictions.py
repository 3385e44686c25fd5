"""The cost of predicting all items for many users, which the metrics of recommendations need.

A fit's cost includes the predictions of a test fold. All pairs are some hundred times as many.
"""

from collections.abc import Callable, Mapping
from typing import Any

from dpmf_cli.algorithms.costs import covariance, neighbourhood
from dpmf_cli.algorithms.costs.cost import Cost, Shape
from dpmf_cli.compiled.lane_groups import padded_grid
from dpmf_cli.privacy.neighbours import Neighbours

SECONDS_PER_PAIR = 1e-8
"""Per pair, to name and predict it, and as much again per lane."""


def predictions_cost(entry: Any, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
    """Returns the cost of predicting so many `pairs` in so many `calls` of `predict`."""
    plain = Cost(pairs * SECONDS_PER_PAIR * (1 + grid), 0.0)
    more = _MORE.get(entry.algorithm)
    return plain if more is None else plain + more(entry, shape, grid, pairs, calls)


def _neighbourhood(entry: Any, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
    return _met(shape, grid, pairs, entry.k)


def _private_neighbourhood(entry: Any, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
    return _met(shape, grid, pairs, entry.neighbourhood if entry.chooses_neighbours else shape.items)


def _met(shape: Shape, grid: int, pairs: float, k: int) -> Cost:
    """For each item, all of a user's ratings are passed, and each lane uses those of the item's k neighbours."""
    met = min(1.0, neighbourhood.FAVOUR * k / shape.items)
    each = 1 + met * (1 + padded_grid(grid))
    return Cost(pairs * _per_user(shape) * each * neighbourhood.SECONDS_PER_NEIGHBOUR, 0.0)


def _nearest_items(entry: Any, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
    """A search for neighbours and a system of equations for each pair, and all matrices once more in each call."""
    private = entry.neighbours is not Neighbours.BOUNDED
    search = _per_user(shape) * covariance.SECONDS_PER_CANDIDATE * (grid if private else 1)
    found = Cost(pairs * search, 8.0 * entry.k * pairs / calls)
    return (
        found
        + covariance.solve_cost(shape, entry.k, grid * pairs)
        + _matrices_anew(entry, shape, grid, calls)
    )


def _fixed_covariance(entry: Any, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
    """A sum over at most k neighbours for each pair and lane."""
    return Cost(pairs * grid * entry.k * 5e-9, 8.0 * entry.k * pairs / calls)


def _subspace(entry: Any, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
    """Coordinates of each user, and all matrices once more in each call."""
    return Cost(pairs * grid * entry.k * 1e-9, 0.0) + _matrices_anew(entry, shape, grid, calls)


def _matrices_anew(entry: Any, shape: Shape, grid: int, calls: int) -> Cost:
    rank = getattr(entry, "eigenpairs", None)
    once = covariance.covariance_cost(shape, grid, private_weights=True).seconds
    if rank is not None:
        once += covariance.spectra_cost(entry, shape, grid).seconds
    return Cost(calls * once, 0.0)


def _per_user(shape: Shape) -> float:
    return shape.ratings / shape.users


_MORE: Mapping[str, Callable[[Any, Shape, int, float, int], Cost]] = {
    **dict.fromkeys(("pcc", "cos", "constant_nbm", "pnbm"), _neighbourhood),
    **dict.fromkeys(("dpsgd_pnbm", "dpps_pnbm", "private_constant_nbm"), _private_neighbourhood),
    "pknn": _nearest_items,
    "mm_knn": _nearest_items,
    "public_knn": _fixed_covariance,
    "mm_svd": _subspace,
}
"""The cost of methods that need more than a look at two rows of factors or averages."""
