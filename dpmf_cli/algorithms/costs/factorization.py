"""The cost of factorisations: memory of factors, rows fetched from outside the cache, visits, and noise on rows."""

from typing import Any

from dpmf_cli.algorithms.costs.averages import choice_of_averages, effects_cost
from dpmf_cli.algorithms.costs.cost import Cost, Shape
from dpmf_cli.compiled.lane_groups import MAXIMUM_WIDTH, groups, padded_grid
from dpmf_cli.kernels.sgd import kept_bytes
from dpmf_cli.privacy.neighbours import Mode, Neighbours

LINE = 64.0
"""Bytes of a cache line: sixteen lanes of float32, one latent factor of one row."""
SECONDS_PER_DRAW = 3e-8
"""Per coordinate of K-norm noise, to draw, scale and add it."""


def private_cost(shape: Shape, grid: int, factors: int, *, seconds: float, held: float) -> Cost:
    """Returns the cost of averages, then factors.

    Visits take `seconds` besides their fetches from outside the cache, and `held` bytes are needed besides the
    factors. The averages become float32 next to the factors. Measuring the averages takes its own memory before that.
    """
    averages, rows = effects_cost(shape, grid), shape.users + shape.items
    lanes = rows * (factors + 1) * LINE * len(groups(grid))
    return Cost(averages.seconds + seconds, max(averages.bytes, lanes + rows * grid * 16.0 + held))


def fetched(rows: int, factors: int, visits: float) -> tuple[float, float]:
    """Returns how many cache lines so many visits to random rows of one side fetch, and from how many bytes."""
    return visits * (factors + 1), rows * (factors + 1) * LINE


def sgd_fetches(
    shape: Shape, factors: int, *, epochs: float, by_user: bool
) -> tuple[tuple[float, float], ...]:
    """Returns the fetches of SGD, which visits all ratings in each epoch.

    With `by_user`, a user's row stays in the cache while that user's ratings are visited one after the other.
    """
    return (
        fetched(shape.items, factors, epochs * shape.ratings),
        fetched(shape.users, factors, epochs * (shape.users if by_user else shape.ratings)),
    )


def noise_on_rows(shape: Shape, factors: int, repetitions: int) -> Cost:
    """Returns the cost of K-norm noise on all rows of both sides, `repetitions` times.

    Two draws and their parts are held at once.
    """
    numbers = (shape.users + shape.items) * float(factors)
    return Cost(repetitions * numbers * SECONDS_PER_DRAW, 32.0 * numbers)


ISGD_VISIT, PSGD_VISIT, PBGD_VISIT, MF_SGD_VISIT = 2.75e-9, 4.5e-9, 8e-9, 4e-9
"""Seconds per rating, latent factor and group of 16 lanes (of 8 without privacy). PSGD's visit projects two rows."""
CELL = 5e-9
"""Seconds per cell of the perturbed matrix: its noise, and the decision whether it survives."""
ALS_ENTRY, PALS_ENTRY, OBJECTIVE_ENTRY = 1.2e-9, 7.5e-10, 2e-9
"""Seconds per rating, entry of the lower triangle of its row's Gram matrix and group of lanes."""
ROW_IN_RATINGS = 10
"""Solving a row's system takes as long as adding this many ratings to it."""
PMF_VISIT = 7e-9
"""Seconds per rating, latent factor and group of 16 lanes, for the gradients of both sides."""
LIU_VISIT = 6e-8
"""Seconds per rating, latent factor and group of 16 lanes, including the noise of its two rows."""
LANGEVIN_VISIT = {Mode.PUBLISHED: 7e-9, Mode.CORRECTED: 6e-8}
"""Seconds per rating, latent factor and group of 16 lanes, in one step of DPPS-MF."""


def gram_entries(factors: int) -> float:
    """Returns how many numbers the lower triangle of a row's Gram matrix and its right-hand side have."""
    return (factors + 1) * (factors + 2) / 2


def isgd(entry: Any, shape: Shape, grid: int) -> Cost:
    """Input perturbation: each epoch visits all ratings or, if presence is private, all cells.

    The rows of the cells' items are visited one after the other, so they stay near.
    """
    passes, visit = entry.epochs * len(groups(grid)), entry.factors * ISGD_VISIT
    if entry.neighbours is Neighbours.BOUNDED:
        seconds, held = shape.ratings * (passes * visit + 4e-8), 17.0 * shape.ratings
        if entry.epochs > 1:
            held += kept_bytes(shape.ratings, min(grid, MAXIMUM_WIDTH))
        far = sgd_fetches(shape, entry.factors, epochs=passes, by_user=entry.order == "user_major")
    else:
        cells = float(shape.users) * shape.items
        seconds, far = cells * passes * (CELL + visit), ()
        held = shape.items * (entry.factors + 1) * LINE
    return private_cost(shape, grid, entry.factors, seconds=seconds, held=held) + Cost(0.0, 0.0, far)


def psgd(entry: Any, shape: Shape, grid: int) -> Cost:
    """Gradient perturbation: noise for every rating and pass, or on all rows after each pass."""
    passes = entry.epochs * len(groups(grid))
    seconds = shape.ratings * (passes * entry.factors * PSGD_VISIT + 3e-8)
    far = sgd_fetches(shape, entry.factors, epochs=passes, by_user=entry.order == "user_major")
    if entry.neighbours is Neighbours.BOUNDED:  # two draws of noise are held at once, and the signs of one
        seconds, held = seconds + 1e-8 * entry.epochs * shape.ratings, 25.0 * shape.ratings
        noise = Cost(0.0, 0.0)
    else:
        held, noise = 8.0 * shape.ratings, noise_on_rows(shape, entry.factors, entry.epochs)
    whole = private_cost(shape, grid, entry.factors, seconds=seconds, held=held)
    return whole + noise + Cost(0.0, 0.0, far)


def pals(entry: Any, shape: Shape, grid: int) -> Cost:
    """Private alternating least squares, by output or objective perturbation."""
    passes = entry.iterations * len(groups(grid))
    rows = ROW_IN_RATINGS * (shape.users + shape.items)
    solved = passes * (2 * shape.ratings + rows) * gram_entries(entry.factors) * PALS_ENTRY
    seconds = solved + 3e-8 * shape.ratings
    whole = private_cost(shape, grid, entry.factors, seconds=seconds, held=8.0 * shape.ratings)
    sides = (shape.items, shape.users)
    far = tuple(fetched(side, entry.factors, passes * shape.ratings) for side in sides)
    return whole + noise_on_rows(shape, entry.factors, entry.iterations) + Cost(0.0, 0.0, far)


def pbgd(entry: Any, shape: Shape, grid: int) -> Cost:
    """Batch gradient descent with joint clipping."""
    passes = entry.epochs * len(groups(grid))
    averages = effects_cost(shape, grid)
    visits = shape.ratings * passes * entry.factors * PBGD_VISIT
    factors = 2 * (shape.users + shape.items) * (entry.factors + 1) * LINE * len(groups(grid))
    return Cost(averages.seconds + visits, averages.bytes + factors)


TRIED = (5, 10, 20) * 2 + (20,)
"""The ranks that a tuned clean MF fits: three with biases and without, and the rank of the last fit."""


def als(entry: Any, shape: Shape, grid: int) -> Cost:
    """Alternating least squares without noise: one fit, or the fits for every d and all λ to choose from."""
    tried = TRIED if entry.tuned else (entry.factors,)
    seconds = sum(
        2 * entry.iterations * shape.ratings * gram_entries(factors) * ALS_ENTRY for factors in tried
    )
    rows = (shape.users + shape.items) * (max(tried) + 1) * 32.0
    once = Cost(seconds + 1e-7 * shape.ratings, rows + 40.0 * shape.ratings)
    return once + choice_of_averages(shape) if entry.tuned else once


def mf_sgd(entry: Any, shape: Shape, grid: int) -> Cost:
    """SGD without noise."""
    seconds = entry.epochs * shape.ratings * entry.factors * MF_SGD_VISIT
    rows = (shape.users + shape.items) * (entry.factors + 1) * 32.0
    return Cost(seconds, rows + 48.0 * shape.ratings)


def pmf(entry: Any, shape: Shape, grid: int) -> Cost:
    """PMF by gradient descent, for one model."""
    return descent_cost(entry, shape, grid, entry.epochs)


def descent_cost(entry: Any, shape: Shape, grid: int, epochs: int) -> Cost:
    """`epochs` of PMF on both sides, for `grid` models with a sample each."""
    passes = epochs * padded_grid(grid) / MAXIMUM_WIDTH
    rows, batches = shape.users + shape.items, entry.batches_of(shape.ratings)
    seconds = passes * entry.factors * (shape.ratings * PMF_VISIT + rows * batches * 1e-8)
    factors = 2 * rows * (entry.factors + 1) * LINE * (len(groups(grid)) + 1)
    return Cost(seconds + 2e-7 * shape.ratings, factors + (60.0 + 2 * grid) * shape.ratings)


def dp_pmf(entry: Any, shape: Shape, grid: int) -> Cost:
    """DP-PMF: noisy gradients of the items as published, objective perturbation of rows as corrected."""
    if entry.mode is Mode.CORRECTED:
        return perturbed_rows(entry, shape, grid)
    descent = descent_cost(entry, shape, grid, entry.epochs + entry.noisy_epochs)
    steps = entry.noisy_epochs * entry.batches_of(shape.ratings)
    return Cost(descent.seconds + steps * shape.items * entry.factors * 2e-8, descent.bytes)


def perturbed_rows(entry: Any, shape: Shape, grid: int) -> Cost:
    """Rows of ridge regression with objective perturbation."""
    solutions, parts, d = 2 * entry.passes - 1, len(groups(grid)), entry.factors
    rows = shape.users + shape.items
    work = (shape.ratings + 20 * d * rows) * gram_entries(d) * OBJECTIVE_ENTRY
    factors = rows * (d + 1) * LINE * parts
    return Cost(solutions * parts * work + 1e-7 * shape.ratings, factors + 40.0 * shape.ratings)


def hua_mf(entry: Any, shape: Shape, grid: int) -> Cost:
    """Least squares of the items with noise: published after a clean fit, corrected before users' own regressions."""
    passes = 1.5 if entry.mode is Mode.CORRECTED else entry.iterations + 0.5
    parts, d = len(groups(grid)), entry.factors
    rows = shape.users + shape.items
    work = passes * parts * (2 * shape.ratings + ROW_IN_RATINGS * rows) * gram_entries(d) * OBJECTIVE_ENTRY
    return private_cost(shape, grid, d, seconds=work + 1e-7 * shape.ratings, held=24.0 * shape.ratings)


def mugdho_mf(entry: Any, shape: Shape, grid: int) -> Cost:
    """Batch gradients of both sides, in each step over all ratings."""
    passes, rows = entry.iterations * len(groups(grid)), (shape.users + shape.items) * entry.factors * LINE
    seconds = passes * (shape.ratings * LANGEVIN_VISIT[Mode.PUBLISHED] * entry.factors + rows * 3e-10)
    return Cost(seconds + 1e-7 * shape.ratings, 6 * rows * len(groups(grid)))


def liu_mf(entry: Any, shape: Shape, grid: int) -> Cost:
    """Visits one by one, each after the noise of its two rows. The noise of two rounds is held."""
    ratings, row = min(shape.ratings, entry.most_ratings * shape.users), entry.factors + 1
    passes, rows = entry.iterations * len(groups(grid)), (shape.users + shape.items) * row * LINE
    drawn = (2 * ratings + shape.users + shape.items) * float(row)
    seconds = passes * ratings * row * LIU_VISIT + entry.iterations * drawn * 1e-8
    return Cost(seconds + 1e-7 * shape.ratings, 4 * rows * len(groups(grid)) + 16 * drawn + 64 * ratings)


def dpps_mf(entry: Any, shape: Shape, grid: int) -> Cost:
    """Posterior sampling of factors as published, noisy gradients of the items as corrected."""
    passes = entry.iterations * len(groups(grid))
    rows = (shape.users + shape.items) * entry.factors * LINE
    seconds = passes * (shape.ratings * LANGEVIN_VISIT[entry.mode] * entry.factors + rows * 3e-10)
    return effects_cost(shape, grid) + Cost(seconds, 6 * rows * len(groups(grid)))


def own_regression(entry: Any, shape: Shape, grid: int) -> Cost:
    """Rounds in which users regress and items learn from the residuals. Coefficients and sums are float64."""
    features, passes = entry.factors + 3, (entry.iterations + 1) * len(groups(grid))
    solved = (shape.ratings + ROW_IN_RATINGS * shape.users) * gram_entries(features) * ALS_ENTRY
    summed = shape.ratings * LANGEVIN_VISIT[Mode.CORRECTED] * features / 2
    rows = (shape.users + shape.items) * features * LINE
    return effects_cost(shape, grid) + Cost(passes * (solved + summed), 8 * rows * len(groups(grid)))


def personalized(entry: Any, shape: Shape, grid: int) -> Cost:
    """The base on a sample for each ε, all in one fit if the base can have a sample in each lane."""
    together = grid if entry.base.shares_lanes else 1
    base, times = entry.base.cost(shape, together), grid // together
    sampling = 1e-7 * shape.ratings * grid
    return Cost(times * base.seconds + sampling, times * base.bytes + 40.0 * shape.ratings * grid)


def sampled(entry: Any, shape: Shape, grid: int) -> Cost:
    """The base without noise on one sample."""
    base = entry.base.cost(shape, grid)
    return Cost(base.seconds + 1e-7 * shape.ratings, base.bytes + 40.0 * shape.ratings)
