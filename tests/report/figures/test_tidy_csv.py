"""The numbers behind figures: tidy, exact, and empty where nothing is known."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.levels import band
from dpmf_cli.report.figures.charts import loss_of
from dpmf_cli.report.figures.tidy_csv import curves_csv, growth_csv
from tests.report.conftest import of_theta
from tests.report.figures.made import SHARES, grown

Make = Callable[..., Experiment]
COLUMNS = [
    *("dataset", "neighbours", "mode", "algorithm", "label", "joint", "epsilon", "theta", "delta", "rmse"),
    *("sd_folds", "sd_runs", "low", "high", "claimed", "provable", "folds", "runs"),
]


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_row_per_curve_and_epsilon_then_the_baselines(made: Make) -> None:
    text = curves_csv(made(2))
    assert "\r" not in text
    assert text.endswith("\n")
    rows = read(text)
    assert list(rows[0]) == COLUMNS
    assert [row["label"] for row in rows] == ["pge"] * 16 + ["isgd"] * 16 + ["ga", "ia", "ge", "als"]
    assert rows[-1]["epsilon"] == rows[-1]["provable"] == "inf"
    assert rows[-1]["neighbours"] == "none"


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


def test_theta_delta_and_a_row_without_noise(made: Make) -> None:
    experiment = of_theta(made(3))
    rows = read(curves_csv(experiment))
    of_isgd = [row for row in rows if row["label"] == "isgd"]
    assert [float(row["theta"]) * 2 for row in of_isgd] == [float(row["epsilon"]) for row in of_isgd]
    assert [row["delta"] for row in rows if row["epsilon"] == "inf"] == ["1e-06", "1e-06"] + ["0.0"] * 5
    twin = of_isgd[-1]
    assert {twin[name] for name in ("epsilon", "theta", "claimed", "provable")} == {"inf"}
    assert twin["runs"] == "1"
    values = experiment.curves[1].twin
    assert values is not None
    assert float(twin["rmse"]) == values.mean()
    assert float(twin["sd_folds"]) == pytest.approx(values.std(ddof=1))
    assert float(twin["low"]) < values.mean() < float(twin["high"])
    assert {row["theta"] for row in rows[-4:]} == {""}


def test_a_twin_without_its_results_is_empty_and_one_with_them_is_not(made: Make) -> None:
    (curve,) = of_theta(made(1)).curves
    assert curve.twin is not None
    waiting = replace(curve, twin=np.where(np.arange(10) == 3, np.nan, curve.twin), missing=1)
    rows = read(curves_csv(replace(made(1), curves=(waiting,))))
    assert (rows[16]["epsilon"], rows[16]["rmse"]) == ("inf", "")
    rows = read(curves_csv(replace(made(1), curves=(replace(curve, missing=1),))))
    assert (rows[0]["rmse"], bool(rows[16]["rmse"])) == ("", True)


def test_the_rows_of_a_curve_do_not_depend_on_the_others(made: Make) -> None:
    experiment = made(3)
    fewer = replace(experiment, curves=experiment.curves[1:2])
    assert set(curves_csv(fewer).splitlines()) < set(curves_csv(experiment).splitlines())


def test_what_cannot_be_had_is_empty(made: Make) -> None:
    experiment = made(1)
    rmse = experiment.curves[0].rmse.copy()
    rmse[0, 0, 5] = np.nan
    refining = replace(experiment, curves=(replace(experiment.curves[0], rmse=rmse, missing=1),))
    for incomplete in (made(1, incomplete="pge"), refining):
        rows = read(curves_csv(incomplete))[:16]
        assert {row["rmse"] + row["low"] + row["sd_runs"] for row in rows} == {""}
        assert all(row["epsilon"] and row["claimed"] for row in rows)
    single = read(curves_csv(made(1, folds=1, runs=1)))[0]
    assert (single["sd_folds"], single["sd_runs"], single["low"], single["high"]) == ("", "", "", "")
    assert single["rmse"]
    one_fold = read(curves_csv(made(1, folds=1)))[0]
    assert one_fold["sd_folds"] == ""
    assert one_fold["low"] != one_fold["sd_runs"] != ""


def test_a_diverged_model_leaves_the_rest_of_its_curve(made: Make) -> None:
    experiment = made(1)
    rmse = experiment.curves[0].rmse.copy()
    rmse[3, 2, 0] = np.inf
    broken = replace(experiment, curves=(replace(experiment.curves[0], rmse=rmse),))
    rows = read(curves_csv(broken))
    assert (rows[0]["rmse"], rows[0]["low"], rows[0]["high"], rows[0]["sd_folds"]) == ("inf", "", "", "")
    assert rows[1] == read(curves_csv(experiment))[1]


def test_the_band_narrows_to_the_curve_where_folds_and_runs_agree(made: Make) -> None:
    flat = replace(made(1).curves[0], rmse=np.ones((10, 5, 16)))
    assert all((end == 1).all() for end in band(made(1), flat))


def test_a_loss_is_paired_by_fold(made: Make) -> None:
    (curve,) = of_theta(made(1)).curves
    levels = np.linspace(0.8, 1.2, 10)
    paired = replace(curve, twin=levels, rmse=levels[:, None, None] + np.full((10, 5, 16), 0.1))
    loss = loss_of(made(1), paired)
    for figure in (loss.mean, loss.low, loss.high):
        np.testing.assert_allclose(figure, 0.1)
    np.testing.assert_allclose(loss.sd, 0.0, atol=1e-12)


def test_a_loss_that_is_not_known_is_no_number(made: Make) -> None:
    (curve,) = of_theta(made(1)).curves
    for unknown in (replace(curve, twin=None), replace(curve, missing=1)):
        assert np.isnan(loss_of(made(1), unknown).mean).all()
    diverged = curve.rmse.copy()
    diverged[2, 1, 3] = np.inf
    loss = loss_of(made(1), replace(curve, rmse=diverged))
    assert np.flatnonzero(np.isnan(loss.mean)).tolist() == [3]


def test_growth_has_a_row_for_every_portion_curve_and_baseline(made: Make) -> None:
    experiment = grown(made(2))
    rows = read(growth_csv(experiment))
    assert [row["label"] for row in rows] == ["pge", "isgd", "ga", "ia", "ge", "als"] * 3
    assert [float(row["portion"]) for row in rows[::6]] == list(SHARES)
    assert [(row["ratings"], row["users"], row["days"]) for row in rows[::6]] == [
        ("200", "30", "20.0"),
        ("500", "30", "50.0"),
        ("1000", "30", "100.0"),
    ]
    isgd = rows[1]
    assert experiment.growth is not None
    curve = experiment.growth.stages[0].curves[1]
    assert curve.thetas is not None
    assert curve.twin is not None
    assert (float(isgd["epsilon"]), float(isgd["theta"])) == (curve.epsilons[0], curve.thetas[0])
    loss = curve.rmse[:, :, 0] - curve.twin[:, None]
    assert float(isgd["rmse"]) == curve.rmse.mean()
    assert float(isgd["twin_rmse"]) == curve.twin.mean()
    assert float(isgd["loss"]) == pytest.approx(loss.mean())
    assert float(isgd["loss_sd"]) == pytest.approx(loss.std(ddof=1))
    assert float(isgd["loss_low"]) < loss.mean() < float(isgd["loss_high"])
    assert [rows[2][name] for name in ("epsilon", "theta", "twin_rmse", "loss")] == ["inf", "", "", ""]
    assert {row["days"] for row in read(growth_csv(grown(made(1), "random")))} == {""}
