"""Predictions from similarities against NumPy in float64, lane by lane.

Steps on similarities: the derivative of the squared error, and steps to compare with their Python reference. No rating
contributes more to a step than its limit, and equal parts of a gradient attain it.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.typing import NDArray

from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.releasing import GUARD
from dpmf_cli.kernels.similarities import (
    LearnedRatings,
    SimilarityLanes,
    SimilarityStep,
    descend_noisy_similarities,
    descend_similarities,
    neighbourhood_model,
)
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.release import Recorder
from dpmf_cli.privacy.sensitivity import Sensitivity
from tests.conftest import make_ratings

RATINGS = make_ratings(2, n_users=15, n_items=10, density=0.5)
ITEMS, K, LANES = 10, 6, 3

Array = NDArray[Any]


def one_group(neighbours: Array, values: Array | float, averages: Array) -> SimilarityLanes:
    """The models of a grid that fills one group of lanes; averages (n_items, lanes)."""
    (group,) = neighbourhood_model(RATINGS, neighbours, values, averages).groups
    return group


def some_neighbours(seed: int = 0) -> Array:
    """(10, 6) neighbours in any order, sometimes including the item itself; the last places of some rows are
    fillers."""
    rng = np.random.default_rng(seed)
    rows = np.array([rng.permutation(ITEMS)[:K] for _ in range(ITEMS)], np.int32)
    rows[3, 4:], rows[7, 1:], rows[8, :] = -1, -1, -1
    return rows


def some_models(lanes: int = LANES, seed: int = 0) -> SimilarityLanes:
    """Each model's own similarities, some negative and some 0, and its own averages."""
    rng = np.random.default_rng(seed)
    models = one_group(some_neighbours(), 1.0, rng.uniform(2, 4.5, (ITEMS, lanes)))
    values = rng.normal(0.4, 0.7, (ITEMS, K, lanes))
    values[rng.random(values.shape) < 0.1] = 0
    models.rows()[:] = values
    return models


def similarities(models: SimilarityLanes, lane: int) -> Array:
    """(n_items, k) float64"""
    return models.rows()[:, :, lane].astype(np.float64)


def averages_of(models: SimilarityLanes, lane: int) -> Array:
    return models.item_averages()[:, lane].astype(np.float64)


def sign(values: Array) -> Array:
    return np.where(values < 0, -1.0, 1.0)


def known(train: Ratings, row: Array, user: int, item: int) -> tuple[Array, Array]:
    """(places in the row, ratings) of the neighbours that a user rated, without the item itself."""
    rated = dict(
        zip(train.items[train.users == user].tolist(), train.values[train.users == user], strict=True)
    )
    places = [a for a, j in enumerate(row.tolist()) if j in rated and j != item]
    return np.array(places, int), np.array([rated[row[a]] for a in places], float)


def predicted(train: Ratings, neighbours: Array, s: Array, averages: Array, user: int, item: int) -> float:
    places, ratings = known(train, neighbours[item], user, item)
    norm = np.abs(s[item, places]).sum()
    own = ratings - averages[neighbours[item, places]]
    return float(averages[item] + (s[item, places] @ own / norm if norm > 0 else 0.0))


@pytest.mark.parametrize("lanes", [LANES, 11])
def test_predictions_are_those_of_numpy(lanes: int) -> None:
    models = some_models(lanes)
    models.values.reshape(ITEMS, K, -1)[2] = 0
    pairs = np.random.default_rng(1).permutation(15 * ITEMS)
    users, items = (part.astype(np.int32) for part in np.divmod(pairs, ITEMS))
    found = models.predict(RATINGS, users, items)
    assert found.shape == (150, lanes)
    for lane in (0, lanes - 1):
        s, averages = similarities(models, lane), averages_of(models, lane)
        wanted = [
            predicted(RATINGS, models.neighbours, s, averages, u, i)
            for u, i in zip(users, items, strict=True)
        ]
        assert found[:, lane] == pytest.approx(wanted, abs=1e-5)
        alone = np.isin(items, (2, 8))  # similarities that are all 0, and no neighbours at all
        assert np.array_equal(found[alone, lane], averages[items[alone]].astype(np.float32))


N = len(RATINGS)


SOME, FEW = np.random.default_rng(1).random(N) < 0.4, np.arange(N) % 6 == 0
FREE = LearnedRatings.of(RATINGS)
IN_L2, IN_L1 = (LearnedRatings.of(RATINGS, np.linspace(0.005, 0.6, 15), norm) for norm in (2, 1))
STEPS: dict[str, tuple[LearnedRatings, bool, dict[str, Any]]] = {
    "of all": (FREE, True, {}),
    "noise on what a sample touches": (FREE, False, {"sampled": FEW}),
    "a sample": (FREE, True, {"sampled": SOME}),
    "limits of L2": (IN_L2, True, {}),
    "limits of L1": (IN_L1, True, {}),
    "a floor": (FREE, True, {"floor": 2.5}),
    "bounded errors": (FREE, True, {"error_bound": 0.4}),
    "regularization": (FREE, True, {"regularization": 0.3}),
    "all of it": (IN_L1, False, {"sampled": SOME, "floor": 2.5, "error_bound": 0.4, "regularization": 0.3}),
}
"""What is learned from, whether all similarities get noise, and the arguments of `SimilarityStep`."""


@pytest.mark.parametrize("regularization", [0.0, 0.3])
def test_the_gradient_is_the_derivative_of_the_squared_error(regularization: float) -> None:
    """Central differences of ½Σe² + λ/2·Σs², in float64; similarities near 0, where |s| bends, are left out."""
    models = some_models(1)
    s, averages, neighbours = similarities(models, 0), averages_of(models, 0), models.neighbours
    sampled = np.random.default_rng(3).random(N) < 0.6
    descend_similarities(models, FREE, SimilarityStep(sampled, np.ones(1), regularization))
    slope = s - similarities(models, 0)

    def loss(at: Array) -> float:
        errors = [
            predicted(RATINGS, neighbours, at, averages, RATINGS.users[x], RATINGS.items[x])
            - float(RATINGS.values[x])
            for x in np.flatnonzero(sampled)
        ]
        return 0.5 * float(np.sum(np.square(errors))) + 0.5 * regularization * float(np.sum(at**2))

    cells = [
        (i, a) for i, a in np.argwhere(neighbours >= 0) if abs(s[i, a]) > 1e-3 and neighbours[i, a] != i
    ][::2]
    assert len(cells) > 15
    for i, a in cells:
        up, down = s.copy(), s.copy()
        up[i, a] += 1e-5
        down[i, a] -= 1e-5
        assert slope[i, a] == pytest.approx((loss(up) - loss(down)) / 2e-5, abs=3e-6, rel=1e-5)


def one_step(
    learned: LearnedRatings, everywhere: bool, given: dict[str, Any], epsilons: Array, seen: Recorder | None
) -> Array:
    """(n_items, k, E) the similarities after a step whose noise comes from a mechanism."""
    rng, grid = np.random.default_rng(4), len(epsilons)
    common = np.where(rng.random((ITEMS, K)) < 0.2, 0, rng.normal(0.4, 0.7, (ITEMS, K)))
    averages = rng.uniform(2, 4.5, (ITEMS, 32))[:, :grid]
    model = neighbourhood_model(RATINGS, some_neighbours(), common.astype(np.float32), averages)
    curator = Curator(Ledger(epsilons), Streams(0, "data", "test", 0, 0), seen)
    moves = Sensitivity(1.0, 1, Neighbours.USER, "test")
    release = laplace("gradients", (ITEMS * K,), sensitivity=moves, epsilon=epsilons, curator=curator)
    given = {"sampled": np.ones(N, np.bool_), "everywhere": everywhere, **given}
    step = SimilarityStep(**given, rates=np.linspace(0.1, 0.3, grid))
    release.inside(descend_noisy_similarities, model, learned, step)
    return model.published["similarities"]


def as_it_is(clean: Array, first: int = 0, /) -> Array:
    """Publishes without noise."""
    return clean


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("size", [1e-3, 1e38])
def test_the_reference_leaves_out_what_is_not_finite_as_the_kernel_does(size: float, norm: int) -> None:
    """Similarities near the largest float32 overflow: their user adds nothing."""
    learned = LearnedRatings.of(RATINGS, np.full(15, 0.1), norm)
    step = SimilarityStep(np.ones(N, np.bool_), np.array([0.3, 0.2, 0.1]) * size)
    compiled, plain = (one_group(some_neighbours(), size, np.full((ITEMS, LANES), 3.0)) for _ in range(2))
    descend_similarities(compiled, learned, step)
    descend_noisy_similarities.reference(plain, as_it_is, learned, step)
    assert np.isfinite(compiled.rows()).all()
    assert plain.rows() / size == pytest.approx(compiled.rows() / size, abs=1e-6)


GREAT = 2.0**60
"""A rate that is so large that s − rate·g equals −rate·g in all digits."""


def gradient_of_one_rating(
    own: Array, error: float, s: Array, limit: float, norm: int, averages: float
) -> Array:
    """(m,) what the kernel adds for a rating whose user rated m neighbours by `own` above their averages."""
    m = len(own)
    values = np.append(np.float32(averages) + own, 0).astype(np.float32)
    train = Ratings(
        np.zeros(m + 1, np.int32), np.arange(m + 1, dtype=np.int32), values, 1, m + 1, Scale(-20, 20)
    )
    neighbours = np.full((m + 1, m), -1, np.int32)
    neighbours[m] = np.arange(m)
    models = one_group(neighbours, np.tile(s, (m + 1, 1)), np.full((m + 1, 1), averages))
    # Whatever is predicted, the rating differs from it by this much.
    values[m] = models.predict(train, np.zeros(1, np.int32), np.array([m], np.int32))[0, 0] - error
    learned = LearnedRatings.of(train, np.array([limit]), norm)
    before = similarities(models, 0)
    descend_similarities(models, learned, SimilarityStep(np.ones(m + 1, np.bool_), np.array([GREAT])))
    return np.asarray((before - similarities(models, 0))[m] / GREAT)


@pytest.mark.parametrize("norm", [1, 2])
@given(
    base=st.floats(-4, 4),
    spread=st.sampled_from([0.0, 1e-6, 1e-4, 1e-2, 1.0]),
    m=st.integers(1, 400),
    error=st.floats(-8, 8),
    strength=st.sampled_from([1e-3, 1.0, 1e3]),
    limit=st.floats(-6, 1).map(lambda power: 10**power),
    signed=st.booleans(),
    averages=st.sampled_from([0.0, 3.3]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=150, deadline=None)
def test_no_rating_contributes_more_than_its_limit(
    norm: int,
    base: float,
    spread: float,
    m: int,
    error: float,
    strength: float,
    limit: float,
    signed: bool,
    averages: float,
    seed: int,
) -> None:
    """Also where the neighbours' ratings are nearly equal, and ‖g‖² is the small difference of large sums."""
    rng = np.random.default_rng(seed)
    own = np.clip(base + spread * rng.normal(size=m), -4, 4)
    s = strength * np.where(signed & (rng.random(m) < 0.5), -1.0, 1.0)
    g = gradient_of_one_rating(own, error, s.astype(np.float32), limit, norm, averages)
    assert np.linalg.norm(g, norm) <= np.float64(np.float32(limit)) * (1 + 2e-7)


@pytest.mark.parametrize("norm", [1, 2])
def test_equal_parts_of_a_gradient_attain_the_limit(norm: int) -> None:
    own = np.array([2.0, -2.0, 2.0, -2.0])
    free = gradient_of_one_rating(own, 1.0, np.ones(4, np.float32), np.inf, norm, 0.0)
    assert free == pytest.approx(own / 4)
    clipped = gradient_of_one_rating(own, 1.0, np.ones(4, np.float32), 0.1, norm, 0.0)
    assert np.linalg.norm(clipped, norm) == pytest.approx(GUARD * 0.1, rel=1e-5)
    assert np.sign(clipped).tolist() == [1, -1, 1, -1]
