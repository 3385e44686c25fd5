"""Compiled kernels round released numbers to the grid, and measure the same as their plain twins."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from dpmf_cli.kernels import frank_wolfe as grams
from dpmf_cli.kernels.covariance import AT_ONCE, Products, Raters, release_products, triangle_size
from dpmf_cli.kernels.frank_wolfe import released_grams
from dpmf_cli.kernels.gradients import Descent, step_noisy_users, sum_gradients, visits_of_all
from dpmf_cli.kernels.similarities import neighbourhood_model
from dpmf_cli.kernels.similarity_descent import LearnedRatings, SimilarityStep, descend_noisy_similarities
from dpmf_cli.kernels.survivors import descend_survivors
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.release import Numbers, Release, Witness
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.streams import Streams
from tests.kernels.test_twins import FACTORS, GRID, ITEMS, RATINGS, USERS, USES, after, start

EPSILONS = [0.3, 4.0, 100.0]
K = 4


@dataclass(frozen=True)
class Passing(Witness):
    """A witness that publishes everything unchanged, except that a compiled kernel's sums end `offset` off the
    grid."""

    offset: float | None = None

    def published(
        self, release: Release, lanes: slice, first: int, clean: Numbers, noisy: np.ndarray
    ) -> np.ndarray:
        return noisy


def drawn(shape: tuple[int, ...], epsilons: np.ndarray, witness: Witness | None) -> Release:
    curator = Curator(Ledger(epsilons), Streams(1, "data", "test", 0, 0), witness)
    moves = Sensitivity(1.0, 1, Neighbours.BOUNDED, "test")
    return laplace("numbers", shape, sensitivity=moves, epsilon=epsilons, curator=curator)


def stepped(momentum: float) -> Callable[[np.ndarray, Witness | None], np.ndarray]:
    def step(epsilons: np.ndarray, witness: Witness | None) -> np.ndarray:
        model = start(len(epsilons))
        descent, visits = Descent(model, momentum), visits_of_all(RATINGS, len(epsilons))
        for _ in range(2):
            sum_gradients(descent, visits, 0, len(RATINGS))
            gradients = drawn((USERS, FACTORS), epsilons, witness)
            gradients.inside(step_noisy_users, descent, np.full(len(epsilons), 0.05), 0.1)
        return np.concatenate([group.rows("users") for group in model.groups], axis=2)

    return step


def similarities(everywhere: bool) -> Callable[[np.ndarray, Witness | None], np.ndarray]:
    def learn(epsilons: np.ndarray, witness: Witness | None) -> np.ndarray:
        rng, grid = np.random.default_rng(2), len(epsilons)
        neighbours = np.array([rng.permutation(ITEMS)[:K] for _ in range(ITEMS)], np.int32)
        own = rng.normal(0.4, 0.7, (ITEMS, K)).astype(np.float32)
        model = neighbourhood_model(RATINGS, neighbours, own, np.full((ITEMS, grid), 3.0))
        sampled = rng.random(len(RATINGS)) < 0.4
        learned, rates = LearnedRatings.unclipped(RATINGS), np.full(grid, 0.1)
        sums = drawn((ITEMS * K,), epsilons, witness)
        sums.inside(
            descend_noisy_similarities,
            model,
            learned,
            SimilarityStep(sampled, rates, 0.05),
            everywhere=everywhere,
        )
        return np.concatenate([group.rows() for group in model.groups], axis=2)

    return learn


def gram_matrices(epsilons: np.ndarray, witness: Witness | None) -> np.ndarray:
    """The residuals of the models of `start`; some users' rows are clipped."""
    release = drawn((triangle_size(ITEMS),), epsilons, witness)
    found = released_grams(start(len(epsilons)), RATINGS, Raters.of(RATINGS), release, 1.5)
    places, triangles = zip(*((place, gram.copy()) for place, gram in found), strict=True)
    assert places == tuple(range(len(epsilons)))
    return np.stack(triangles, axis=-1)


def products(epsilons: np.ndarray, witness: Witness | None) -> np.ndarray:
    """Two groups of models; the second group is not full."""
    rng, size = np.random.default_rng(3), triangle_size(ITEMS)
    items, users = (rng.normal(centre, 0.4, (n, len(GRID))) for centre, n in ((3.5, ITEMS), (0, USERS)))
    raters, weights = Raters.of(RATINGS), rng.random(USERS)
    release, found = drawn((size,), epsilons, witness), []
    for first in range(0, len(epsilons), AT_ONCE):
        part = slice(first, min(first + AT_ONCE, len(epsilons)))
        released = np.empty((part.stop - part.start, size), np.float32)
        own = items[:, part], users[:, part]
        each = Products(RATINGS, raters, RATINGS.values, weights, *own, 0.9, part, released)
        release.inside(release_products, each)
        found.append(each.released)
    return np.concatenate(found).T


def of_twins(name: str) -> Callable[[np.ndarray, Witness | None], np.ndarray]:
    return lambda epsilons, witness: after(USES[name], epsilons, witness)


RUNS = {
    **{name: of_twins(name) for name in ("descend_perturbed", "descend_noisy_errors")},
    "step_noisy_users": stepped(0.0),
    "step_noisy_users, with momentum": stepped(0.8),
    "descend_noisy_similarities": similarities(True),
    "descend_noisy_similarities, of a sample": similarities(False),
    "release_grams": gram_matrices,
    "release_products": products,
}
"""(epsilons, witness): the result of a kernel that adds noise to its measured numbers."""


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("name", RUNS)
def test_a_kernel_gives_the_same_wherever_in_its_cell_a_number_lies(name: str, epsilon: float) -> None:
    alone = np.array([epsilon])
    found = {offset: RUNS[name](alone, Passing(offset)) for offset in (0.25, -0.25)}
    assert found[0.25].tobytes() == found[-0.25].tobytes() == RUNS[name](alone, None).tobytes()


@pytest.mark.parametrize("name", RUNS)
def test_the_noise_of_that_test_is_what_a_kernel_adds(name: str) -> None:
    """The test above would have no power if the measured numbers did not affect the result."""
    some, others = (RUNS[name](np.array([epsilon]), None) for epsilon in (4.0, 4.1))
    assert np.abs(some - others).max() > 1e-4


@pytest.mark.parametrize("name", [*RUNS, "descend_survivors", "descend_survivors, of samples"])
def test_a_twin_gives_its_kernels_bytes(name: str) -> None:
    """For two groups of models. Keyed noise, which no witness can choose, is included: it is published on a grid."""
    run = RUNS.get(name) or of_twins(name)
    compiled, plain = run(GRID, None), run(GRID, Passing())
    assert plain.tobytes() == compiled.tobytes()


@pytest.mark.parametrize("at_once", [1, 3])
def test_gram_matrices_are_the_same_however_many_are_held_at_once(
    at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = gram_matrices(GRID, None)
    monkeypatch.setattr(grams, "MOST_HELD", at_once * 4 * triangle_size(ITEMS))
    assert grams.side_by_side(ITEMS) == at_once
    assert gram_matrices(GRID, None).tobytes() == whole.tobytes()


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("threshold", [0.4, 0.799, 0.801])
@pytest.mark.parametrize("epsilon", [0.05, 0.7, 3.0, 40.0])
def test_dropped_cells_leave_even_infinite_factors_alone(epsilon: float, threshold: float) -> None:
    """Rated or blank, in the kernel and in its twin: 0·∞ is no number, and would tell which cells were visited."""
    use, found = USES["descend_survivors"], []
    for witness in (None, Passing()):
        model = start(2)
        for group in model.groups:
            group.rows("items")[:] = np.inf
        curator = Curator(Ledger([epsilon, 1e-3]), Streams(1, "data", "test", 0, 0), witness)
        use.draw(curator).inside(
            descend_survivors,
            model,
            RATINGS,
            np.arange(ITEMS, dtype=np.int32),
            np.zeros(USERS, np.int64),
            learning_rate=0.1,
            regularization=0.05,
            bound=0.8,
            threshold=threshold,
            epochs=1,
        )
        found.append(model.groups[0].rows("users")[..., 0])
    one, other = found
    assert np.array_equal(one, other, equal_nan=True)
    untouched = np.array_equal(found[0], start(2).groups[0].rows("users")[..., 0])
    assert untouched == (threshold > 0.8)  # where no cell survives
