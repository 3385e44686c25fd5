"""Ranking of private recommenders by the ε that they need: only where ε protects the same, refused elsewhere."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.ranking import by_guarantee, ranked, standings
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee, Protection
from tests.evaluation.made_curves import baseline

GRID = np.array([0.1, 1.0, 10.0])
ZERO: dict[str, Any] = {"epsilons": np.array([1e-6, 0.5, 10.0])}
IA = 1.0


def curve(label: str, meets: float, *, provable: float = 1.0, **changes: Any) -> Measured:
    """A curve that falls by one for each factor of ten in ε and meets the item average at `meets`. Its provable
    ε is `provable` times each ε."""
    rmse = np.repeat(IA - np.log10(GRID / meets)[None, None, :], 2, axis=0)
    made = Measured(label, label, GRID, rmse, GRID, provable * GRID, "bounded", "published")
    return replace(made, **{"protects": Protection.VALUE, **changes})


def experiment(*curves: Measured, title: str = "MovieLens 100K") -> Experiment:
    return Experiment("made", "ml-100k", title, 2, 2, 1, 7, curves, (baseline(IA, folds=2),))


def test_the_best_error_at_a_modest_epsilon_is_one_that_can_be_proved_for_it() -> None:
    (sound,) = standings(experiment(curve("sound", 10.0)))
    (dear,) = standings(experiment(curve("dear", 10.0, provable=1.001)))
    (unproved,) = standings(experiment(curve("unproved", 10.0, provable=math.inf)))
    assert sound.best == pytest.approx(IA + 1)  # at ε = 1
    assert dear.best == pytest.approx(IA + 2)  # at ε = 0.1
    assert unproved.best is None


@pytest.mark.parametrize(
    "other",
    [
        *({"protects": kind} for kind in Protection if kind is not Protection.VALUE),
        {"joint": True},
        {"title": "MovieLens 1M"},
    ],
    ids=str,
)
def test_no_ranking_across_what_is_protected_from_whom_and_data_sets(other: dict[str, Any]) -> None:
    title = other.pop("title", "MovieLens 100K")
    mixed = [
        *standings(experiment(curve("a", 3.0))),
        *standings(experiment(curve("b", 2.0, **other), title=title)),
    ]
    with pytest.raises(ValueError, match="no ranking across data sets and guarantees"):
        ranked(mixed)
    groups = by_guarantee(mixed).values()
    assert {(row.rank, row.curve.label) for group in groups for row in ranked(group)} == {(1, "a"), (1, "b")}


def test_pure_rows_have_a_ranking_of_their_own() -> None:
    curves = (
        curve("a §", 2.0, delta=1e-6),
        curve("b", 3.0),
        curve("c §", 4.0, delta=1e-6),
        curve("d", 5.0),
        curve("e", 5.0),
        curve("never", 1e4),
        curve("unproved", 1.0, provable=math.inf),
    )
    rows = ranked(standings(experiment(*curves)))
    assert [(row.rank, row.pure, row.curve.label) for row in rows] == [
        (1, None, "a §"),
        (2, 1, "b"),
        (3, None, "c §"),
        (4, 2, "d"),
        (4, 2, "e"),
        (None, None, "never"),
        (None, None, "unproved"),
    ]


def test_groups_are_in_the_order_of_data_sets_and_of_kinds() -> None:
    first = experiment(
        *(curve(str(each), 2.0, protects=each.protects, joint=each.joint) for each in reversed(GUARANTEES)),
        title="MovieLens 1M",
    )
    groups = by_guarantee([*standings(first), *standings(experiment(curve("a", 2.0)))])
    expected = [("MovieLens 1M", each) for each in GUARANTEES]
    expected.append(("MovieLens 100K", Guarantee(Protection.VALUE)))
    assert list(groups) == expected


def test_a_curve_without_a_known_protection_is_refused() -> None:
    bare = Measured("a", "a", GRID, np.ones((2, 1, 3)), GRID, GRID, "bounded", "published")
    with pytest.raises(ValueError, match="not known what its ε protects"):
        standings(experiment(bare))


@pytest.mark.parametrize(
    ("curves", "expected"),
    [
        # By the ε that can be proved, not by the one that is claimed.
        ([curve("claims 2", 2.0, provable=2.0), curve("claims 3", 3.0)], [(1, "claims 3"), (2, "claims 2")]),
        # Equal ε share a rank, and the next one counts both.
        ([curve("c", 5.0), curve("a", 2.0), curve("b", 2.0)], [(1, "a"), (1, "b"), (3, "c")]),
        # What is not provable comes last, by what it claims.
        (
            [
                curve("claims 3", 3.0, provable=math.inf),
                curve("claims 0.2", 0.2, provable=math.inf),
                curve("never", 1e4),
                curve("proved at 9", 9.0),
            ],
            [(1, "proved at 9"), (None, "never"), (None, "claims 0.2"), (None, "claims 3")],
        ),
        # Below the grid it needs its smallest ε at most.
        (
            [curve("below", 0.01, provable=5.0), curve("at 0.4", 0.4), curve("at 0.6", 0.6)],
            [(1, "at 0.4"), (2, "below"), (3, "at 0.6")],
        ),
        # At ε → 0 it needs none, unless it spends more there; below the grid, the next ε.
        (
            [curve("none", 0.1, **ZERO), curve("0.6", 0.1, provable=6, **ZERO), curve("1", 0.4, **ZERO)],
            [(None, "none"), (1, "0.6"), (2, "1")],
        ),
        # Those that do not meet it are ordered by what they reach at a modest ε: of the first, that is ε = 0.1.
        ([curve("worse", 200.0, provable=5.0), curve("better", 300.0)], [(None, "better"), (None, "worse")]),
    ],
)
def test_rows_are_in_the_order_of_what_they_need(
    curves: list[Measured], expected: list[tuple[int | None, str]]
) -> None:
    for each in (curves, curves[::-1]) if len({label for _, label in expected}) == 2 else (curves,):
        assert [(row.rank, row.curve.label) for row in ranked(standings(experiment(*each)))] == expected
