"""Plain twins of the kernels that add noise: they compute the same, and a witness sees what they measure.

Compiled kernels round released numbers to the grid, and measure the same as their plain twins.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from dpmf_cli.core.compiled.lane_groups import MAXIMUM_WIDTH
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels import frank_wolfe as grams
from dpmf_cli.kernels.als import RowProblem, by_item, by_user, perturb_solved, solve_perturbed
from dpmf_cli.kernels.clipped_gradients import BatchStep, step_batch
from dpmf_cli.kernels.covariance import AT_ONCE, Products, Raters, release_products, triangle_size
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.frank_wolfe import released_grams
from dpmf_cli.kernels.gradients import Descent, sample_bits, step_noisy, sum_gradients, visits_of_all
from dpmf_cli.kernels.releasing import perturb_side
from dpmf_cli.kernels.sgd import Sgd, Visits, descend_noisy_errors, descend_perturbed
from dpmf_cli.kernels.similarities import neighbourhood_model
from dpmf_cli.kernels.similarity_descent import LearnedRatings, SimilarityStep, descend_noisy_similarities
from dpmf_cli.kernels.survivors import descend_survivors
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import keyed_laplace, laplace, repeated_k_norm
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.release import NoisyKernel, Numbers, Release, Witness
from dpmf_cli.privacy.sensitivity import Sensitivity
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
    "perturb_side, users": Use(
        perturb_side, k_norm(USERS), USERS, lambda r, k, m: r.inside(k, m, "users", 0.4)
    ),
    "perturb_side, items": Use(
        perturb_side, k_norm(ITEMS), ITEMS, lambda r, k, m: r.inside(k, m, "items", 0.4)
    ),
    "step_batch": Use(
        step_batch,
        k_norm(USERS + ITEMS),
        USERS + ITEMS,
        lambda r, k, m: r.inside(k, m, RATINGS, BatchStep(0.1, 0.05, 0.8, 0.3, 0.4, 0.5)),
    ),
    "perturb_solved, users": Use(
        perturb_solved,
        k_norm(USERS),
        USERS,
        lambda r, k, m: r.inside(k, m, by_user(RATINGS), FREE, rows_of(USERS), 0.4),
        (4,),
    ),
    "perturb_solved, items": Use(
        perturb_solved,
        k_norm(ITEMS),
        ITEMS,
        lambda r, k, m: r.inside(k, m, by_item(RATINGS), FREE, rows_of(ITEMS), 0.4),
        (2,),
    ),
    "perturb_solved, users, within a ball": Use(
        perturb_solved,
        k_norm(USERS),
        USERS,
        lambda r, k, m: r.inside(k, m, by_user(RATINGS), WITHIN, np.full(USERS, 0.1), 0.4),
    ),
    "solve_perturbed, users": Use(
        solve_perturbed,
        k_norm(USERS),
        USERS,
        lambda r, k, m: r.inside(k, m, by_user(RATINGS), FREE, 0.4),
        (4,),
    ),
    "solve_perturbed, items": Use(
        solve_perturbed,
        k_norm(ITEMS),
        ITEMS,
        lambda r, k, m: r.inside(k, m, by_item(RATINGS), FREE, 0.5),
        (2,),
    ),
    "solve_perturbed, users, within a ball": Use(
        solve_perturbed,
        k_norm(USERS),
        USERS,
        lambda r, k, m: r.inside(k, m, by_user(RATINGS), WITHIN, 0.3),
    ),
    "solve_perturbed, items, within a ball": Use(
        solve_perturbed,
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
            gradients.inside(step_noisy, descent, "users", np.full(len(epsilons), 0.05), 0.1)
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
        each = Products(part, RATINGS, raters, RATINGS.values, weights, *own, 0.9, released)
        release.inside(release_products, each)
        found.append(each.released)
    return np.concatenate(found).T


def of_twins(name: str) -> Callable[[np.ndarray, Witness | None], np.ndarray]:
    return lambda epsilons, witness: after(USES[name], epsilons, witness)


RUNS = {
    **{name: of_twins(name) for name in ("descend_perturbed", "descend_noisy_errors")},
    "step_noisy": stepped(0.0),
    "step_noisy, with momentum": stepped(0.8),
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
            Sgd(0.1, 0.05, 0.8, threshold=threshold),
        )
        found.append(model.groups[0].rows("users")[..., 0])
    one, other = found
    assert np.array_equal(one, other, equal_nan=True)
    untouched = np.array_equal(found[0], start(2).groups[0].rows("users")[..., 0])
    assert untouched == (threshold > 0.8)  # where no cell survives
