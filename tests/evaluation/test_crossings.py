"""Crossings: known answers, statuses that are not numbers, laws over generated curves, and the intervals.

RMSE at one ε, on a grid and between its points.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.evaluation.crossings import (
    bends_beside,
    epsilons_to_add,
    find_crossings,
    first_crossing,
    levels_at,
    measure_crossing,
)
from dpmf_cli.evaluation.curves import Reference
from dpmf_cli.evaluation.metrics import RMSE, Metric
from tests.evaluation.made_curves import baseline, crossing, curve, experiment, noise_free_of, noisy, order


def test_halfway_in_rmse_is_the_geometric_mean_in_epsilon() -> None:
    found = crossing([0.1, 1, 10], [0.3, 0.1, -0.1])
    assert found.status == "crossed"
    assert found.reproduced == pytest.approx(math.sqrt(10))
    assert (found.printed, found.ratio) == (None, None)
    assert (found.low, found.high, found.over) == (None, None, "none")
    assert (found.dataset, found.neighbours, found.mode) == ("ml-1m", "bounded", "published")
    assert (found.baseline, found.grid_low, found.grid_high) == ("IA", 0.1, 10.0)


def test_touching_the_baseline_at_a_grid_point_crosses_there() -> None:
    assert crossing([0.1, 0.7, 3], [0.5, 0, -0.5]).reproduced == 0.7
    touched = crossing([0.1, 0.7, 3], [0.5, 0, 0.5])
    assert (touched.reproduced, touched.recrosses) == (0.7, True)


def test_out_of_the_grid_is_no_number() -> None:
    above = crossing([0.1, 1], [0.2, 0.1])
    assert (above.status, above.reproduced, above.ratio) == ("not reached in the grid", None, None)
    assert not above.recrosses
    below = crossing([0.1, 1], [0, -0.1])
    nothing = [below.reproduced, below.claimed, below.provable]
    assert (below.status, nothing) == ("below the grid", [None] * 3)


def test_what_is_met_at_epsilon_to_zero_needs_no_epsilon() -> None:
    found = crossing([1e-6, 0.1, 1], [0, -0.1, -0.1])
    assert (found.status, found.reproduced, found.grid_low) == ("needs no ε", None, 0.1)
    assert (
        crossing([1e-6, 0.1, 1], [0.1, -0.1, -0.1]).status == crossing([1e-6], [0]).status == "below the grid"
    )
    apart = noisy(1, (5, 1, 3), [4, -1, -1], sd=0.01)  # noise at ε → 0, but for four of five folds
    apart[1:, :, 0] -= 5
    for least, status, low, high in (
        (apart, "needs no ε", "needs no ε", "below the grid"),
        (np.where(apart < -3, -3, apart) * [-1, 1, 1], "below the grid", "below the grid", "below the grid"),
    ):
        (found,) = find_crossings(experiment(curve([1e-6, 0.1, 1], least)))
        assert (found.status, found.low, found.high) == (status, low, high)
    whole = replace(experiment(curve([1e-6, 0.1, 0.12, 0.14], [0.3, -0.1, -0.1, -0.2])), refines=True)
    assert not any(epsilons_to_add(whole).values())
    assert not find_crossings(whole)[0].coarse
    assert levels_at(whole, 1e-6)[0].value == pytest.approx(1.3)
    with pytest.raises(DpmfError, match=r"outside of the grid of pge, 0\.1 to 0\.14"):
        levels_at(whole, 0.01)


@pytest.mark.parametrize(
    ("printed", "level", "said"),
    [
        (10.0, 0.0, "agrees"),  # a curve that falls by 0.1 from ε = 1 to 100, and crosses at 10
        (10.9, 0.0, "agrees"),
        (9.2, 0.0, "agrees"),
        (13.4, 0.0, "agrees"),  # where the curve is 0.0045 below, a factor 1.09 nearer
        (16.0, 0.0, "near"),
        (20.0, 0.0, "differs"),
        (120.0, 0.05, "near"),  # the grid ends where it crosses, within a factor 1.21
        (300.0, 0.0, "differs"),
    ],
)
def test_a_curve_agrees_that_passes_the_printed_point(printed: float, level: float, said: str) -> None:
    found = experiment(curve([1, 100], [0.05 + level, -0.05 + level]))
    (cell,) = find_crossings(found, lambda *_: printed)
    assert cell.printed == printed
    assert cell.agreement == said
    inside = 1 <= printed <= 100
    gap = 0.05 + level - 0.05 * math.log10(printed)
    assert cell.gap == (pytest.approx(gap) if inside else None)


def test_the_first_crossing_counts_and_a_later_rise_is_noted() -> None:
    found = crossing([1, 4, 16, 64], [1, -1, 1, -1])
    assert found.reproduced == pytest.approx(2.0)
    assert found.recrosses
    assert not crossing([1, 4, 16], [1, -1, -2]).recrosses
    assert crossing([1, 4], [-1, 1]).recrosses


def test_where_more_is_better_a_curve_crosses_from_below() -> None:
    """The mirror image of an RMSE has the same crossings, interval and second crossing; RMSE stays as it was."""
    metric = Metric("ndcg@10", "nDCG@10", larger_is_better=True)
    difference = noisy(3, (6, 2, 4), [0.3, -0.2, 0.1, -0.3])
    grid = [1.0, 2.0, 4.0, 8.0]
    low = replace(baseline(folds=6), others={"ndcg@10": 5 - baseline(folds=6).rmse})
    ordering = replace(low, algorithm="popularity", label="Popularity", scores_only=True, metric=metric)
    errors = curve(grid, difference)
    whole = replace(
        experiment(replace(errors, others={"ndcg@10": 5 - errors.rmse}), baselines=(low,)),
        metrics=(RMSE, metric),
        aside=(ordering,),
    )
    (of_rmse,) = find_crossings(whole)
    to_most_rated, to_averages = find_crossings(whole.showing("ndcg@10"))
    assert (to_most_rated.baseline, to_averages.baseline) == ("Popularity", "IA")
    for found in (to_most_rated, to_averages):
        assert found.metric == metric
        assert found.reproduced == pytest.approx(of_rmse.reproduced)
        assert [order(found.low), order(found.high)] == pytest.approx(
            [order(of_rmse.low), order(of_rmse.high)]
        )
        assert found.recrosses
    assert find_crossings(whole.showing("ndcg@10").showing("rmse")) == [of_rmse]
    assert whole.showing("ndcg@10").aside == ()
    assert whole.showing("ndcg@10").showing("rmse").aside == (ordering,)
    with pytest.raises(DpmfError, match=r'"ndcg" is not measured; did you mean "ndcg@10"'):
        whole.showing("ndcg")


def test_a_diverged_model_is_above_every_baseline() -> None:
    """The curve counts as far above in every replicate, so it comes down between the grid points, near the
    upper one."""
    values = noisy(0, (4, 3, 3), [0.0, -0.5, -0.6], sd=0.01)
    values[2, 1, 0] = np.inf
    found = crossing([0.1, 1, 10], values)
    assert found.status == "crossed"
    assert [found.low, found.reproduced, found.high] == pytest.approx([1, 1, 1], rel=1e-5)


def test_spent_epsilon_is_proportional_and_the_costlier_of_two_grid_points() -> None:
    made = replace(curve([1, 4], [1, -1]), claimed=np.array([1.0, 8.0]), provable=np.array([1.0, np.inf]))
    (found,) = find_crossings(experiment(made))
    assert found.reproduced == pytest.approx(2)
    assert found.claimed == pytest.approx(4)
    assert found.provable == math.inf
    touching = replace(made, rmse=1 + np.array([[[1.0, 0.0]]]), provable=np.array([np.inf, 12.0]))
    (found,) = find_crossings(experiment(touching))
    assert (found.reproduced, found.provable) == (4.0, 12.0)


def test_differences_are_paired_by_fold() -> None:
    """Folds of different difficulty, all crossing at the same ε: no spread, whatever the folds' levels."""
    levels = np.array([0.8, 1.0, 1.3])
    rmse = levels[:, None, None] + np.array([1.0, -1.0])
    made = replace(curve([1, 4], [1, -1]), rmse=rmse)
    (found,) = find_crossings(experiment(made, baselines=(baseline(levels, folds=3),)))
    assert found.low == pytest.approx(2.0)
    assert found.high == pytest.approx(2.0)
    assert found.over == "folds"


def test_ends_of_the_interval_may_be_out_of_the_grid() -> None:
    shifts = np.array([-1.0, -0.5, 0.0, 0.5, 1.0])[:, None, None]
    found = crossing([1, 4], shifts + np.array([1.0, -1.0]))
    assert found.status == "crossed"
    assert (found.low, found.high) == ("below the grid", "not reached in the grid")
    found = crossing([1, 4], shifts + np.array([5.0, 0.1]))
    assert (found.status, found.high) == ("not reached in the grid", "not reached in the grid")
    assert 1 < order(found.low) < 4


def test_theta_is_read_off_the_curve_log_by_log() -> None:
    """θ = ε²/8 on the grid: a power, hence exact between the grid's points."""
    made = replace(curve([1, 4, 16], [1, 0.5, -1.5]), thetas=np.array([0.125, 2, 32]), delta=1e-6)
    over_theta = replace(experiment(made), axis="theta")
    (found,) = find_crossings(over_theta)
    assert found.reproduced is not None
    assert found.reproduced == pytest.approx(4 * 4**0.25)
    assert found.theta == pytest.approx(found.reproduced**2 / 8)
    assert found.delta == 1e-6
    (outside,) = find_crossings(replace(over_theta, curves=(replace(made, rmse=made.rmse + 9),)))
    assert (outside.status, outside.theta, outside.delta) == ("not reached in the grid", None, 1e-6)
    (plain,) = find_crossings(replace(over_theta, curves=(replace(made, thetas=None, delta=0.0),)))
    assert (plain.theta, plain.delta, plain.reproduced) == (None, 0.0, found.reproduced)
    (over_epsilon,) = find_crossings(experiment(made))
    assert (over_epsilon.theta, over_epsilon.reproduced) == (None, found.reproduced)


def test_a_printed_reference_is_crossed_like_a_baseline_and_has_no_spread_of_its_own() -> None:
    levels = np.array([-0.2, 0.0, 0.3])
    made = curve([1, 4], levels[:, None, None] + np.array([1.0, -1.0]))
    printed = Reference("Cinematch probe", 1.1, comparable=False)
    whole = replace(experiment(made), references=(printed,))
    of_baseline, of_reference = find_crossings(whole)
    assert (of_reference.baseline, of_reference.reference, of_reference.comparable) == (
        "Cinematch probe",
        True,
        False,
    )
    assert (of_baseline.reference, of_baseline.comparable) == (False, True)
    constant = baseline(1.1, folds=3)
    expected = measure_crossing(whole, made, constant)
    assert (of_reference.reproduced, of_reference.low, of_reference.high) == (
        expected.reproduced,
        expected.low,
        expected.high,
    )
    assert of_reference.printed is None


def test_crossings_are_with_the_targets_of_the_experiment() -> None:
    """A learned similarity is compared with one that is not learned, and each of two entries of one kind has
    its own."""
    made = curve([1, 2, 4], [0.3, 0.1, -0.2])
    kinds = [("constant_nbm", "Constant similarity"), ("cos", "COS"), ("cos", "COS, co-raters"), ("ia", "IA")]
    baselines = tuple(replace(baseline(), algorithm=key, label=label, line=label) for key, label in kinds)
    whole = replace(experiment(made, baselines=baselines), targets=("cos", "ia", "constant_nbm"))
    names = [found.baseline for found in find_crossings(whole)]
    assert names == ["COS", "COS, co-raters", "IA", "Constant similarity"]


@st.composite
def differences(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """A grid whose points are well apart, and a difference curve on it."""
    steps = draw(st.lists(st.floats(1.05, 4.0), min_size=1, max_size=10))
    epsilons = 0.05 * np.cumprod([1.0, *steps])
    values = draw(
        st.lists(
            st.floats(-1, 1).filter(lambda v: v == 0 or abs(v) > 1e-6),
            min_size=len(epsilons),
            max_size=len(epsilons),
        )
    )
    return epsilons, np.array(values)


@given(differences(), st.floats(0.05, 0.95), st.data())
def test_a_grid_point_added_on_the_line_changes_nothing(
    made: tuple[np.ndarray, np.ndarray], part: float, data: st.DataObject
) -> None:
    epsilons, values = made
    at = data.draw(st.integers(0, len(epsilons) - 2))
    added = epsilons[at] * (epsilons[at + 1] / epsilons[at]) ** part
    between = values[at] + part * (values[at + 1] - values[at])
    refined = first_crossing(np.insert(epsilons, at + 1, added), np.insert(values, at + 1, between))
    assert refined == pytest.approx(first_crossing(epsilons, values), rel=1e-6)


@given(differences())
def test_the_status_says_where_the_curve_is(made: tuple[np.ndarray, np.ndarray]) -> None:
    epsilons, values = made
    found = first_crossing(epsilons, values)
    if (values > 0).all():
        assert found == math.inf
    elif values[0] <= 0:
        assert found == -math.inf
    else:
        assert epsilons[0] < found <= epsilons[-1]
        before = epsilons < found * (1 - 1e-9)
        assert (values[before] > 0).all()


@given(st.lists(differences(), min_size=2, max_size=2), st.integers(0, 2**31))
def test_many_curves_at_once_are_as_each_alone(made: list[tuple[np.ndarray, np.ndarray]], seed: int) -> None:
    epsilons = made[0][0]
    curves = np.random.default_rng(seed).normal(0.2, 1, (5, 4, len(epsilons)))
    at_once = first_crossing(epsilons, curves)
    assert at_once.shape == (5, 4)
    alone = [[first_crossing(epsilons, one) for one in row] for row in curves]
    np.testing.assert_allclose(at_once, alone, rtol=1e-14)  # NumPy's powers differ by a bit with the length


@given(
    st.lists(st.floats(0.01, 1), min_size=2, max_size=8),
    st.lists(st.floats(-0.5, 0.5), min_size=2, max_size=10),
    st.floats(0.05, 2),
)
def test_the_interval_of_a_falling_curve_contains_the_crossing(
    falls: list[float], shifts: list[float], start: float
) -> None:
    epsilons = np.geomspace(0.1, 10, len(falls) + 1)
    values = start - np.cumsum([0.0, *falls]) + np.array(shifts)[:, None]
    found = crossing(epsilons, values[:, None, :])
    point = found.reproduced if found.reproduced is not None else order(found.status)
    assert order(found.low) <= point * (1 + 1e-9)
    assert point * (1 - 1e-9) <= order(found.high)


GRID = 1.4 ** np.arange(4.0)
LINE = [0.8, 0.4, 0.2, 0.1]


def test_between_two_it_is_linear_in_log_epsilon_and_the_interval_holds_the_bend() -> None:
    made = curve(GRID, np.broadcast_to(LINE, (6, 2, 4)))
    level, _ = levels_at(experiment(made), math.sqrt(GRID[1] * GRID[2]))
    assert level.interpolated
    assert level.value == pytest.approx(1.3)
    bend = bends_beside(GRID, 1 + np.array(LINE))[:, 1].max()
    assert [level.low, level.high] == pytest.approx([1.3 - bend / 4, 1.3])
    assert level.beside == {}
    with_mae = replace(made, others={"mae": made.rmse - 0.5})
    assert levels_at(experiment(with_mae), level.epsilon)[0].beside == {"mae": pytest.approx(0.8)}


def test_in_a_wide_gap_the_interval_is_between_its_ends() -> None:
    made = curve([1, 4, 16], np.broadcast_to([0.8, 0.4, 0.2], (6, 2, 3)))
    level, _ = levels_at(experiment(made), 2)
    assert [level.low, level.high] == pytest.approx([1.4, 1.8])


def test_beside_a_model_that_diverged_there_is_no_number() -> None:
    made = curve(GRID, [[[np.inf, 0.4, 0.2, 0.1]]])
    assert levels_at(experiment(made), 1.2)[0].value == math.inf
    assert levels_at(experiment(made), 1.5)[0].value == pytest.approx(1.37, abs=0.05)


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 0.0, -1.0, math.nan, math.inf])
def test_outside_of_the_grid_it_is_refused(epsilon: float) -> None:
    made = experiment(curve(GRID, [LINE]), baselines=(baseline(),))
    with pytest.raises(
        DpmfError, match=r"outside of the grid of pge, 1 to 2\.744; ask for an ε within the grid"
    ):
        levels_at(made, epsilon)


SHORT = [1.0, 2.0, 4.0]


def test_finished_folds_are_as_if_the_others_had_not_been_held_out() -> None:
    values = noisy(1, (5, 2, 3), [0.5, 0.1, -0.3], sd=0.01)
    whole = experiment(curve(SHORT, values), baselines=(baseline(folds=5),))
    broken = values.copy()
    broken[3, 1, 2] = broken[4] = np.nan
    made = experiment(replace(curve(SHORT, broken), missing=3), baselines=(baseline(folds=5),))
    partial = made.of_finished_folds()
    assert partial is not None
    assert partial.partial == "3 of 5 folds"
    (found,) = find_crossings(partial)
    assert (found.folds, found.partial, found.status) == (3, "3 of 5 folds", "crossed")
    three = replace(whole, folds=3, curves=(curve(SHORT, values[:3]),), baselines=(baseline(folds=3),))
    assert replace(found, partial="") == find_crossings(three)[0]
    assert [each.missing for each in made.of_folds([0, 3, 4]).measured()] == [2, 0]
    aside = replace(made, aside=made.baselines).of_folds([0, 3]).aside
    assert [len(each.rmse) for each in aside] == [2]


def test_a_fold_without_its_noise_free_run_is_not_finished() -> None:
    noise_free = np.array([0.9, np.nan, 0.9])
    made = curve(SHORT, noisy(1, (3, 1, 3), [0.5, 0.1, -0.3]))
    partial = experiment(replace(made, noise_free=noise_free_of(noise_free), missing=1)).of_finished_folds()
    assert partial is not None
    assert partial.curves[0].noise_free is not None
    assert len(partial.curves[0].noise_free["rmse"]) == partial.folds == 2


def test_of_all_folds_or_none_there_is_no_part() -> None:
    values = noisy(1, (3, 1, 3), [0.5, 0.1, -0.3])
    assert experiment(curve(SHORT, values)).of_finished_folds() is None
    assert experiment(curve(SHORT, np.full_like(values, np.nan))).of_finished_folds() is None
