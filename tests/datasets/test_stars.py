"""The law of invariance: ratings r and a·r + b, each with its scale, get the same answers from every method."""

from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.algorithms.registry import BASELINES
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.audit.entries import SMALL, registered
from dpmf_cli.datasets import DataIdentity
from dpmf_cli.datasets.stars import Stars
from dpmf_cli.evaluation.top_items import TopItems
from dpmf_cli.ratings import Ratings, Scale
from dpmf_cli.results.task import Cut, Task
from dpmf_cli.running.batches import execute

GRID = (0.5, 5.0)
SPECIFICATION = SMALL["personalized"]
SMALL_BASELINES = {
    "pmf": {"epochs": 3},
    "sampled": {**SPECIFICATION, "base": {"algorithm": "pmf", "epochs": 3}},
}
ENTRIES: list[Algorithm] = [
    *(each(algorithm=key, **SMALL_BASELINES.get(key, {})) for key, each in BASELINES.items()),
    *registered(),
]


def rated(scale: Scale, steps: int) -> Ratings:
    """Ratings of 60 users, on that many steps of the scale. They are at the same steps on every scale."""
    rng = np.random.default_rng(17)
    cells = rng.random((60, 40)) < 0.4
    users, items = np.nonzero(cells)
    tastes = rng.normal(0.5, 0.2, 40)[items] + rng.normal(0, 0.2, 60)[users] + rng.normal(0, 0.2, len(users))
    of_steps = np.rint(np.clip(tastes, 0, 1) * steps)
    values = scale.minimum + scale.width * of_steps / steps
    epsilon = rng.choice([0.5, 1.0, 2.0], len(users))
    columns = {"epsilon": epsilon, "timestamp": np.arange(len(users))}
    return Ratings(
        users.astype(np.int32),
        items.astype(np.int32),
        values.astype(np.float32),
        60,
        40,
        scale,
        columns,
    )


def errors(entry: Algorithm, ratings: Ratings, *, to_stars: bool = True) -> np.ndarray:
    """The errors in widths of the scale, and the results without a unit."""
    held_out = np.random.default_rng(3).random(len(ratings)) < 0.2
    data = DataIdentity("shop", "", "c", to_stars=to_stars)
    width, grid = ratings.scale.width, GRID if entry.private else (np.inf,)
    asked = TopItems(threshold=ratings.scale.minimum + width * 5 / 7, ndcg=5, recall=5)
    task = Task(data, 1, Cut(5, 0), 0, entry, grid, (0.25 * width,), ranking=asked)
    (result,) = execute([task], ratings.select(~held_out), ratings.select(held_out))
    tables = (part for table in (result.error_cdf, result.ranking) for row in table for part in row)
    return np.array([*(error / width for error in result.rmse), *tables, *result.provable])


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_method_answers_alike_on_every_scale_of_as_many_steps(entry: Algorithm) -> None:
    """Half stars from 0.5 to 4 are the same ratings as 10 to 80, and as −0.7 to 0."""
    scales = Scale(0.5, 4.0, 0.5), Scale(10, 80, 10), Scale(-0.7, 0.0, 0.1)
    first, *others = (errors(entry, rated(scale, 7)) for scale in scales)
    assert np.isfinite(first[: len(GRID) if entry.private else 1]).all()
    for other in others:
        assert other == pytest.approx(first, rel=1e-12, nan_ok=True)


def test_whole_stars_from_1_to_5_are_left_as_they_are() -> None:
    ratings = rated(Scale(1, 5, 1), 4)
    stars = Stars(ratings.scale)
    assert stars.unit == 1
    assert stars.of(ratings).values.tobytes() == ratings.values.tobytes()
    assert stars.of(ratings).scale == ratings.scale


@pytest.mark.parametrize("scale", [Scale(-10, 10), Scale(0, 1), Scale(1e6, 1e6 + 64)])
def test_a_continuous_scale_becomes_stars_but_for_rounding(scale: Scale) -> None:
    ratings = rated(scale, 1 << 16)
    stars = Stars(scale).of(ratings)
    assert stars.values.dtype == np.float32
    assert (stars.scale.minimum, stars.scale.maximum) == (1, 5)
    assert stars.values.min() >= 1
    assert stars.values.max() <= 5
    assert Stars(scale).back(stars.values) == pytest.approx(ratings.values, abs=1e-6 * scale.width)


def test_the_ends_of_the_scale_are_one_and_five() -> None:
    for scale in (Scale(0.1, 0.7, 0.1), Scale(-10, 10), Scale(3, 17, 2)):
        ends = replace(
            rated(scale, 7).select(np.arange(len(rated(scale, 7))) < 2),
            values=np.array([scale.minimum, scale.maximum], np.float32),
        )
        assert Stars(scale).of(ends).values.tolist() == [1, 5]


def test_an_average_of_duplicates_between_two_steps_stays_between_them() -> None:
    scale = Scale(0, 10, 1)
    one = rated(scale, 10).select(np.arange(len(rated(scale, 10))) < 1)
    assert Stars(scale).of(replace(one, values=np.array([2.5], np.float32))).values.tolist() == [2]


def test_no_star_is_off_its_scale_where_float32_takes_a_rating_over_the_end() -> None:
    scale = Scale(1000.1, 1000.2)
    values = np.array([1000.1, 1000.2], np.float32)
    assert float(values[0]) < scale.minimum
    pair = np.array([0, 1], np.int32)
    stars = Stars(scale).of(Ratings(pair, pair, values, 2, 2, scale)).values
    assert stars.min() >= 1
    assert stars.max() <= 5
