"""What is behind a result: its command, and the time of all runs that contributed to it."""

import shutil
from pathlib import Path

from dpmf_cli.datasets import Folders
from dpmf_cli.experiment.config import config_of
from dpmf_cli.experiment.results.manifest import read_manifest
from dpmf_cli.report.html.experiment import provenance_of
from dpmf_cli.studies.experiment import run


def again(folder: Path, base: Path) -> dict[str, object]:
    """Runs what is left of the experiment in a results folder, and returns its manifest."""
    manifest = read_manifest(folder)
    config = config_of(manifest["config"])
    cache = base / "cache"
    run(
        config,
        Folders(base, cache, base, folder.parent),
        command="dpmf run mine.yaml -j 1",
    )
    return read_manifest(folder)


def test_time_and_tasks_are_those_of_all_runs(results: Path, tmp_path: Path) -> None:
    shutil.copytree(results, tmp_path / "results")
    folder = tmp_path / "results" / "mine"
    first = read_manifest(folder)
    tasks = first["spent"]["tasks"]
    assert tasks == first["last_run"]["tasks"] > 0
    assert again(folder, tmp_path) == first  # nothing was computed
    for path in sorted((tmp_path / "results" / "tasks").rglob("pge-*/fold002-run001-*.json"))[:2]:
        path.unlink()
    second = again(folder, tmp_path)
    lost = second["last_run"]["tasks"]  # type: ignore[index]
    assert 0 < lost < tasks
    assert second["spent"]["tasks"] == tasks + lost  # type: ignore[index]
    assert second["spent"]["wall_seconds"] > first["spent"]["wall_seconds"]  # type: ignore[index]
    facts = dict(provenance_of(folder, second).facts)
    assert facts["command"] == "dpmf run mine.yaml -j 1"
    assert f"{tasks + lost} tasks computed in" in facts["time"]
    assert facts["time"].endswith(" of CPU time")
    assert facts["seed"] == "2016"


def test_tasks_that_others_computed_took_no_time_here(results: Path) -> None:
    manifest = read_manifest(results / "mine")
    manifest["spent"] = {"tasks": 0, "wall_seconds": 3.2, "cpu_seconds": 0.0}
    assert provenance_of(results / "mine", manifest).time.startswith("3 s; another experiment")


def test_an_older_manifest_says_what_it_knows(results: Path) -> None:
    manifest = read_manifest(results / "mine")
    for key in ("command", "spent", "git", "cpu"):
        del manifest[key]
    found = provenance_of(results / "mine", manifest)
    assert found.command == "dpmf run configs/mine.yaml"
    assert found.time.endswith("in its last run")
    manifest["spent"] = {
        "tasks": 2,
        "wall_seconds": 3.2,
        "task_seconds": 60.0,
    }  # by the clock, in versions before
    assert provenance_of(results / "mine", manifest).time == "3 s; 2 tasks computed"
    assert "processor" not in dict(found.facts)
