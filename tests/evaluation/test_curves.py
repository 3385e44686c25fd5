"""The finished part of an interrupted run: the folds in which nothing is missing."""

from dataclasses import replace

import numpy as np

from dpmf_cli.evaluation.crossings import find_crossings
from tests.evaluation.made_curves import baseline, curve, experiment, noisy, twin_of

GRID = [1.0, 2.0, 4.0]


def test_finished_folds_are_as_if_the_others_had_not_been_held_out() -> None:
    values = noisy(1, (5, 2, 3), [0.5, 0.1, -0.3], sd=0.01)
    whole = experiment(curve(GRID, values), baselines=(baseline(folds=5),))
    broken = values.copy()
    broken[3, 1, 2] = broken[4] = np.nan
    made = experiment(replace(curve(GRID, broken), missing=3), baselines=(baseline(folds=5),))
    partial = made.of_finished_folds()
    assert partial is not None
    assert partial.partial == "3 of 5 folds"
    (found,) = find_crossings(partial)
    assert (found.folds, found.partial, found.status) == (3, "3 of 5 folds", "crossed")
    three = replace(whole, folds=3, curves=(curve(GRID, values[:3]),), baselines=(baseline(folds=3),))
    assert replace(found, partial="") == find_crossings(three)[0]
    assert [each.missing for each in made.of_folds([0, 3, 4]).measured()] == [2, 0]
    aside = replace(made, aside=made.baselines).of_folds([0, 3]).aside
    assert [len(each.rmse) for each in aside] == [2]


def test_a_fold_without_its_twin_is_not_finished() -> None:
    twin = np.array([0.9, np.nan, 0.9])
    made = curve(GRID, noisy(1, (3, 1, 3), [0.5, 0.1, -0.3]))
    partial = experiment(replace(made, twin=twin_of(twin), missing=1)).of_finished_folds()
    assert partial is not None
    assert partial.curves[0].twin is not None
    assert len(partial.curves[0].twin["rmse"]) == partial.folds == 2


def test_of_all_folds_or_none_there_is_no_part() -> None:
    values = noisy(1, (3, 1, 3), [0.5, 0.1, -0.3])
    assert experiment(curve(GRID, values)).of_finished_folds() is None
    assert experiment(curve(GRID, np.full_like(values, np.nan))).of_finished_folds() is None
