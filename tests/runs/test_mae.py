"""MAE beside RMSE: measured by every run, and not required in results of older versions."""

import json
from pathlib import Path

from dpmf_cli.experiment.results.store import encode, sealed
from tests.command import dpmf, task_files
from tests.runs.tiny import rows

CURVES = "results/tiny/curves.csv"


def test_a_run_measures_it(finished: Path, cache: Path) -> None:
    curves = rows(finished / CURVES)
    assert all(0 < float(row["mae"]) < float(row["rmse"]) for row in curves)
    (ia,) = (row for row in curves if row["label"] == "IA")
    stored = [json.loads(body)["mae"] for name, body in task_files(finished).items() if "/ia-" in name]
    assert float(ia["mae"]) == sum(mae for (mae,) in stored) / len(stored)
    levels = json.loads(dpmf(finished, cache, "levels", "--at", "2", "--format", "json").stdout)
    assert {row["label"]: row["mae"] for row in levels}["IA"] == float(ia["mae"])


def test_results_without_it_are_kept_and_read(finished: Path, cache: Path) -> None:
    for name, body in task_files(finished).items():
        whole = json.loads(body)
        del whole["mae"], whole["sha256"]
        (finished / "results" / name).write_bytes(encode(sealed(whole)))
    old = task_files(finished)
    assert "nothing to compute" in dpmf(finished, cache, "run", "tiny.yaml").stderr
    assert task_files(finished) == old
    assert "mae" not in rows(finished / CURVES)[0]
    assert "–" in dpmf(finished, cache, "levels", "--at", "2").stdout
    dpmf(finished, cache, "verify", "results", "--recompute", "4", "--seed", "1")
    for path in (finished / "results").glob("tasks/*/ia-*/*.json"):
        path.unlink()
    dpmf(finished, cache, "run", "tiny.yaml")
    assert {row["label"] for row in rows(finished / CURVES) if row["mae"]} == {"IA"}
