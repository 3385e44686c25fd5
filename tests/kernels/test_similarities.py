"""Predictions from similarities and steps of their descent against NumPy in float64, lane by lane."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.kernels.covariance import Raters
from dpmf_cli.kernels.similarities import (
    GUARD,
    SimilarityLanes,
    Visits,
    descend_similarities,
    similarity_lanes,
)
from dpmf_cli.ratings import Ratings
from tests.conftest import make_ratings

RATINGS = make_ratings(2, n_users=15, n_items=10, density=0.5)
N, ITEMS, K, LANES = len(RATINGS), 10, 6, 3

Array = NDArray[Any]


@dataclass
class Step:
    """What a step is made of, but for the models."""

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


def some_neighbours(seed: int = 0) -> Array:
    """(10, 6) in any order, the item itself now and then among them, the last places of some rows filled up."""
    rng = np.random.default_rng(seed)
    rows = np.array([rng.permutation(ITEMS)[:K] for _ in range(ITEMS)], np.int32)
    rows[3, 4:], rows[7, 1:], rows[8, :] = -1, -1, -1
    return rows


def some_models(lanes: int = LANES, seed: int = 0) -> SimilarityLanes:
    """Similarities of each model's own, some negative and some 0, and averages of its own."""
    rng = np.random.default_rng(seed)
    models = similarity_lanes(some_neighbours(), 1.0, rng.uniform(2, 4.5, (ITEMS, lanes)))
    values = rng.normal(0.4, 0.7, (ITEMS, K, lanes))
    values[rng.random(values.shape) < 0.1] = 0
    models.values.reshape(ITEMS, K, -1)[..., :lanes] = values
    return models


def similarities(models: SimilarityLanes, lane: int) -> Array:
    """(n_items, k) float64"""
    n_items, k = models.neighbours.shape
    return models.values.reshape(n_items, k, -1)[:, :, lane].astype(np.float64)


def averages_of(models: SimilarityLanes, lane: int) -> Array:
    return models.averages.reshape(len(models.neighbours), -1)[:, lane].astype(np.float64)


def sign(values: Array) -> Array:
    return np.where(values < 0, -1.0, 1.0)


def known(train: Ratings, row: Array, user: int, item: int) -> tuple[Array, Array]:
    """(places in the row, ratings) of the neighbours that a user rated, the item itself left out."""
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


def stepped(train: Ratings, models: SimilarityLanes, lane: int, step: Step, unit: Array) -> Array:
    """(n_items, k) what the docstring of `descend_similarities` says."""
    s, averages, neighbours = similarities(models, lane), averages_of(models, lane), models.neighbours
    bound, floor = step.more.get("error_bound", np.inf), step.more.get("floor", 0.0)
    total, met = np.zeros_like(s), np.full(s.shape, step.more.get("everywhere", True))
    for x in np.flatnonzero(step.sampled):
        user, item = train.users[x], train.items[x]
        places, ratings = known(train, neighbours[item], user, item)
        if max(np.abs(s[item, places]).sum(), floor) == 0:
            continue
        row, own = s[item, places], ratings - averages[neighbours[item, places]]
        offset = predicted(train, neighbours, s, averages, user, item) - averages[item]
        error = np.clip(averages[item] + offset - train.values[x], -bound, bound)
        g = error * (own - offset * sign(row)) / max(np.abs(row).sum(), floor)
        length = np.linalg.norm(g) * (np.sqrt(len(g)) if step.norm == 1 else 1)
        total[item, places] += g * min(1.0, GUARD * step.limits[user] / max(length, 1e-30))
        met[item, places] = True
    slope = total + np.where(met, unit * step.scale[lane], 0) + step.more.get("regularization", 0.0) * s
    return np.asarray(s - RATES[lane] * slope)


def descend(models: SimilarityLanes, step: Step, unit: Array, rates: Array = RATES) -> None:
    visits = Visits(RATINGS, Raters.of(RATINGS), step.limits, step.norm)
    descend_similarities(models, visits, step.sampled, unit, step.scale, rates, **step.more)


def unit_noise(seed: int = 0) -> Array:
    return np.random.default_rng(seed).normal(size=(ITEMS, K)).astype(np.float32)


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_that_of_numpy_in_every_lane(name: str) -> None:
    step, unit, models = STEPS[name], unit_noise(), some_models()
    wanted = [stepped(RATINGS, models, lane, step, unit) for lane in range(LANES)]
    there = models.neighbours >= 0
    descend(models, step, unit)
    for lane in range(LANES):
        assert similarities(models, lane)[there] == pytest.approx(wanted[lane][there], abs=2e-6)


@pytest.mark.parametrize("name", [name for name in STEPS if name not in ("plain", "all of it")])
def test_everything_that_steps_are_made_of_changes_them(name: str) -> None:
    """The test above would not miss it: each option moves some similarity by hundreds of its tolerances."""
    step, unit, plain, other = STEPS[name], unit_noise(), some_models(), some_models()
    descend(plain, STEPS["noise" if step.scale.any() and name != "noise" else "plain"], unit)
    descend(other, step, unit)
    assert max(np.abs(similarities(plain, e) - similarities(other, e)).max() for e in range(LANES)) > 0.01


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


def test_nobody_predicts_a_rating_from_itself() -> None:
    everything = np.tile(np.arange(ITEMS, dtype=np.int32), (ITEMS, 1))
    models = similarity_lanes(everything, 1.0, np.full((ITEMS, 1), 3.0))
    user = int(np.argmax(RATINGS.user_counts))
    item = int(RATINGS.items[RATINGS.users == user][0])
    at = np.flatnonzero((RATINGS.users == user) & (RATINGS.items == item))[0]
    changed = RATINGS.values.copy()
    changed[at] = 6 - changed[at] if changed[at] != 3 else 5
    ask = np.array([user], np.int32), np.array([item], np.int32)
    other = models.predict(replace(RATINGS, values=changed), *ask)
    assert np.array_equal(models.predict(RATINGS, *ask), other)


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


def test_a_lane_is_the_model_alone_to_the_bit() -> None:
    """Twelve models in vectors of sixteen lanes, and three of them in vectors of eight by themselves."""
    unit, step, together = unit_noise(), STEPS["all of it"], some_models(12)
    scale, rates = np.linspace(0, 0.5, 12), np.linspace(0.1, 0.4, 12)
    alone = []
    for lane in (0, 5, 11):
        start = similarities(together, lane).astype(np.float32)
        one = similarity_lanes(together.neighbours, start, averages_of(together, lane)[:, None])
        descend(one, replace(step, scale=scale[[lane]]), unit, rates[[lane]])
        alone.append(one)
    descend(together, replace(step, scale=scale), unit, rates)
    for lane, one in zip((0, 5, 11), alone, strict=True):
        assert np.array_equal(similarities(one, 0), similarities(together, lane))


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
