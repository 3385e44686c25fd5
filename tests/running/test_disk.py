"""An experiment takes as much disk space as was estimated for the pages."""

from pathlib import Path

from dpmf_cli.config import load_config
from dpmf_cli.config.shipped import FOLDER
from dpmf_cli.running.machine import REFERENCE_CORES
from dpmf_cli.running.plan import disk_bytes, reference_plan
from tests.command import dpmf


def taken(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def test_what_a_run_leaves_is_near_the_estimate(tmp_path: Path) -> None:
    dpmf(tmp_path, tmp_path / "cache", "run", "quickstart")
    config = load_config(FOLDER / "quickstart.yaml")
    plan = reference_plan(config)
    estimate = disk_bytes(plan.left, plan.ratings, timestamps=config.dataset.has_timestamps)
    found = taken(tmp_path / "results") + taken(tmp_path / "cache" / "ratings")
    assert 0.7 < estimate / found < 1.4


def test_a_plan_on_the_reference_machine_does_not_look_at_this_one(tmp_path: Path) -> None:
    """Netflix needs the grid in parts with that machine's memory. Sizes are those of the catalog, whether the
    data are present or not."""
    config = load_config(FOLDER / "netflix_bounded.yaml")
    plan = reference_plan(config)
    assert plan.ratings == 100_480_507
    assert len(plan.left) == plan.total > 0
    assert plan.peak_bytes(1) < 8 << 30 < plan.peak_bytes(REFERENCE_CORES)
