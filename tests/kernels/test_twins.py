"""Plain twins of the kernels that add noise: they compute the same, and a witness sees what they measure."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from dpmf_cli.compiled.lane_groups import MAXIMUM_WIDTH
from dpmf_cli.kernels.als import (
    RowProblem,
    by_item,
    by_user,
    perturb_solved_items,
    perturb_solved_users,
    solve_perturbed_items,
    solve_perturbed_users,
)
from dpmf_cli.kernels.clipped_gradients import BatchStep, step_batch
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.gradients import sample_bits
from dpmf_cli.kernels.releasing import perturb_items, perturb_users
from dpmf_cli.kernels.sgd import Sgd, Visits, descend_noisy_errors, descend_perturbed
from dpmf_cli.kernels.survivors import descend_survivors
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import keyed_laplace, laplace, repeated_k_norm
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.release import NoisyKernel, Numbers, Release, Witness
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.streams import Streams
from tests.conftest import make_ratings

USERS, ITEMS, FACTORS = 9, 7, 2
EVERYONE = make_ratings(5, n_users=USERS, n_items=ITEMS)
RATINGS = EVERYONE.select((EVERYONE.users != 4) & (EVERYONE.items != 2))
VISITS = Visits(RATINGS.users, RATINGS.items, RATINGS.values)
GRID = np.geomspace(0.5, 50, MAXIMUM_WIDTH + 3)
"""Two groups of lanes."""
ORDER = np.random.default_rng(0).permutation(ITEMS).astype(np.int32)
SHIFTS = np.random.default_rng(1).integers(ITEMS, size=USERS)
SAMPLES = sample_bits(np.random.default_rng(2).random((len(RATINGS), len(GRID))) < 0.5)


def k_norm(rows: int) -> Callable[[Curator], Release]:
    def draw(curator: Curator) -> Release:
        moves = Sensitivity(1.0, 2, Neighbours.BOUNDED, "test")
        (release,) = repeated_k_norm(
            "rows",
            (rows, FACTORS),
            repetitions=1,
            sensitivity=moves,
            epsilon=curator.ledger.limit,
            curator=curator,
        )
        return release

    return draw


def errors(curator: Curator) -> Release:
    moves = Sensitivity(1.0, 1, Neighbours.BOUNDED, "test")
    return laplace(
        "errors", (len(RATINGS),), sensitivity=moves, epsilon=curator.ledger.limit, curator=curator
    )


def cells(curator: Curator) -> Release:
    moves = Sensitivity(1.0, 1, Neighbours.UNBOUNDED, "test")
    return keyed_laplace("cells", sensitivity=moves, epsilon=curator.ledger.limit, curator=curator)


@dataclass(frozen=True)
class Use:
    """A kernel on the model of `start`, with noise from `draw`.

    count   how many numbers are measured, or rows of them
    apply   (release, kernel, model): runs the kernel with its other arguments
    silent  those that are not measured
    """

    kernel: NoisyKernel
    draw: Callable[[Curator], Release]
    count: int
    apply: Callable[[Release, NoisyKernel, FactorModel], None]
    silent: tuple[int, ...] = ()


def rows_of(count: int) -> np.ndarray:
    """A factor for each row's noise."""
    return np.linspace(0.01, 0.2, count)


FREE, WITHIN = RowProblem(0.3, 1.0), RowProblem(np.geomspace(0.53, 2, len(GRID)), 1.0, False, 0.3)
USES = {
    "perturb_users": Use(perturb_users, k_norm(USERS), USERS, lambda r, k, m: r.inside(k, m, 0.4)),
    "perturb_items": Use(perturb_items, k_norm(ITEMS), ITEMS, lambda r, k, m: r.inside(k, m, 0.4)),
    "step_batch": Use(
        step_batch,
        k_norm(USERS + ITEMS),
        USERS + ITEMS,
        lambda r, k, m: r.inside(k, m, RATINGS, BatchStep(0.1, 0.05, 0.8, 0.3, 0.4, 0.5)),
    ),
    "perturb_solved_users": Use(
        perturb_solved_users,
        k_norm(USERS),
        USERS,
        lambda r, k, m: r.inside(k, m, by_user(RATINGS), FREE, rows_of(USERS), 0.4),
        (4,),
    ),
    "perturb_solved_items": Use(
        perturb_solved_items,
        k_norm(ITEMS),
        ITEMS,
        lambda r, k, m: r.inside(k, m, by_item(RATINGS), FREE, rows_of(ITEMS), 0.4),
        (2,),
    ),
    "perturb_solved_users, within a ball": Use(
        perturb_solved_users,
        k_norm(USERS),
        USERS,
        lambda r, k, m: r.inside(k, m, by_user(RATINGS), WITHIN, np.full(USERS, 0.1), 0.4),
    ),
    "solve_perturbed_users": Use(
        solve_perturbed_users,
        k_norm(USERS),
        USERS,
        lambda r, k, m: r.inside(k, m, by_user(RATINGS), FREE, 0.4),
        (4,),
    ),
    "solve_perturbed_items": Use(
        solve_perturbed_items,
        k_norm(ITEMS),
        ITEMS,
        lambda r, k, m: r.inside(k, m, by_item(RATINGS), FREE, 0.5),
        (2,),
    ),
    "solve_perturbed_users, within a ball": Use(
        solve_perturbed_users,
        k_norm(USERS),
        USERS,
        lambda r, k, m: r.inside(k, m, by_user(RATINGS), WITHIN, 0.3),
    ),
    "solve_perturbed_items, within a ball": Use(
        solve_perturbed_items,
        k_norm(ITEMS),
        ITEMS,
        lambda r, k, m: r.inside(k, m, by_item(RATINGS), WITHIN, 0.3),
    ),
    "descend_perturbed": Use(
        descend_perturbed,
        errors,
        len(RATINGS),
        lambda r, k, m: r.inside(k, m, VISITS, Sgd(0.1, 0.05, 0.8, epochs=3)),
    ),
    "descend_noisy_errors": Use(
        descend_noisy_errors,
        errors,
        len(RATINGS),
        lambda r, k, m: r.inside(k, m, VISITS, Sgd(0.1, 0.05, 0.8, 1.2, 0.4, 0.5)),
    ),
    "descend_survivors": Use(
        descend_survivors,
        cells,
        USERS * ITEMS,
        lambda r, k, m: r.inside(k, m, RATINGS, ORDER, SHIFTS, Sgd(0.1, 0.05, 0.8, threshold=0.4, epochs=3)),
    ),
    "descend_survivors, of samples": Use(
        descend_survivors,
        cells,
        USERS * ITEMS,
        lambda r, k, m: r.inside(
            k, m, RATINGS, ORDER, SHIFTS, Sgd(0.1, 0.05, 0.8, threshold=0.4, epochs=3), SAMPLES
        ),
    ),
}


class Watching(Witness):
    """Counts how many times each number of each model is published, and publishes it unchanged."""

    def __init__(self, count: int) -> None:
        self.seen = np.zeros((count, len(GRID)), np.int64)

    def published(
        self, release: Release, lanes: slice, first: int, clean: Numbers, noisy: np.ndarray
    ) -> np.ndarray:
        self.seen[first : first + len(clean), lanes] += 1
        return noisy


class Silencing(Witness):
    """Publishes the clean numbers."""

    def published(
        self, release: Release, lanes: slice, first: int, clean: Numbers, noisy: np.ndarray
    ) -> np.ndarray:
        return np.asarray(clean)


def start(grid: int = len(GRID)) -> FactorModel:
    rng = np.random.default_rng(3)
    p, q = rng.normal(0, 0.4, (USERS, FACTORS)), rng.normal(0, 0.4, (ITEMS, FACTORS))
    return factor_model(p, q, rng.normal(0, 0.3, (USERS, grid)), rng.normal(3.2, 0.3, (ITEMS, grid)))


def after(use: Use, epsilons: np.ndarray = GRID, witness: Witness | None = None) -> np.ndarray:
    """(users + items, d, E) the factors after the kernel, or after its twin where there is a witness."""
    streams = Streams(1, "data", "test", 0, 0)
    model = start(len(epsilons))
    use.apply(use.draw(Curator(Ledger(epsilons), streams, witness)), use.kernel, model)
    return np.concatenate(
        [
            np.concatenate([group.rows("users"), group.rows("items")]).astype(np.float64)
            for group in model.groups
        ],
        axis=2,
    )


@pytest.mark.parametrize("name", USES)
def test_a_twin_does_what_its_kernel_does(name: str) -> None:
    use = USES[name]
    watching = Watching(use.count)
    of_kernel, of_twin = after(use), after(use, witness=watching)
    assert of_twin == pytest.approx(of_kernel, abs=2e-5)
    expected = np.isin(np.arange(use.count), use.silent, invert=True)[:, None]
    assert (watching.seen == expected).all()  # every number, once, at its place, in every model


@pytest.mark.parametrize("name", USES)
def test_noise_of_that_size_would_be_missed(name: str) -> None:
    """Without its noise, each kernel gives another result in every model; otherwise the test above would have
    no power."""
    use = USES[name]
    difference = np.abs(after(use) - after(use, np.full(len(GRID), np.inf)))
    assert (difference.max(axis=(0, 1)) > 1e-3).all()


@pytest.mark.parametrize("name", USES)
def test_what_a_witness_returns_is_what_is_published(name: str) -> None:
    use = USES[name]
    silenced, without_noise = after(use, witness=Silencing()), after(use, np.full(len(GRID), np.inf))
    assert silenced == pytest.approx(without_noise, abs=2e-5)


@pytest.mark.parametrize("name", USES)
def test_a_kernel_takes_noise_from_a_release_alone(name: str) -> None:
    with pytest.raises(TypeError, match="inside"):
        USES[name].kernel(start())


def test_a_kernel_without_a_twin_gets_no_noise() -> None:
    curator = Curator(Ledger(GRID), Streams(1, "data", "test", 0, 0))
    with pytest.raises(TypeError, match="no plain twin"):
        errors(curator).inside(lambda *_: None, start())  # type: ignore[arg-type]
