"""The frontier: the leader at each ε, by provable ε, among all methods that keep a guarantee."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.ranking import Frontier, best_at, clean_level, frontiers, just_at, standings
from dpmf_cli.privacy.protection import Guarantee, Protection
from dpmf_cli.report.tables.ranked import frontier_table

GRID = np.array([0.1, 1.0, 10.0])
INFINITE = np.array([np.inf])
HARD = np.array([0.0, 0.2, -0.1, -0.1])
"""How much the folds' errors differ from their mean."""


def curve(
    label: str, *errors: float, provable: float = 1.0, by_fold: Any = (0, 0, 0, 0), **changes: Any
) -> Measured:
    """A curve with these mean errors over `GRID`. Its provable ε is `provable` times each ε."""
    folds = HARD + np.array(by_fold)
    return replace(
        Measured(
            algorithm=label,
            label=label,
            epsilons=GRID,
            rmse=np.array(errors)[None, None, :] + folds[:, None, None],
            claimed=GRID,
            provable=provable * GRID,
            neighbours="bounded",
            mode="corrected",
            protects=Protection.VALUE,
        ),
        **changes,
    )


def experiment(*curves: Measured, **changes: Any) -> Experiment:
    levels = tuple(
        Measured(key, key, INFINITE, level + HARD[:, None, None], INFINITE, INFINITE)
        for key, level in (("ia", 1.0), ("ge", 0.9), ("als", 0.8))
    )
    made = Experiment("made", "ml-100k", "MovieLens 100K", 4, 4, 1, 7, curves, levels)
    return replace(made, **changes)


def found(*curves: Measured) -> list[Frontier]:
    return frontiers(standings(experiment(*curves)))


def leading(frontier: Frontier) -> list[tuple[float, str, float]]:
    return [(lead.epsilon, lead.first.curve.label, round(lead.first.rmse, 6)) for lead in frontier.leads]


def test_the_lowest_mean_leads_at_each_epsilon_and_its_stretches_are_known() -> None:
    early, late, never = (
        curve("early", 1.0, 0.95, 0.94),
        curve("late", 2.0, 0.96, 0.8),
        curve("never", 3, 3, 3),
    )
    (frontier,) = found(never, late, early)
    assert leading(frontier) == [(0.1, "early", 1.0), (1.0, "early", 0.95), (10.0, "late", 0.8)]
    assert [(each.curve.label, len(leads)) for each, leads in frontier.stretches] == [
        ("early", 2),
        ("late", 1),
    ]
    assert [best.curve.label for best in frontier.leads[0].order] == ["early", "late", "never"]
    assert len(frontier.members) == 3


def test_what_claims_less_than_can_be_proved_does_not_win_at_what_it_claims() -> None:
    """At ε = 1 the frontier may only use the point that claims 0.1, for which 0.5 can be proved."""
    claims, honest = curve("claims", 0.97, 0.5, 0.4, provable=5.0), curve("honest", 1.0, 0.96, 0.95)
    (frontier,) = found(claims, honest)
    assert leading(frontier) == [(0.1, "honest", 1.0), (1.0, "honest", 0.96), (10.0, "claims", 0.5)]
    assert frontier.leads[2].first.provable == 5.0


def test_what_proves_less_than_it_claims_enters_there() -> None:
    modest = curve("modest", 1.0, 0.9, 0.8, provable=0.1)
    assert leading(found(modest)[0]) == [(0.1, "modest", 0.9), (1.0, "modest", 0.8), (10.0, "modest", 0.8)]


def test_what_is_not_provable_never_enters() -> None:
    assert found(curve("claimed", 0.1, 0.1, 0.1, provable=np.inf)) == []
    (frontier,) = found(curve("claimed", 0.1, 0.1, 0.1, provable=np.inf), curve("sound", 1.0, 1.0, 1.0))
    assert [each.curve.label for each in frontier.members] == ["sound"]


def test_a_worse_error_at_a_larger_epsilon_is_never_taken() -> None:
    assert leading(found(curve("rises", 0.9, 0.95, 0.85))[0]) == [
        (0.1, "rises", 0.9),
        (1.0, "rises", 0.9),
        (10.0, "rises", 0.85),
    ]


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
    assert (strong.guarantee, weak.guarantee) == (
        Guarantee(Protection.VALUE),
        Guarantee(Protection.VALUE, True),
    )
    assert [label for _, label, _ in leading(strong)] == ["everybody"] * 3
    # An error that is reached at a small ε is kept at a larger one.
    assert [label for _, label, _ in leading(weak)] == ["others"] * 3
    assert {best.curve.label for best in weak.leads[1].order} == {"everybody", "others"}


def test_nothing_is_mixed_across_what_is_protected_or_data_sets() -> None:
    value, presence = curve("a", 1, 1, 1), curve("b", 0.1, 0.1, 0.1, protects=Protection.PRESENCE)
    elsewhere = experiment(curve("c", 0.1, 0.1, 0.1), title="MovieLens 1M")
    three = frontiers([*standings(experiment(presence, value)), *standings(elsewhere)])
    assert [(each.title, [m.curve.label for m in each.members]) for each in three] == [
        ("MovieLens 100K", ["a"]),
        ("MovieLens 100K", ["b"]),
        ("MovieLens 1M", ["c"]),
    ]


def test_what_diverged_or_is_incomplete_does_not_lead() -> None:
    diverged, half = curve("diverged", np.inf, 0.5, np.inf), curve("half", 0.1, np.nan, 0.1, missing=1)
    (frontier,) = found(diverged, half, curve("sound", 1.0, 1.0, 1.0))
    assert leading(frontier) == [(0.1, "sound", 1.0), (1.0, "diverged", 0.5), (10.0, "diverged", 0.5)]
    assert "half" not in {each.curve.label for each in frontier.members}
    nothing = curve("nothing", np.inf, np.inf, 0.9)
    assert [lead.epsilon for lead in found(nothing)[0].leads] == [10.0]


def test_ties_are_by_the_paired_difference_and_not_by_overlapping_intervals() -> None:
    """Folds differ by 0.3. Of two methods that are 0.01 above the first, only one is so in every fold."""
    first, sure = curve("first", 1, 1, 0.9), curve("sure", 1.1, 1.1, 0.91)
    unsure = curve("unsure", 1.1, 1.1, 0.91, by_fold=(0.04, -0.04, 0.04, -0.04))
    lead = found(first, sure, unsure)[0].leads[-1]
    assert [each.curve.label for each in lead.tied] == ["unsure"]
    assert lead.low is not None
    assert lead.high is not None
    assert lead.low < 0.9 < 0.91 < lead.high
    assert lead.over == "folds"


def test_the_interval_is_of_the_point_that_leads() -> None:
    """Only at ε = 10 do the folds agree."""
    agreed = curve("agreed", 1.0, 1.0, 0.9)
    agreed.rmse[:, :, 2] = 0.9
    leads = found(agreed)[0].leads
    assert leads[2].low == pytest.approx(0.9)
    assert leads[2].high == pytest.approx(0.9)
    assert leads[0].low is not None
    assert leads[0].low < 0.95


def test_of_one_fold_and_run_nobody_can_tell() -> None:
    one = replace(curve("one", 1, 1, 1), rmse=np.array([[[1.0, 0.9, 0.8]]]))
    two = replace(curve("two", 1, 1, 1), rmse=np.array([[[1.0, 0.9, 0.8]]]))
    made = experiment(one, two, folds=1)
    made = replace(made, baselines=tuple(replace(each, rmse=each.rmse[:1]) for each in made.baselines))
    lead = frontiers(standings(made))[0].leads[0]
    assert (lead.low, lead.high, lead.over, lead.tied) == (None, None, "none", ())


def test_of_published_and_corrected_that_are_the_same_the_corrected_one_stands_for_both() -> None:
    published, corrected = curve("PGE", 1, 0.9, 0.8, mode="published"), curve("PGE", 1, 0.9, 0.8)
    (frontier,) = found(published, corrected)
    assert [each.curve.mode for each in frontier.members] == ["corrected"]
    dearer = replace(published, provable=1.1 * GRID)
    assert len(found(dearer, corrected)[0].members) == 2
    assert len(found(published, replace(corrected, algorithm="other"))[0].members) == 2


def test_errors_of_other_folds_are_not_said_to_be_tied() -> None:
    here, same = experiment(curve("here", 1, 1, 1)), experiment(curve("same", 1.0001, 1, 1), name="again")
    other = experiment(curve("other", 1.0001, 1, 1), name="other", seed=8)
    (frontier,) = frontiers([*standings(here), *standings(same), *standings(other)])
    assert len(frontier.leads[0].order) == 3
    assert "other" not in {each.curve.label for each in frontier.leads[0].tied}
    lead = frontier.leads[-1]
    assert {each.curve.label for each in (*lead.tied, lead.first)} <= {"here", "same"}


def test_runs_that_only_one_has_are_left_out_of_a_difference_and_of_no_other() -> None:
    fewer = curve("fewer", 1, 1, 1)
    more = replace(curve("more", 1.0001, 1, 1), rmse=np.repeat(curve("more", 1.0001, 1, 1).rmse, 3, axis=1))
    worse = curve("worse", 1.2, 1.2, 1.2)
    lead = frontiers(standings(experiment(fewer, more, worse)))[0].leads[0]
    assert lead.low is not None
    assert lead.over == "folds"
    assert "worse" not in {each.curve.label for each in lead.tied}


def test_what_was_measured_on_other_folds_is_named_as_such() -> None:
    here = experiment(curve("here", 1, 1, 1))
    other = experiment(curve("other", 1.0001, 1, 1), name="other", seed=8)
    (frontier,) = frontiers([*standings(here), *standings(other)])
    assert [each.curve.label for each in frontier.leads[0].unpaired] == ["other"]
    assert (
        "1 on other folds: nobody can tell" in frontier_table([here, other], [frontier]).groups[0].rows[0][-1]
    )


def test_a_method_at_an_epsilon_is_not_what_it_had_at_a_smaller_one() -> None:
    (standing,) = standings(experiment(curve("falls and rises", 0.9, 0.8, 1.5)))
    assert [best.rmse for each in GRID if (best := just_at(standing, each))] == pytest.approx(
        [0.9, 0.8, 1.5], abs=0.2
    )
    assert just_at(standing, 0.5 * GRID[0]) is None
    (dear,) = standings(experiment(curve("dear", 0.9, 0.8, 0.7, provable=1.1)))
    assert just_at(dear, GRID[0]) is None


def test_the_grid_is_that_of_all_members() -> None:
    finer = replace(
        curve("finer", 1, 1, 1),
        epsilons=(points := np.array([0.2, 2.0, 20.0])),
        claimed=points,
        provable=points,
    )
    (frontier,) = found(finer, curve("a", 1, 1, 1))
    assert [lead.epsilon for lead in frontier.leads] == [0.1, 0.2, 1.0, 2.0, 10.0, 20.0]


def test_the_best_of_one_method_and_the_best_without_privacy() -> None:
    made = experiment(curve("a", 1.0, 0.9, 0.95))
    (standing,) = standings(made)
    at = [best_at(standing, epsilon) for epsilon in (0.05, 0.1, 0.99, 1.0, 100.0)]
    assert [None if best is None else best.at for best in at] == [None, 0, 0, 1, 1]
    level = clean_level(made)
    assert level is not None
    assert level.label == "als"
    assert clean_level(replace(made, baselines=())) is None
