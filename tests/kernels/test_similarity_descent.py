"""Steps on similarities: the derivative of the squared error, and what a step measures.

No rating contributes more to a step on similarities than its limit, and equal parts of a gradient attain it.
"""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.covariance import Raters
from dpmf_cli.kernels.releasing import GUARD
from dpmf_cli.kernels.similarities import SimilarityLanes, neighbourhood_model
from dpmf_cli.kernels.similarity_descent import (
    LearnedRatings,
    SimilarityStep,
    descend_noisy_similarities,
    descend_similarities,
)
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import LaneNoise
from dpmf_cli.privacy.release import Witness
from dpmf_cli.privacy.sensitivity import Sensitivity
from tests.kernels.test_similarities import (
    ITEMS,
    LANES,
    RATINGS,
    Array,
    K,
    averages_of,
    known,
    one_group,
    predicted,
    similarities,
    some_models,
    some_neighbours,
)
from tests.witnesses import Noting

N = len(RATINGS)


@dataclass
class Step:
    """The arguments of a step, except the models."""

    limits: Array = field(default_factory=lambda: np.full(15, np.inf, np.float32))
    norm: int = 2
    sampled: Array = field(default_factory=lambda: np.ones(N, np.bool_))
    scale: Array = field(default_factory=lambda: np.array([0.0, 0.02, 0.5]))
    more: dict[str, Any] = field(default_factory=dict)


STEPS = {
    "plain": Step(scale=np.zeros(3)),
    "noise": Step(),
    "noise on what the sample touches": Step(
        sampled=np.random.default_rng(1).random(N) < 0.2, more={"everywhere": False}
    ),
    "a sample": Step(sampled=np.random.default_rng(1).random(N) < 0.4),
    "limits of L2": Step(limits=np.linspace(0.005, 0.6, 15).astype(np.float32)),
    "limits of L1": Step(limits=np.linspace(0.005, 0.6, 15).astype(np.float32), norm=1),
    "a floor": Step(more={"floor": 2.5}),
    "bounded errors": Step(more={"error_bound": 0.4}),
    "regularization": Step(more={"regularization": 0.3}),
    "all of it": Step(
        limits=np.linspace(0.005, 0.6, 15).astype(np.float32),
        norm=1,
        sampled=np.random.default_rng(1).random(N) < 0.4,
        more={"floor": 2.5, "error_bound": 0.4, "regularization": 0.3, "everywhere": False},
    ),
}


RATES = np.array([0.3, 0.2, 0.1])


def arguments(step: Step, rates: Array = RATES) -> tuple[LearnedRatings, SimilarityStep, dict[str, bool]]:
    """The arguments of the kernels, except the models and their noise."""
    more = dict(step.more)
    where = {"everywhere": more.pop("everywhere")} if "everywhere" in more else {}
    learned = LearnedRatings(RATINGS, Raters.of(RATINGS), step.limits, step.norm)
    return learned, SimilarityStep(step.sampled, rates, **more), where


def descend(models: SimilarityLanes, step: Step, unit: Array, rates: Array = RATES) -> None:
    learned, of_similarities, where = arguments(step, rates)
    noise = LaneNoise(unit.ravel(), step.scale)
    descend_noisy_similarities.run(models, noise, learned, of_similarities, **where)


def unit_noise(seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(ITEMS, K))


@pytest.mark.parametrize("name", [name for name in STEPS if name not in ("plain", "all of it")])
def test_everything_that_steps_are_made_of_changes_them(name: str) -> None:
    """The test above has power: each option moves some similarity by hundreds of its tolerances."""
    step, unit, plain, other = STEPS[name], unit_noise(), some_models(), some_models()
    descend(plain, STEPS["noise" if step.scale.any() and name != "noise" else "plain"], unit)
    descend(other, step, unit)
    assert max(np.abs(similarities(plain, e) - similarities(other, e)).max() for e in range(LANES)) > 0.01


@pytest.mark.parametrize("regularization", [0.0, 0.3])
def test_the_gradient_is_the_derivative_of_the_squared_error(regularization: float) -> None:
    """Central differences of ½Σe² + λ/2·Σs², in float64; similarities near 0, where |s| bends, are left out."""
    models = some_models(1)
    s, averages, neighbours = similarities(models, 0), averages_of(models, 0), models.neighbours
    sampled = np.random.default_rng(3).random(N) < 0.6
    step = Step(sampled=sampled, scale=np.zeros(1), more={"regularization": regularization})
    descend(models, step, unit_noise(), np.ones(1))
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


def test_neither_the_order_of_neighbours_nor_that_of_questions_matters_to_a_bit() -> None:
    models, unit, step = some_models(), unit_noise(), STEPS["all of it"]
    order = np.array([np.random.default_rng(i).permutation(K) for i in range(ITEMS)])
    mixed = replace(
        models,
        neighbours=np.take_along_axis(models.neighbours, order, axis=1),
        values=np.take_along_axis(models.values.reshape(ITEMS, K, -1), order[:, :, None], axis=1).reshape(-1),
    )
    descend(models, step, unit)
    descend(mixed, step, np.take_along_axis(unit, order, axis=1))
    for lane in range(LANES):
        wanted = np.take_along_axis(similarities(models, lane), order, axis=1)
        there = mixed.neighbours >= 0
        assert np.array_equal(similarities(mixed, lane)[there], wanted[there])
    users, items = (part.astype(np.int32) for part in np.divmod(np.arange(150), ITEMS))
    asked = np.random.default_rng(0).permutation(150)
    found = models.predict(RATINGS, users, items)
    assert np.array_equal(mixed.predict(RATINGS, users[asked], items[asked]), found[asked])


def test_lanes_that_no_model_is_in_do_not_move() -> None:
    models = some_models(2)
    before = models.values.reshape(ITEMS, K, -1)[..., 2:].copy()
    step = Step(scale=np.ones(2))
    descend(models, step, unit_noise(), np.ones(2))
    assert np.array_equal(models.values.reshape(ITEMS, K, -1)[..., 2:], before)


@pytest.mark.parametrize("name", ["plain", "a sample", "limits of L1", "a floor"])
def test_a_step_without_noise_is_one_whose_noise_is_silent(name: str) -> None:
    step, one, other = replace(STEPS[name], scale=np.zeros(LANES)), some_models(), some_models()
    descend(one, step, unit_noise())
    learned, of_similarities, _ = arguments(step)
    descend_similarities(other, learned, of_similarities)
    assert one.values.tobytes() == other.values.tobytes()


GRID = np.geomspace(1, 50, 19)
"""A group of sixteen models, and one of three."""


def one_step(step: Step, epsilons: Array, witness: Witness | None) -> Array:
    """(n_items, k, E) the similarities after a step whose noise comes from a mechanism."""
    rng, grid = np.random.default_rng(4), len(epsilons)
    common = np.where(rng.random((ITEMS, K)) < 0.2, 0, rng.normal(0.4, 0.7, (ITEMS, K)))
    averages = rng.uniform(2, 4.5, (ITEMS, len(GRID)))[:, :grid]
    model = neighbourhood_model(RATINGS, some_neighbours(), common.astype(np.float32), averages)
    curator = Curator(Ledger(epsilons), Streams(0, "data", "test", 0, 0), witness)
    moves = Sensitivity(1.0, 1, Neighbours.USER, "test")
    release = laplace("gradients", (ITEMS * K,), sensitivity=moves, epsilon=epsilons, curator=curator)
    learned, of_similarities, where = arguments(step, np.linspace(0.1, 0.3, grid))
    release.inside(descend_noisy_similarities, model, learned, of_similarities, **where)
    return model.published["similarities"]


@pytest.mark.parametrize("name", STEPS)
def test_a_witness_sees_every_sum_that_gets_noise_once(name: str) -> None:
    step, seen = STEPS[name], Noting()
    one_step(step, GRID, seen)
    touched = np.zeros((ITEMS, K), bool)
    for x in np.flatnonzero(step.sampled):
        item = RATINGS.items[x]
        touched[item, known(RATINGS, some_neighbours()[item], RATINGS.users[x], item)[0]] = True
    everywhere = step.more.get("everywhere", True)
    measured = np.arange(ITEMS * K) if everywhere else np.flatnonzero(touched)
    assert len(measured) > 5
    assert everywhere == (len(measured) == ITEMS * K)
    for part in (0, 16):
        parts = {first: clean for (*_, first, lane), clean in seen.seen.items() if lane == part}
        assert [
            place for first in parts for place in range(first, first + len(parts[first]))
        ] == measured.tolist()


def as_it_is(clean: Array, first: int = 0, /) -> Array:
    """Publishes without noise."""
    return clean


@pytest.mark.parametrize("norm", [1, 2])
@pytest.mark.parametrize("size", [1e-3, 1e38])
def test_the_twin_leaves_out_what_is_not_finite_as_the_kernel_does(size: float, norm: int) -> None:
    """Similarities near the largest float32 overflow: their user adds nothing."""
    learned = LearnedRatings(RATINGS, Raters.of(RATINGS), np.full(15, 0.1, np.float32), norm)
    step = SimilarityStep(np.ones(N, np.bool_), RATES * size)
    compiled, plain = (one_group(some_neighbours(), size, np.full((ITEMS, LANES), 3.0)) for _ in range(2))
    descend_similarities(compiled, learned, step)
    descend_noisy_similarities.twin(plain, as_it_is, learned, step)
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
    learned = LearnedRatings(train, Raters.of(train), np.array([limit], np.float32), norm)
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
