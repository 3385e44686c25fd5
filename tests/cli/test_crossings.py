"""`dpmf crossings` and `dpmf plan` for smaller or interrupted runs, and RMSE at one ε."""

import json
import shutil
from pathlib import Path

import pytest

from tests.command import dpmf, task_files

pytestmark = pytest.mark.usefixtures("reference_machine")

SHOP = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 120, items: 60, ratings: 3000}
folds: 4
runs: 2
epsilons: [0.2, 2, 20]
baselines: [ia, ge]
algorithms:
  - {algorithm: pge, sweep: {effects.beta_u: [10, 100]}}
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shop.yaml").write_text(SHOP)
    return tmp_path


def rows(folder: Path, cache: Path, *arguments: str, command: str = "crossings") -> list[dict[str, object]]:
    found: list[dict[str, object]] = json.loads(
        dpmf(folder, cache, command, *arguments, "--format", "json").stdout
    )
    return found


def test_what_was_run_smaller_is_planned_alike_and_found_by_the_configs_name(
    folder: Path, cache: Path
) -> None:
    smaller = ("shop.yaml", "--runs", "1", "--held-out", "2")
    plan = json.loads(dpmf(folder, cache, "plan", *smaller, "--json").stdout)
    assert plan["name"] == "shop.held-out-2.runs-1"
    dpmf(folder, cache, "run", *smaller, "-j", "1")
    assert sum(part["tasks"] for part in plan["algorithms"]) == len(task_files(folder))
    told = dpmf(folder, cache, "crossings", "shop.yaml")
    assert "this is results/shop.held-out-2.runs-1/, a smaller run of it" in told.stderr
    assert rows(folder, cache, "shop.yaml") == rows(folder, cache, "results/shop.held-out-2.runs-1")
    dpmf(folder, cache, "run", "shop.yaml", "-j", "1", "--runs", "1")
    assert len(rows(folder, cache, "shop.yaml")) == 2 * len(rows(folder, cache, "results/shop.runs-1"))
    said = dpmf(folder, cache, "compare", "shop.yaml", "results/shop.runs-1", expect=2).stderr
    assert "has several smaller runs and no full one; name one of their folders" in said
    dpmf(folder, cache, "run", "shop.yaml", "-j", "1")
    assert {row["experiment"] for row in rows(folder, cache, "shop.yaml")} == {"shop"}


def test_each_value_of_a_sweep_has_its_row_and_of_an_interrupted_run_the_finished_folds_are_shown(
    folder: Path, cache: Path
) -> None:
    dpmf(folder, cache, "run", "shop.yaml", "-j", "1")
    assert [(row["label"], row["baseline"]) for row in rows(folder, cache)] == [
        (f"pge, effects.beta_u {value}", baseline) for value in (10, 100) for baseline in ("IA", "GE")
    ]
    for path in folder.glob("results/tasks/*/*/fold003-*.json"):
        path.unlink()
    told = dpmf(folder, cache, "crossings", "shop.yaml")
    assert "shop: only 3 of 4 folds are finished and shown" in told.stderr
    assert "partial: 3 of 4 folds" in told.stdout
    assert {(row["partial"], row["folds"]) for row in rows(folder, cache)} == {("3 of 4 folds", 3)}
    assert "(3 of 4 folds so far)" in dpmf(folder, cache, "levels", "--at", "1").stdout


def test_the_first_run_of_a_config_is_known_before_it_ends(folder: Path, cache: Path) -> None:
    dpmf(folder, cache, "run", "shop.yaml", "-j", "1", "--held-out", "1")
    shutil.rmtree(folder / "results/shop.held-out-1")
    (folder / "results/tasks/claims").unlink()
    (folder / "results/tasks/claims").mkdir()  # so that the run ends before its first task
    dpmf(folder, cache, "run", "shop.yaml", "-j", "1", expect=2)
    assert "only 1 of 4 folds are finished" in dpmf(folder, cache, "crossings", "shop.yaml").stderr
    (folder / "results/tasks/claims").rmdir()
    dpmf(folder, cache, "run", "shop.yaml", "-j", "1")
    assert "finished" not in dpmf(folder, cache, "crossings", "shop.yaml").stderr


def test_rmse_at_an_epsilon_and_none_outside_of_the_grid(folder: Path, cache: Path) -> None:
    dpmf(folder, cache, "run", "shop.yaml", "-j", "1")
    told = dpmf(folder, cache, "levels", "--at", "1").stdout
    assert "RMSE at ε = 1" in told
    assert "≈ between two ε of the grid" in told
    levels = {row["label"]: row for row in rows(folder, cache, "--at", "2", command="levels")}
    assert set(levels) == {"pge, effects.beta_u 10", "pge, effects.beta_u 100", "IA", "GE"}
    assert all(not row["interpolated"] for row in levels.values())
    said = dpmf(folder, cache, "levels", "shop.yaml", "--at", "100", expect=2).stderr
    assert "shop: ε = 100 is outside of the grid of pge, effects.beta_u 10, 0.2 to 20" in said
    said = dpmf(folder, cache, "levels", "--at", "100", expect=2).stderr
    assert "passed over: shop" in said
    assert "no result has ε = 100 in its grid" in said
