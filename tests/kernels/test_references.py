"""Python references of the kernels that add noise: they compute the same, and a recorder sees what they measure.

Compiled kernels round released numbers to the grid, and measure the same as their Python references.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pytest

from dpmf_cli.core.compiled.lane_groups import MAXIMUM_WIDTH
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.als import RowProblem, by_item, by_user, solve_perturbed
from dpmf_cli.kernels.covariance import AT_ONCE, Products, release_products, triangle_size
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.gradients import sample_bits, step_batch
from dpmf_cli.kernels.releasing import perturb_side
from dpmf_cli.kernels.sgd import Sgd, Visits, descend_noisy_errors, descend_perturbed
from dpmf_cli.kernels.survivors import descend_survivors
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import keyed_laplace, laplace, repeated_k_norm
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.release import NoisyKernel, Numbers, Recorder, Release
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.testing.contract import Silencing
from tests.conftest import make_ratings
from tests.kernels.test_gradients import descended
from tests.kernels.test_similarities import STEPS, one_step
from tests.recorders import Passing

USERS, ITEMS, FACTORS = 9, 7, 2
EVERYONE = make_ratings(5, n_users=USERS, n_items=ITEMS)
RATINGS = EVERYONE.select((EVERYONE.users != 4) & (EVERYONE.items != 2))
VISITS = Visits(RATINGS.users, RATINGS.items, RATINGS.values)
GRID = np.geomspace(0.5, 50, MAXIMUM_WIDTH + 3)
"""Two groups of lanes."""
SILENT = np.full(len(GRID), np.inf)


def rows(count: int, curator: Curator) -> Release:
    moves = Sensitivity(1.0, 2, Neighbours.BOUNDED, "test")
    given: dict[str, Any] = {"sensitivity": moves, "epsilon": curator.ledger.limit, "curator": curator}
    (release,) = repeated_k_norm("rows", (count, FACTORS), repetitions=1, **given)
    return release


def numbers(count: int, curator: Curator) -> Release:
    moves = Sensitivity(1.0, 1, Neighbours.BOUNDED, "test")
    return laplace("numbers", (count,), sensitivity=moves, epsilon=curator.ledger.limit, curator=curator)


def cells(count: int, curator: Curator) -> Release:
    moves = Sensitivity(1.0, 1, Neighbours.UNBOUNDED, "test")
    return keyed_laplace("cells", sensitivity=moves, epsilon=curator.ledger.limit, curator=curator)


@dataclass(frozen=True)
class Use:
    """A kernel on the model of `start`, with its other arguments.

    count   how many numbers are measured, or rows of them
    silent  those that are not measured
    """

    kernel: NoisyKernel
    count: int
    arguments: tuple[Any, ...]
    draw: Callable[[int, Curator], Release] = rows
    silent: tuple[int, ...] = ()


BY_USER, BY_ITEM = by_user(RATINGS), by_item(RATINGS)
FREE, WITHIN = RowProblem(0.3, 1.0), RowProblem(np.geomspace(0.53, 2, len(GRID)), 1.0, False, 0.3)
FACTOR_OF_USERS, FACTOR_OF_ITEMS = np.linspace(0.01, 0.2, USERS), np.linspace(0.01, 0.2, ITEMS)
BATCH = Sgd(0.1, 0.05, 0.8, np.inf, 0.4, 0.5, clip=0.3)
ORDER = np.random.default_rng(0).permutation(ITEMS).astype(np.int32)
SHIFTS = np.random.default_rng(1).integers(ITEMS, size=USERS)
SAMPLES = sample_bits(np.random.default_rng(2).random((len(RATINGS), len(GRID))) < 0.5)
CELL_SGD = Sgd(0.1, 0.05, 0.8, threshold=0.4, epochs=3)
LINE, CELLS = len(RATINGS), USERS * ITEMS
USES = {
    "perturb_side, users": Use(perturb_side, USERS, ("users", 0.4)),
    "perturb_side, items": Use(perturb_side, ITEMS, ("items", 0.4)),
    "step_batch": Use(step_batch, USERS + ITEMS, (RATINGS, BATCH)),
    "factors, users": Use(solve_perturbed, USERS, (BY_USER, FREE, 0.4, FACTOR_OF_USERS), silent=(4,)),
    "factors, items": Use(solve_perturbed, ITEMS, (BY_ITEM, FREE, 0.4, FACTOR_OF_ITEMS), silent=(2,)),
    "factors, ball": Use(solve_perturbed, USERS, (BY_USER, WITHIN, 0.4, np.full(USERS, 0.1))),
    "solve_perturbed, users": Use(solve_perturbed, USERS, (BY_USER, FREE, 0.4), silent=(4,)),
    "solve_perturbed, items": Use(solve_perturbed, ITEMS, (BY_ITEM, FREE, 0.5), silent=(2,)),
    "solve_perturbed, ball, users": Use(solve_perturbed, USERS, (BY_USER, WITHIN, 0.3)),
    "solve_perturbed, ball, items": Use(solve_perturbed, ITEMS, (BY_ITEM, WITHIN, 0.3)),
    "descend_perturbed": Use(descend_perturbed, LINE, (VISITS, Sgd(0.1, 0.05, 0.8, epochs=3)), numbers),
    "descend_noisy_errors": Use(
        descend_noisy_errors, LINE, (VISITS, Sgd(0.1, 0.05, 0.8, 1.2, 0.4, 0.5)), numbers
    ),
    "descend_survivors": Use(descend_survivors, CELLS, (RATINGS, CELL_SGD, ORDER, SHIFTS), cells),
    "descend_survivors, of samples": Use(
        descend_survivors, CELLS, (RATINGS, CELL_SGD, ORDER, SHIFTS, SAMPLES), cells
    ),
}


class Watching(Recorder):
    """Counts how many times each number of each model is published, and publishes it unchanged."""

    def __init__(self, count: int) -> None:
        self.seen = np.zeros((count, len(GRID)), np.int64)

    def published(
        self, release: Release, lanes: slice, first: int, clean: Numbers, noisy: np.ndarray
    ) -> np.ndarray:
        self.seen[first : first + len(clean), lanes] += 1
        return noisy


def start(grid: int = len(GRID)) -> FactorModel:
    rng = np.random.default_rng(3)
    p, q = rng.normal(0, 0.4, (USERS, FACTORS)), rng.normal(0, 0.4, (ITEMS, FACTORS))
    return factor_model(p, q, rng.normal(0, 0.3, (USERS, grid)), rng.normal(3.2, 0.3, (ITEMS, grid)))


def curator_of(epsilons: np.ndarray, recorder: Recorder | None) -> Curator:
    return Curator(Ledger(epsilons), Streams(1, "data", "test", 0, 0), recorder)


def table(model: FactorModel) -> np.ndarray:
    """(users + items, d + 1, E) what the model publishes."""
    return np.concatenate(list(model.published.values()))


def used(use: Use, epsilons: np.ndarray, recorder: Recorder | None) -> np.ndarray:
    model = start(len(epsilons))
    use.draw(use.count, curator_of(epsilons, recorder)).inside(use.kernel, model, *use.arguments)
    return table(model)


def products(epsilons: np.ndarray, recorder: Recorder | None) -> np.ndarray:
    """Groups of models; the last group is not full."""
    rng, size = np.random.default_rng(3), triangle_size(ITEMS)
    items, users = (rng.normal(centre, 0.4, (n, len(GRID))) for centre, n in ((3.5, ITEMS), (0, USERS)))
    weights = rng.random(USERS)
    release, found = numbers(size, curator_of(epsilons, recorder)), []
    for first in range(0, len(epsilons), AT_ONCE):
        part = slice(first, min(first + AT_ONCE, len(epsilons)))
        released, own = np.empty((part.stop - part.start, size), np.float32), (items[:, part], users[:, part])
        each = Products(part, RATINGS, RATINGS.values, weights, *own, 0.9, released)
        release.inside(release_products, each)
        found.append(each.released)
    return np.concatenate(found).T


Run = Callable[[np.ndarray, Recorder | None], np.ndarray]
TO_THE_BIT: dict[str, Run] = {
    **{name: partial(used, USES[name]) for name in ("descend_perturbed", "descend_noisy_errors")},
    "step_noisy": lambda epsilons, recorder: table(descended(0.0, epsilons, recorder)),
    "step_noisy, with momentum": lambda epsilons, recorder: table(descended(0.8, epsilons, recorder)),
    **{f"similarities, {name}": partial(one_step, *step) for name, step in STEPS.items()},
    "release_products": products,
}
"""Kernels whose references give the same bytes: (epsilons, recorder) → (…, E) the result."""
RUNS: dict[str, Run] = {**{name: partial(used, use) for name, use in USES.items()}, **TO_THE_BIT}


@pytest.mark.parametrize("name", RUNS)
def test_a_reference_does_what_its_kernel_does_with_what_is_published(name: str) -> None:
    """For two groups of models. Without noise the result is another in every model, so the comparisons have power.

    Keyed noise, which no recorder can choose, is included: it is published on a grid.
    """
    run = RUNS[name]
    compiled, plain, without_noise = run(GRID, None), run(GRID, Passing()), run(SILENT, None)
    assert plain == pytest.approx(compiled, rel=1e-6, abs=2e-5)
    if name in TO_THE_BIT or "survivors" in name:
        assert plain.tobytes() == compiled.tobytes()
    assert run(GRID, Silencing()) == pytest.approx(without_noise, rel=1e-6, abs=2e-5)
    assert (np.abs(compiled - without_noise).max(axis=tuple(range(compiled.ndim - 1))) > 1e-3).all()


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_every_number_is_measured_once_at_its_place_in_every_model(use: Use) -> None:
    watching = Watching(use.count)
    used(use, GRID, watching)
    assert (watching.seen == np.isin(np.arange(use.count), use.silent, invert=True)[:, None]).all()


@pytest.mark.parametrize("epsilon", [0.3, 4.0, 100.0])
@pytest.mark.parametrize("name", [name for name in RUNS if "survivors" not in name])
def test_a_kernel_gives_the_same_wherever_in_its_cell_a_number_lies(name: str, epsilon: float) -> None:
    """The kernel measures what its reference does, and rounds. (Keyed noise is drawn inside of it.)"""
    recorders = None, *map(Passing, (0.25, 0.0, -0.25))
    assert len({RUNS[name](np.array([epsilon]), each).tobytes() for each in recorders}) == 1


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("threshold", [0.4, 0.799, 0.801])
@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0, 40.0])
def test_dropped_cells_leave_even_infinite_factors_alone(epsilon: float, threshold: float) -> None:
    """Rated or blank, in the kernel and in its reference: 0·∞ is no number, and would tell which cells were visited."""
    found = []
    for recorder in (None, Passing()):
        model = start(2)
        for group in model.groups:
            group.rows("items")[:] = np.inf
        order = np.arange(ITEMS, dtype=np.int32), np.zeros(USERS, np.int64)
        release = cells(CELLS, curator_of(np.array([epsilon, 1e-3]), recorder))
        release.inside(descend_survivors, model, RATINGS, Sgd(0.1, 0.05, 0.8, threshold=threshold), *order)
        found.append(model.groups[0].rows("users")[..., 0])
    assert np.array_equal(found[0], found[1], equal_nan=True)
    untouched = np.array_equal(found[0], start(2).groups[0].rows("users")[..., 0])
    assert untouched == (threshold > 0.8)  # where no cell survives
