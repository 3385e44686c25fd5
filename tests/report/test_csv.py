"""Every CSV column that claims numbers holds numbers: a status that is not a number has its own column."""

import io
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpmf_cli.evaluation.crossings import Status, find_crossings
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.papers.printed_cells import beside_print, with_printed_cells
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.figures.tidy_csv import curves_csv, folds_csv
from dpmf_cli.report.tables.baselines import baseline_rows, baselines_table
from dpmf_cli.report.tables.combined import combined_table
from dpmf_cli.report.tables.crossings import crossings_table
from dpmf_cli.report.tables.local import Sent, improvements_table, traffic_table
from tests.conftest import make_ratings
from tests.report.conftest import of_theta
from tests.report.tables.test_local_reports import curve

Make = Callable[..., Experiment]

WORDS = {
    *("dataset", "title", "neighbours", "mode", "algorithm", "label", "baseline", "experiment", "source"),
    *("status", "low_status", "high_status", "over", "protects", "towards", "group", "method", "line"),
    *("step", "mechanism", "norm", "verdict", "label_a", "label_b", "partial"),
    *(f"{bar}_{name}" for bar in ("ia", "ge") for name in ("status", "low_status", "high_status")),
}
TRUTHS = {
    *("joint", "recrosses", "reference", "comparable", "same", "learned_nothing", "coarse"),
    *("ia_recrosses", "ge_recrosses"),
}


def assert_numeric(text: str, truths: set[str] = TRUTHS) -> pd.DataFrame:
    """Every column is read as numbers, except columns of words or of truth values."""
    table = pd.read_csv(io.StringIO(text))
    for name in set(table.columns) - WORDS if len(table) else ():
        kind = table[name].dtype.kind
        assert kind == "b" if name in truths else kind in "fi", (name, table[name].tolist())
    return table


def test_crossings(made: Make) -> None:
    experiment = replace(of_theta(made(4, incomplete="psgd")), name="ml1m_bounded")
    found = with_printed_cells(beside_print(find_crossings(experiment)))
    low, high = Status.BELOW_GRID, Status.NOT_REACHED
    ends = [replace(found[0], low=low, high=high), replace(found[0], low=low, high=0.5)]
    table = assert_numeric(crossings_table([*found, *ends], "csv", {}))
    assert table["low_status"].tolist()[-2:] == [low.value] * 2
    assert table["high_status"].tolist()[-2] == high.value
    assert table["high"].tolist()[-1] == 0.5
    assert np.isnan(table["low"].tolist()[-1])
    assert {"not run", "incomplete"} <= set(table["status"])


def test_combined_and_baselines(made: Make) -> None:
    experiment = made(4, incomplete="psgd")
    curves = tuple(replace(each, protects=Protection.VALUE) for each in experiment.curves)
    # Here `provable` says whether something can be proved.
    assert_numeric(combined_table([replace(experiment, curves=curves)], "csv"), TRUTHS | {"provable"})
    assert_numeric(baselines_table(baseline_rows(made(1)), "csv"))


def test_the_local_model() -> None:
    curves = (
        curve("blp_mog_mf", "ours", 1.2, 1.2),
        curve("isgd_local", "theirs", 1.5, 1.6),
        curve("local_mean", "mean", 1.19, 1.19),
    )
    experiment = Experiment("x", "ml-100k", "MovieLens 100K", 2, 2, 1, 0, curves, ())
    table = assert_numeric(improvements_table([experiment], "csv"))
    assert table["lower_percent"].tolist()[1] == pytest.approx(22.5, abs=0.1)
    assert table["printed_percent"].tolist()[1] == 21
    sent = [Sent("a", 1, 5, 12345.6, 0)]
    assert assert_numeric(traffic_table(sent, make_ratings(), "t", "csv"))["up_per_user"].tolist() == [
        12345.6
    ]


def test_curves_and_folds(made: Make) -> None:
    experiment = of_theta(made(3))
    diverged = experiment.curves[0].rmse.copy()
    diverged[2, 1, 0], diverged[3, 1, 0] = np.inf, np.nan
    experiment = replace(
        experiment, curves=(replace(experiment.curves[0], rmse=diverged, missing=1), *experiment.curves[1:])
    )
    assert_numeric(curves_csv(experiment))
    table = assert_numeric(folds_csv(experiment))
    assert len(table) == 3 * (10 * 5 * 16 + 10) + 4 * 10
    odd = table[table["status"] != "measured"]
    assert odd[["fold", "run", "status"]].to_numpy().tolist() == [[2, 1, "diverged"], [3, 1, "missing"]]
    of_one = table[(table["label"] == "isgd") & np.isfinite(table["epsilon"])]
    by_epsilon = of_one.groupby("epsilon")["rmse"].mean().to_numpy()
    np.testing.assert_allclose(by_epsilon, experiment.curves[1].mean())


def files(results: Path) -> Iterator[Path]:
    yield from sorted(results.glob("*/*.csv"))


def test_every_file_of_a_run(results: Path) -> None:
    names = set()
    for path in files(results):
        names.add(path.name.partition("-")[0])
        assert_numeric(path.read_text())
    assert names >= {"curves.csv", "folds.csv", "crossings.csv", "ledger.csv", "growth.csv", "error_cdf.csv"}
