"""The time and memory that a fit takes on a training set of a given size, which plans and progress need.

Each method adds up its own `cost`. Here are the parts that several methods share: averages, rows of factors, visits
to them, neighbourhoods. Those of a covariance are in `item_covariance`.
"""

import math
from dataclasses import dataclass

from dpmf_cli.core.compiled.lane_groups import groups, padded_grid

UNEVENNESS = 2.5
"""Σ c_u² divided by its value if all users had equally many ratings: 1.9 in ML-100K, 2.4 in ML-1M, 3.1 in Netflix."""
ASKED = 1 / 9
"""Ratings to predict per training rating, under ten-fold cross-validation."""


@dataclass(frozen=True)
class Shape:
    """The size of a training set.

    squares   Σ c_u² over its users, where c_u is a user's number of ratings; estimated if not given
    """

    users: int
    items: int
    ratings: int
    squares: float = math.nan

    def __post_init__(self) -> None:
        if math.isnan(self.squares):
            object.__setattr__(self, "squares", UNEVENNESS * self.ratings**2 / self.users)

    @property
    def rows(self) -> int:
        return self.users + self.items


@dataclass(frozen=True)
class Cost:
    """The cost of one fit: bytes besides the ratings themselves, and the components of its time.

    `calibration.Machine.seconds` adds up the components, for its machine and caches.

    seconds   of one core of `calibration.REFERENCE`, with all data in the cache
    far       (count, bytes) each: the number of cache lines fetched from random places within so many bytes
    """

    seconds: float
    bytes: float
    far: tuple[tuple[float, float], ...] = ()

    def __add__(self, other: "Cost") -> "Cost":
        """The cost of both, one after the other, with the memory of both held."""
        return Cost(self.seconds + other.seconds, self.bytes + other.bytes, self.far + other.far)


NOTHING = Cost(0.0, 0.0)

SECONDS_PER_RESIDUAL = 1e-9
"""Per rating and ε of the grid, in the sums of residuals."""
SECONDS_PER_CHOICE = 5e-7
"""Per training rating, to choose β_m and β_u from all pairs of their values."""


def effects_cost(shape: Shape, grid: int) -> Cost:
    seconds = shape.ratings * (2e-8 + grid * SECONDS_PER_RESIDUAL) + shape.rows * grid * 5e-8
    return Cost(seconds, shape.rows * grid * 8.0 * 5)


def choice_of_averages(shape: Shape) -> Cost:
    """The cost of choosing β_m and β_u, with the errors of a fifth of the ratings held at once, for ten β_m."""
    return Cost(shape.ratings * SECONDS_PER_CHOICE, shape.ratings * 32.0 + shape.rows * 160.0)


LINE = 64.0
"""Bytes of a cache line: sixteen lanes of float32, one latent factor of one row."""
SECONDS_PER_DRAW = 3e-8
"""Per coordinate of K-norm noise, to draw, scale and add it."""
ROW_IN_RATINGS = 10
"""Solving a row's system takes as long as adding this many ratings to it."""
SOLVED_ENTRY, PERTURBED_ENTRY = 1.2e-9, 2e-9
"""Seconds per rating, entry of the lower triangle of its row's Gram matrix and group of 16 lanes; and with objective
perturbation."""
BATCH_VISIT, CLIPPED_VISIT = 7e-9, 6e-8
"""Seconds per rating, latent factor and group of 16 lanes, for gradients summed over all ratings; and with the sum of
each user clipped."""


def gram_entries(factors: int) -> float:
    """How many numbers the lower triangle of a row's Gram matrix and its right-hand side have."""
    return (factors + 1) * (factors + 2) / 2


def fetched(rows: int, factors: int, visits: float) -> tuple[float, float]:
    """How many cache lines so many visits to random rows of one side fetch, and from how many bytes."""
    return visits * (factors + 1), rows * (factors + 1) * LINE


def sgd_fetches(shape: Shape, factors: int, *, epochs: float, by_user: bool) -> Cost:
    """The fetches of SGD, which visits all ratings in each epoch.

    With `by_user`, a user's row stays in the cache while that user's ratings are visited one after the other.
    """
    of_items = fetched(shape.items, factors, epochs * shape.ratings)
    of_users = fetched(shape.users, factors, epochs * (shape.users if by_user else shape.ratings))
    return Cost(0.0, 0.0, (of_items, of_users))


def factors_cost(shape: Shape, grid: int, factors: int, *, seconds: float, held: float) -> Cost:
    """The cost of averages, then factors.

    Visits take `seconds` besides their fetches from outside the cache, and `held` bytes are needed besides the
    factors. The averages become float32 next to the factors; before that, measuring them takes its own memory.
    """
    averages = effects_cost(shape, grid)
    lanes = shape.rows * (factors + 1) * LINE * len(groups(grid))
    return Cost(averages.seconds + seconds, max(averages.bytes, lanes + shape.rows * grid * 16.0 + held))


def noise_on_rows(shape: Shape, factors: int, repetitions: int) -> Cost:
    """The cost of K-norm noise on all rows, so many times. Two draws and their parts are held at once."""
    numbers = shape.rows * float(factors)
    return Cost(repetitions * numbers * SECONDS_PER_DRAW, 32.0 * numbers)


SECONDS_PER_NEIGHBOUR = 1e-9
"""Per neighbour of one rating in one lane of a prediction."""
STEP = 0.6
"""The time that a neighbour takes in a step of learning, divided by its time in a prediction."""
FAVOUR = 3
"""How many times more often a user has rated one of the k nearest items than an item in general."""
SECONDS_PER_PAIR = 1e-8
"""Per pair, to name and predict it, and as much again per lane."""


def neighbourhood_cost(shape: Shape, grid: int, k: int, *, steps: int) -> Cost:
    """The cost of `steps` steps of learning and of predicting a test fold."""
    lanes, k = padded_grid(grid), min(k, shape.items)
    met = shape.squares * min(1.0, FAVOUR * k / shape.items)
    visits = (STEP * steps + 0.25) * met * (SECONDS_PER_NEIGHBOUR * lanes + 1e-9)
    rows = float(shape.items) * k
    held = rows * (4.0 * lanes + 24.0) + 24.0 * shape.ratings
    return Cost(visits + steps * rows * (1e-8 + 2e-9 * lanes), held)


def pairs_cost(grid: int, pairs: float) -> Cost:
    """The cost of predicting so many pairs by a look at two rows of factors or averages."""
    return Cost(pairs * SECONDS_PER_PAIR * (1 + grid), 0.0)


def met_cost(shape: Shape, grid: int, pairs: float, k: int) -> Cost:
    """The cost of predicting so many pairs by k neighbours of each item: all of a user's ratings are passed, and each
    lane uses those of the item's neighbours."""
    met = min(1.0, FAVOUR * k / shape.items)
    each = 1 + met * (1 + padded_grid(grid))
    return Cost(pairs * (shape.ratings / shape.users) * each * SECONDS_PER_NEIGHBOUR, 0.0)
