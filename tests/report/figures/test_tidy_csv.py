"""The numbers behind figures: tidy, exact, and empty where nothing is known."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.report.figures.charts import loss_of
from dpmf_cli.report.outputs import curves_csv
from tests.evaluation.made_curves import twin_of
from tests.report.conftest import of_theta

Make = Callable[..., Experiment]


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_figures_are_exact_and_right(made: Make) -> None:
    experiment = made(1)
    (curve,) = experiment.curves
    for index, row in enumerate(read(curves_csv(experiment))[:16]):
        cells = curve.rmse[:, :, index]
        assert float(row["rmse"]) == curve.mean()[index]
        assert float(row["epsilon"]) == float(row["claimed"]) == curve.epsilons[index]
        assert float(row["sd_folds"]) == pytest.approx(cells.mean(axis=1).std(ddof=1))
        assert float(row["sd_runs"]) == pytest.approx(np.sqrt(cells.var(axis=1, ddof=1).mean()))
        assert float(row["low"]) < float(row["rmse"]) < float(row["high"])
        assert (row["folds"], row["runs"]) == ("10", "5")


def test_a_loss_is_paired_by_fold(made: Make) -> None:
    (curve,) = of_theta(made(1)).curves
    levels = np.linspace(0.8, 1.2, 10)
    paired = replace(curve, twin=twin_of(levels), rmse=levels[:, None, None] + np.full((10, 5, 16), 0.1))
    loss = loss_of(made(1), paired)
    np.testing.assert_allclose(loss[[0, 2, 3]], 0.1)
    np.testing.assert_allclose(loss[1], 0.0, atol=1e-12)


def test_a_loss_that_is_not_known_is_no_number(made: Make) -> None:
    (curve,) = of_theta(made(1)).curves
    for unknown in (replace(curve, twin=None), replace(curve, missing=1)):
        assert np.isnan(loss_of(made(1), unknown)).all()
    diverged = curve.rmse.copy()
    diverged[2, 1, 3] = np.inf
    loss = loss_of(made(1), replace(curve, rmse=diverged))
    assert np.flatnonzero(np.isnan(loss[0])).tolist() == [3]
