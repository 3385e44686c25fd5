"""`dpmf crossings` and `dpmf plan` for smaller or interrupted runs, and RMSE at one ε."""

import shutil
from pathlib import Path

import pytest

from tests.runs.tiny import Place

pytestmark = pytest.mark.usefixtures("undrawn")

SHOP = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 120, items: 60, ratings: 3000}
folds: 4
runs: 2
epsilons: [0.2, 2, 20]
baselines: [ia, ge]
algorithms:
  - {algorithm: pge, sweep: {effects.beta_u: [10, 100]}}
"""


@pytest.fixture
def shop(tmp_path: Path, session_cache: Path) -> Place:
    place = Place(tmp_path, session_cache)
    place.write(SHOP, "shop")
    return place


def test_what_was_run_smaller_is_planned_alike_and_found_by_the_configs_name(shop: Place) -> None:
    smaller = ("shop.yaml", "--runs", "1", "--held-out", "2")
    plan = shop.json("plan", *smaller)
    assert plan["name"] == "shop.held-out-2.runs-1"
    shop.dpmf("run", *smaller, "-j", "1")
    assert sum(part["tasks"] for part in plan["algorithms"]) == len(shop.tasks)
    told = shop.dpmf("crossings", "shop.yaml")
    assert "this is results/shop.held-out-2.runs-1/, a smaller run of it" in told.stderr
    assert shop.json("crossings", "shop.yaml") == shop.json("crossings", "results/shop.held-out-2.runs-1")
    shop.dpmf("run", "shop.yaml", "-j", "1", "--runs", "1")
    assert len(shop.json("crossings", "shop.yaml")) == 2 * len(shop.json("crossings", "results/shop.runs-1"))
    said = shop.dpmf("compare", "shop.yaml", "results/shop.runs-1", expect=2).stderr
    assert "has several smaller runs and no full one; name one of their folders" in said
    shop.run(name="shop")
    assert {row["experiment"] for row in shop.json("crossings", "shop.yaml")} == {"shop"}


def test_each_value_of_a_sweep_has_its_row_and_of_an_interrupted_run_the_finished_folds_are_shown(
    shop: Place,
) -> None:
    shop.run(name="shop")
    assert [(row["label"], row["baseline"]) for row in shop.json("crossings")] == [
        (f"pge, effects.beta_u {value}", baseline) for value in (10, 100) for baseline in ("IA", "GE")
    ]
    for path in shop.folder.glob("results/tasks/*/*/fold003-*.json"):
        path.unlink()
    told = shop.dpmf("crossings", "shop.yaml")
    assert "shop: only 3 of 4 folds are finished and shown" in told.stderr
    assert "partial: 3 of 4 folds" in told.stdout
    assert {(row["partial"], row["folds"]) for row in shop.json("crossings")} == {("3 of 4 folds", 3)}
    assert "(3 of 4 folds so far)" in shop.dpmf("levels", "--at", "1").stdout


def test_the_first_run_of_a_config_is_known_before_it_ends(shop: Place) -> None:
    shop.dpmf("run", "shop.yaml", "-j", "1", "--held-out", "1")
    shutil.rmtree(shop.folder / "results/shop.held-out-1")
    (shop.folder / "results/tasks/claims").unlink()
    (shop.folder / "results/tasks/claims").mkdir()  # so that the run ends before its first task
    shop.dpmf("run", "shop.yaml", "-j", "1", expect=2)
    assert "only 1 of 4 folds are finished" in shop.dpmf("crossings", "shop.yaml").stderr
    (shop.folder / "results/tasks/claims").rmdir()
    shop.run(name="shop")
    assert "finished" not in shop.dpmf("crossings", "shop.yaml").stderr


def test_rmse_at_an_epsilon_and_none_outside_of_the_grid(shop: Place) -> None:
    shop.run(name="shop")
    told = shop.dpmf("levels", "--at", "1").stdout
    assert "RMSE at ε = 1" in told
    assert "≈ between two ε of the grid" in told
    levels = {row["label"]: row for row in shop.json("levels", "--at", "2")}
    assert set(levels) == {"pge, effects.beta_u 10", "pge, effects.beta_u 100", "IA", "GE"}
    assert all(not row["interpolated"] for row in levels.values())
    said = shop.dpmf("levels", "shop.yaml", "--at", "100", expect=2).stderr
    assert "shop: ε = 100 is outside of the grid of pge, effects.beta_u 10, 0.2 to 20" in said
    said = shop.dpmf("levels", "--at", "100", expect=2).stderr
    assert "passed over: shop" in said
    assert "no result has ε = 100 in its grid" in said
