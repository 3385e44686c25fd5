"""Charts: a line for each entry and each point of a sweep's grid, whatever its axis, what is not swept level; and the
numbers behind them, tidy, exact, and empty where nothing is known.
"""

from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.report.figures.charts import Level, Line, loss_of, swept_series
from dpmf_cli.report.figures.style import GREY_LEVEL
from tests.evaluation.made_curves import noise_free_of
from tests.report.conftest import make, of_theta
from tests.report.figures.made import values_of


def series(experiment: Experiment) -> list[Line | Level]:
    return swept_series(experiment, "k", lambda each: (each.mean(),) * 3)


def lines(experiment: Experiment) -> list[Line]:
    return [each for each in series(experiment) if isinstance(each, Line)]


@pytest.mark.parametrize(("entries", "most"), [(1, 16), (3, 16), (7, 7), (40, 1)])
def test_no_two_lines_of_a_sweep_share_colour_and_marker(entries: int, most: int) -> None:
    """For any number of entries: only some ε of a long grid are drawn, including the largest."""
    (curve,) = make(1).curves
    curves = tuple(
        replace(curve, label=f"{entry}, {k}", line=f"{entry}", swept=("k", float(k)))
        for entry in range(entries)
        for k in (1, 2)
    )
    beside = tuple(replace(curve, label=f"level {k}", line=f"level {k}") for k in range(6))
    found = series(replace(make(1), curves=(*curves, *beside)))
    apart = [each.look for each in found if each.look != GREY_LEVEL]
    assert len(set(apart)) == len(apart)
    assert [each.name for each in found if each.look == GREY_LEVEL] == ["GA", "IA", "GE", "Clean MF (ALS)"]
    of_first = [each.name for each in found if each.name.startswith("0, ")]
    assert len(of_first) == most
    assert "0, ε = 20" in of_first


def test_an_epsilon_that_one_value_alone_has_is_no_line() -> None:
    curves = values_of(make(2).curves[0], "epsilon", "a")
    first, *others = curves
    grid, rmse = np.append(first.epsilons, 1e3), np.append(first.rmse, first.rmse[..., -1:], axis=-1)
    finer = replace(first, epsilons=grid, rmse=rmse, claimed=grid, provable=grid)
    names = [
        {line.name for line in lines(replace(make(2), curves=each, baselines=()))}
        for each in (curves, (finer, *others))
    ]
    assert names[0] == names[1]


def test_a_loss_is_paired_by_fold() -> None:
    (curve,) = of_theta(make(1)).curves
    levels = np.linspace(0.8, 1.2, 10)
    paired = replace(curve, noise_free=noise_free_of(levels), rmse=np.full((16, 5, 10), levels + 0.1).T)
    loss = loss_of(make(1), paired)
    np.testing.assert_allclose(loss[[0, 2, 3]], 0.1)
    np.testing.assert_allclose(loss[1], 0.0, atol=1e-12)


def test_a_loss_that_is_not_known_is_no_number() -> None:
    (curve,) = of_theta(make(1)).curves
    for unknown in (replace(curve, noise_free=None), replace(curve, missing=1)):
        assert np.isnan(loss_of(make(1), unknown)).all()
    diverged = curve.rmse.copy()
    diverged[2, 1, 3] = np.inf
    loss = loss_of(make(1), replace(curve, rmse=diverged))
    assert np.flatnonzero(np.isnan(loss[0])).tolist() == [3]
