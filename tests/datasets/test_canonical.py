"""Laws of the canonical form, over generated ratings."""

import random
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpmf_cli.datasets.canonical import Duplicates, canonicalise, checksum
from dpmf_cli.datasets.formats.source import Raw
from dpmf_cli.errors import DpmfError
from dpmf_cli.ratings import Scale

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


@settings(deadline=None)  # parses eight times, for which a busy machine needs more than the default of 200 ms
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


@pytest.mark.parametrize("rows", [[(1, 2, 1), (1, 1, 2)], [(2, 1, 1), (1, 2, 2)], [(1, 1, 1), (1, 2, 2)]])
def test_order_of_two(rows: list[tuple[int, int, int]]) -> None:
    found = canonicalise(raw(rows), STARS)
    back = zip(found.user_ids[found.ratings.users], found.item_ids[found.ratings.items], strict=True)
    assert [tuple(map(int, pair)) for pair in back] == sorted((user, item) for user, item, _ in rows)


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
        (float("nan"), "row 1: the rating is nan, not a finite number"),
        (float("inf"), "row 1: the rating is inf, not a finite number"),
        (-float("inf"), "row 1: the rating is -inf, not a finite number"),
        (0.999, "row 1: the rating 0.999 is off the scale from 1 to 5"),
        (5.001, "row 1: the rating 5.001 is off the scale from 1 to 5"),
        (2.5, "row 1: the rating 2.5 is not one of 1, 2, … 5"),
    ],
)
def test_values_off_the_scale(value: float, message: str) -> None:
    with pytest.raises(DpmfError, match=message):
        canonicalise(raw([(1, 1, 1.0), (1, 2, value)]), STARS)


def test_no_ratings() -> None:
    none = Raw(np.empty(0, int), np.empty(0, int), np.empty(0), lambda _: "a.csv", "mend it")
    with pytest.raises(DpmfError, match=r"a.csv: no ratings in it; mend it"):
        canonicalise(none, STARS)


@pytest.mark.parametrize("step", [0.1, 0.5, 0.01])
def test_fine_grids_survive_float32(step: float) -> None:
    values = 0.5 + step * np.arange(round(4.5 / step) + 1)
    rows = [(1, i, float(np.float32(value))) for i, value in enumerate(values)]
    assert len(canonicalise(raw(rows), Scale(0.5, 5, step)).ratings) == len(values)
