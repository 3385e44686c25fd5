"""Laws of the canonical form over generated ratings, and of the map onto stars."""

import math
import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.audit.entries import registered
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.datasets import DataIdentity
from dpmf_cli.datasets.canonical import Duplicates, Raw, Stars, canonicalise, checksum
from dpmf_cli.evaluation.metrics import GROUPED, TopItems
from dpmf_cli.experiment.results.task import Cut, Task
from dpmf_cli.experiment.running.batches import execute
from tests.algorithms.fitted import of_small_rank

STARS = Scale(1, 5, 1)
IDS = st.one_of(st.integers(0, 9), st.integers(-(2**40), 2**40))
ROWS = st.dictionaries(st.tuples(IDS, IDS), st.integers(1, 5), min_size=1, max_size=40)


def raw(rows: Sequence[tuple[Any, Any, float]], **columns: list[float]) -> Raw:
    users, items, values = zip(*rows, strict=True)
    return Raw(
        np.array(users),
        np.array(items),
        np.array(values, dtype=np.float64),
        where=lambda row: f"row {row}",
        fix="mend it",
        columns={name: np.array(column) for name, column in columns.items()},
    )


@given(ROWS, st.randoms())
def test_sorted_dense_and_independent_of_row_order(
    rated: dict[tuple[int, int], int], shuffle: random.Random
) -> None:
    rows = [(user, item, value) for (user, item), value in rated.items()]
    found = canonicalise(raw(rows), STARS)
    ratings = found.ratings
    back = zip(found.user_ids[ratings.users], found.item_ids[ratings.items], ratings.values, strict=True)
    assert [tuple(map(int, row)) for row in back] == sorted(rows)
    assert found.user_ids.tolist() == sorted({user for user, _, _ in rows})
    assert found.item_ids.tolist() == sorted({item for _, item, _ in rows})
    shuffle.shuffle(rows)
    assert checksum(canonicalise(raw(rows), STARS).ratings) == checksum(ratings)


@given(ROWS)
def test_checksum_sees_every_part(rated: dict[tuple[int, int], int]) -> None:
    rows = [(user, item, value) for (user, item), value in rated.items()]
    n = len(rows)
    sums = [
        checksum(canonicalise(raw(rows), STARS).ratings),
        checksum(canonicalise(raw(rows), Scale(1, 6, 1)).ratings),
        checksum(canonicalise(raw([(u, i, v % 5 + 1) for u, i, v in rows]), STARS).ratings),
        checksum(canonicalise(raw(rows, timestamp=[0.0] * n), STARS).ratings),
        checksum(canonicalise(raw(rows, timestamp=[1.0] * n), STARS).ratings),
        checksum(canonicalise(raw(rows, epsilon=[1.0] * n), STARS).ratings),
        checksum(canonicalise(raw([*rows, (2**50, rows[0][1], 1)]), STARS).ratings),
        checksum(canonicalise(raw([*rows, (rows[0][0], 2**50, 1)]), STARS).ratings),
    ]
    assert len(set(sums)) == len(sums)


def test_text_ids_sort_as_text_unless_all_are_plain_numbers() -> None:
    def ids(labels: list[str]) -> list[Any]:
        n = len(labels)
        codes = np.arange(n)
        one = Raw(codes, codes, np.ones(n), lambda _: "", "", user_labels=labels, item_labels=labels)
        found = canonicalise(one, STARS)
        assert found.ratings.users.tolist() == found.ratings.items.tolist() == list(range(n))
        labelled: list[Any] = found.user_ids.tolist()
        return labelled

    assert ids(["10", "9", "-3"]) == [-3, 9, 10]
    assert ids(["10", "9", "a"]) == ["10", "9", "a"]
    assert ids(["007", "7"]) == ["007", "7"]
    assert ids(["é", "z", "Z"]) == ["Z", "z", "é"]
    with pytest.raises(DpmfError, match="has 201 characters"):
        ids(["x" * 201])


DUPLICATED = [(1, 1, 2.0), (2, 1, 5.0), (1, 1, 5.0), (1, 1, 4.0)]


def test_duplicates() -> None:
    def values(duplicates: Duplicates) -> Any:
        ratings = canonicalise(
            raw(DUPLICATED, timestamp=[9, 8, 7, 6], epsilon=[3.0, 1.0, 0.5, 2.0]),
            STARS,
            duplicates=duplicates,
        ).ratings
        return ratings.values.tolist(), {name: column.tolist() for name, column in ratings.columns.items()}

    assert values("last") == ([4, 5], {"timestamp": [6, 8], "epsilon": [2.0, 1.0]})
    mean, columns = values("mean")
    assert mean == pytest.approx([11 / 3, 5])
    assert columns == {"timestamp": [6, 8], "epsilon": [0.5, 1.0]}
    with pytest.raises(DpmfError, match="row 2: user 1 has rated item 1 before, at row 0; mend it"):
        values("error")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        *(
            (value, f"the rating is {value}, not a finite number")
            for value in (math.nan, math.inf, -math.inf)
        ),
        *((value, f"the rating {value} is off the scale from 1 to 5") for value in (0.999, 5.001)),
        (2.5, "the rating 2.5 is not one of 1, 2, … 5"),
    ],
)
def test_values_off_the_scale(value: float, message: str) -> None:
    with pytest.raises(DpmfError, match=f"row 1: {message}"):
        canonicalise(raw([(1, 1, 1.0), (1, 2, value)]), STARS)


@pytest.mark.parametrize("step", [0.1, 0.5, 0.01])
def test_fine_grids_survive_float32(step: float) -> None:
    values = 0.5 + step * np.arange(round(4.5 / step) + 1)
    rows = [(1, i, float(np.float32(value))) for i, value in enumerate(values)]
    assert len(canonicalise(raw(rows), Scale(0.5, 5, step)).ratings) == len(values)


GRID = (0.5, 5.0)
SPECIFICATION = dict(PRIVATE["personalized"].small)
SMALL_BASELINES = {
    "pmf": {"epochs": 3},
    "sampled": {**SPECIFICATION, "base": {"algorithm": "pmf", "epochs": 3}},
}
BASELINE_ENTRIES = (each(algorithm=key, **SMALL_BASELINES.get(key, {})) for key, each in BASELINES.items())
ENTRIES: list[Algorithm] = [of_small_rank(each) for each in (*BASELINE_ENTRIES, *registered())]


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
    pairs, halves = (users.astype(np.int32), items.astype(np.int32)), {"odd": np.arange(40) % 2.0}
    return Ratings(*pairs, values.astype(np.float32), 60, 40, scale, columns, halves)


def errors(entry: Algorithm, ratings: Ratings, *, to_stars: bool = True) -> np.ndarray:
    """The errors in widths of the scale, and the results without a unit."""
    held_out = np.random.default_rng(3).random(len(ratings)) < 0.2
    data = DataIdentity("shop", "", "c", to_stars=to_stars)
    width, grid = ratings.scale.width, GRID if entry.private else (np.inf,)
    asked = TopItems(threshold=ratings.scale.minimum + width * 5 / 7, ndcg=5, recall=5)
    task = Task(data, 1, Cut(5, 0), 0, entry, grid, (0.25 * width,), ranking=asked, groups=True)
    (result,) = execute([task], ratings.select(~held_out), ratings.select(held_out))
    tables = (part for table in (result.error_cdf, result.ranking) for row in table for part in row)
    *of_groups, gain = (result.others.get(metric.key, ()) for metric in GROUPED)
    in_widths = (error / width for each in (result.rmse, *of_groups) for error in each)
    return np.array([*in_widths, *gain, *tables, *result.provable])


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_method_answers_alike_on_every_scale_of_as_many_steps(entry: Algorithm) -> None:
    """Half stars from 0.5 to 4 are the same ratings as 10 to 80, and as −0.7 to 0."""
    scales = Scale(0.5, 4.0, 0.5), Scale(10, 80, 10), Scale(-0.7, 0.0, 0.1)
    first, *others = (errors(entry, rated(scale, 7)) for scale in scales)
    assert np.isfinite(first[: len(GRID) if entry.private else 1]).all()
    for other in others:
        assert other == pytest.approx(first, rel=1e-12, nan_ok=True)


def some(scale: Scale, *values: float) -> Ratings:
    at = np.arange(len(values), dtype=np.int32)
    return Ratings(at, at, np.array(values, np.float32), len(at), len(at), scale)


def test_whole_stars_from_1_to_5_are_left_as_they_are() -> None:
    ratings = rated(STARS, 4)
    assert Stars(STARS).unit == 1
    assert Stars(STARS).of(ratings).values.tobytes() == ratings.values.tobytes()
    assert Stars(STARS).of(ratings).scale == ratings.scale


@pytest.mark.parametrize("scale", [Scale(-10, 10), Scale(0, 1), Scale(1e6, 1e6 + 64)])
def test_a_continuous_scale_becomes_stars_but_for_rounding(scale: Scale) -> None:
    ratings = rated(scale, 1 << 16)
    stars = Stars(scale).of(ratings)
    assert stars.values.dtype == np.float32
    assert (stars.scale.minimum, stars.scale.maximum) == (1, 5)
    assert 1 <= stars.values.min() <= stars.values.max() <= 5
    assert Stars(scale).back(stars.values) == pytest.approx(ratings.values, abs=1e-6 * scale.width)


def test_the_ends_of_the_scale_are_one_and_five_and_all_between_stays_between() -> None:
    for scale in (Scale(0.1, 0.7, 0.1), Scale(-10, 10), Scale(3, 17, 2)):
        assert Stars(scale).of(some(scale, scale.minimum, scale.maximum)).values.tolist() == [1, 5]
    # An average of duplicates between two steps.
    assert Stars(Scale(0, 10, 1)).of(some(Scale(0, 10, 1), 2.5)).values.tolist() == [2]


def test_no_star_is_off_its_scale_where_float32_takes_a_rating_over_the_end() -> None:
    ratings = some(Scale(1000.1, 1000.2), 1000.1, 1000.2)
    assert float(ratings.values[0]) < 1000.1
    stars = Stars(ratings.scale).of(ratings).values
    assert 1 <= stars.min() <= stars.max() <= 5
