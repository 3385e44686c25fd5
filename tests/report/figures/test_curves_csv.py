"""The curves' CSV: tidy, exact, and empty where nothing is known."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.levels import band
from dpmf_cli.report.figures.curves_csv import COLUMNS, curves_csv
from tests.evaluation.made_curves import twin_of
from tests.report.conftest import of_theta

Make = Callable[..., Experiment]


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_row_per_curve_and_epsilon_then_the_baselines(made: Make) -> None:
    text = curves_csv(made(2))
    assert "\r" not in text
    assert text.endswith("\n")
    rows = read(text)
    assert tuple(rows[0]) == COLUMNS
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
    assert (twin["epsilon"], twin["theta"], twin["claimed"], twin["provable"], twin["runs"]) == (
        "inf",
        "inf",
        "inf",
        "inf",
        "1",
    )
    assert experiment.curves[1].twin is not None
    values = experiment.curves[1].twin["rmse"]
    assert float(twin["rmse"]) == values.mean()
    assert float(twin["sd_folds"]) == pytest.approx(values.std(ddof=1))
    assert float(twin["low"]) < values.mean() < float(twin["high"])
    assert {row["theta"] for row in rows[-4:]} == {""}
    plain = read(curves_csv(made(1)))
    assert {(row["theta"], row["delta"]) for row in plain} == {("", "0.0")}


def test_a_twin_without_its_results_is_empty_and_one_with_them_is_not(made: Make) -> None:
    (curve,) = of_theta(made(1)).curves
    assert curve.twin is not None
    waiting = replace(
        curve, twin=twin_of(np.where(np.arange(10) == 3, np.nan, curve.twin["rmse"].ravel())), missing=1
    )
    rows = read(curves_csv(replace(made(1), curves=(waiting,))))
    assert (rows[16]["epsilon"], rows[16]["rmse"]) == ("inf", "")
    unfinished = replace(curve, missing=1)
    rows = read(curves_csv(replace(made(1), curves=(unfinished,))))
    assert (rows[0]["rmse"], bool(rows[16]["rmse"])) == ("", True)


def test_equal_results_give_equal_bytes_whatever_else_is_there(made: Make) -> None:
    assert curves_csv(made(3)) == curves_csv(made(3))
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
    experiment = made(1)
    flat = replace(experiment.curves[0], rmse=np.ones((10, 5, 16)))
    low, high = band(experiment, flat)
    assert (low == 1).all()
    assert (high == 1).all()
