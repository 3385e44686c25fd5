"""The frontier: the leader at each ε, by provable ε, among all methods that keep a guarantee."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.ranking import Frontier, best_at, clean_level, frontiers, standings
from dpmf_cli.privacy.protection import Guarantee, Protection
from tests.evaluation.made_curves import baseline

GRID = np.array([0.1, 1.0, 10.0])
HARD = np.array([0.0, 0.2, -0.1, -0.1])
"""How much the folds' errors differ from their mean."""


def curve(
    label: str, *errors: float, provable: float = 1.0, by_fold: Any = (0, 0, 0, 0), **changes: Any
) -> Measured:
    """A curve with these mean errors over `GRID`. Its provable ε is `provable` times each ε."""
    rmse = np.array(errors) + (HARD + np.array(by_fold))[:, None, None]
    made = Measured(label, label, GRID, rmse, GRID, provable * GRID, "bounded", "corrected")
    return replace(made, **{"protects": Protection.VALUE, **changes})


def experiment(*curves: Measured, **changes: Any) -> Experiment:
    levels = tuple(
        baseline(level + HARD, key=key, folds=4) for key, level in {"ia": 1.0, "ge": 0.9, "als": 0.8}.items()
    )
    made = Experiment("made", "ml-100k", "MovieLens 100K", 4, 4, 1, 7, curves, levels)
    return replace(made, **changes)


def found(*curves: Measured) -> list[Frontier]:
    return frontiers(standings(experiment(*curves)))


def leading(frontier: Frontier) -> list[tuple[float, str, float]]:
    return [(lead.epsilon, lead.first.curve.label, round(lead.first.rmse, 6)) for lead in frontier.leads]


def test_pure_epsilon_stands_at_every_delta_and_a_delta_at_larger_ones_alone() -> None:
    pure = curve("pure", 1.0, 1.0, 1.0)
    small, large = (curve(f"{delta:g}", 0.9, 0.9, 0.9, delta=delta) for delta in (1e-9, 1e-6))
    groups = {
        each.guarantee.delta: {member.curve.label for member in each.members}
        for each in found(large, small, pure)
    }
    assert groups == {0.0: {"pure"}, 1e-9: {"pure", "1e-09"}, 1e-6: {"pure", "1e-09", "1e-06"}}
    assert list(groups) == [0.0, 1e-9, 1e-6]


def test_what_protects_towards_everybody_stands_under_the_others_and_never_the_other_way_round() -> None:
    everybody, others = curve("everybody", 0.9, 0.9, 0.9), curve("others", 0.8, 1.0, 1.0, joint=True)
    strong, weak = found(others, everybody)
    assert strong.guarantee == Guarantee(Protection.VALUE)
    assert weak.guarantee == Guarantee(Protection.VALUE, True)
    assert [label for _, label, _ in leading(strong)] == ["everybody"] * 3
    # An error that is reached at a small ε is kept at a larger one.
    assert [label for _, label, _ in leading(weak)] == ["others"] * 3
    assert {best.curve.label for best in weak.leads[1].order} == {"everybody", "others"}


def test_nothing_is_mixed_across_what_is_protected_or_data_sets() -> None:
    value, presence = curve("a", 1, 1, 1), curve("b", 0.1, 0.1, 0.1, protects=Protection.PRESENCE)
    elsewhere = experiment(curve("c", 0.1, 0.1, 0.1), title="MovieLens 1M")
    three = frontiers([*standings(experiment(presence, value)), *standings(elsewhere)])
    assert [each.title for each in three] == ["MovieLens 100K", "MovieLens 100K", "MovieLens 1M"]
    assert [[member.curve.label for member in each.members] for each in three] == [["a"], ["b"], ["c"]]


def test_ties_are_by_the_paired_difference_and_not_by_overlapping_intervals() -> None:
    """Folds differ by 0.3. Of two methods that are 0.01 above the first, only one is so in every fold."""
    first, sure = curve("first", 1, 1, 0.9), curve("sure", 1.1, 1.1, 0.91)
    unsure = curve("unsure", 1.1, 1.1, 0.91, by_fold=(0.04, -0.04, 0.04, -0.04))
    lead = found(first, sure, unsure)[0].leads[-1]
    assert [each.curve.label for each in lead.tied] == ["unsure"]
    assert (lead.low or 1) < 0.9 < 0.91 < (lead.high or 0)
    assert lead.over == "folds"


def test_of_published_and_corrected_that_are_the_same_the_corrected_one_stands_for_both() -> None:
    published, corrected = curve("PGE", 1, 0.9, 0.8, mode="published"), curve("PGE", 1, 0.9, 0.8)
    (frontier,) = found(published, corrected)
    assert [each.curve.mode for each in frontier.members] == ["corrected"]
    dearer = replace(published, provable=1.1 * GRID)
    assert len(found(dearer, corrected)[0].members) == 2
    assert len(found(published, replace(corrected, algorithm="other"))[0].members) == 2


def test_runs_that_only_one_has_are_left_out_of_a_difference_and_of_no_other() -> None:
    fewer = curve("fewer", 1, 1, 1)
    more = replace(curve("more", 1.0001, 1, 1), rmse=np.repeat(curve("more", 1.0001, 1, 1).rmse, 3, axis=1))
    worse = curve("worse", 1.2, 1.2, 1.2)
    lead = frontiers(standings(experiment(fewer, more, worse)))[0].leads[0]
    assert lead.low is not None
    assert lead.over == "folds"
    assert "worse" not in {each.curve.label for each in lead.tied}


def test_a_method_at_an_epsilon_is_not_what_it_had_at_a_smaller_one() -> None:
    (standing,) = standings(experiment(curve("falls and rises", 0.9, 0.8, 1.5)))
    assert [best.rmse for each in GRID if (best := best_at(standing, each, exactly=True))] == pytest.approx(
        [0.9, 0.8, 1.5], abs=0.2
    )
    assert best_at(standing, 0.5 * GRID[0], exactly=True) is None
    (dear,) = standings(experiment(curve("dear", 0.9, 0.8, 0.7, provable=1.1)))
    assert best_at(dear, GRID[0], exactly=True) is None


def test_the_best_of_one_method_and_the_best_without_privacy() -> None:
    made = experiment(curve("a", 1.0, 0.9, 0.95))
    (standing,) = standings(made)
    at = [best_at(standing, epsilon) for epsilon in (0.05, 0.1, 0.99, 1.0, 100.0)]
    assert [None if best is None else best.at for best in at] == [None, 0, 0, 1, 1]
    level = clean_level(made)
    assert level is not None
    assert level.label == "als"
    assert clean_level(replace(made, baselines=())) is None


@pytest.mark.parametrize(
    ("curves", "expected"),
    [
        # The lowest mean leads at each ε.
        (
            [curve("never", 3, 3, 3), curve("late", 2.0, 0.96, 0.8), curve("early", 1.0, 0.95, 0.94)],
            [(0.1, "early", 1.0), (1.0, "early", 0.95), (10.0, "late", 0.8)],
        ),
        # At ε = 1 the frontier may only use the point that claims 0.1, for which 0.5 can be proved.
        (
            [curve("claims", 0.97, 0.5, 0.4, provable=5.0), curve("honest", 1.0, 0.96, 0.95)],
            [(0.1, "honest", 1.0), (1.0, "honest", 0.96), (10.0, "claims", 0.5)],
        ),
        # What proves less than it claims enters there.
        (
            [curve("modest", 1.0, 0.9, 0.8, provable=0.1)],
            [(0.1, "modest", 0.9), (1.0, "modest", 0.8), (10.0, "modest", 0.8)],
        ),
        # What is not provable never enters.
        (
            [curve("claimed", 0.1, 0.1, 0.1, provable=np.inf), curve("a", 1, 1, 1)],
            [(e, "a", 1.0) for e in GRID],
        ),
        # A worse error at a larger ε is never taken.
        ([curve("a", 0.9, 0.95, 0.85)], [(0.1, "a", 0.9), (1.0, "a", 0.9), (10.0, "a", 0.85)]),
        # What diverged or is incomplete does not lead.
        (
            [
                curve("d", np.inf, 0.5, np.inf),
                curve("half", 0.1, np.nan, 0.1, missing=1),
                curve("a", 1, 1, 1),
            ],
            [(0.1, "a", 1.0), (1.0, "d", 0.5), (10.0, "d", 0.5)],
        ),
        ([curve("nothing", np.inf, np.inf, 0.9)], [(10.0, "nothing", 0.9)]),
    ],
)
def test_the_lowest_error_at_a_provable_epsilon_leads(
    curves: list[Measured], expected: list[tuple[float, str, float]]
) -> None:
    (frontier,) = found(*curves)
    assert leading(frontier) == expected
    assert sum(len(leads) for _, leads in frontier.stretches) == len(expected)
