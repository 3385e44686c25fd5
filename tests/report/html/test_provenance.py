"""What is behind a result: its command, and the time of all runs that contributed to it."""

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from dpmf_cli.datasets import Folders
from dpmf_cli.experiment.config import config_of
from dpmf_cli.experiment.results.manifest import read_manifest
from dpmf_cli.report.html.page import _environment
from dpmf_cli.studies.experiment import run


def again(folder: Path, base: Path) -> dict[str, Any]:
    """Runs what is left of the experiment in a results folder, and returns its manifest."""
    manifest = read_manifest(folder)
    config = config_of(manifest["config"])
    cache = base / "cache"
    run(config, Folders(base, cache, base, folder.parent), command="dpmf run mine.yaml -j 1")
    return read_manifest(folder)


def about(folder: Path, manifest: dict[str, Any]) -> str:
    """The facts behind a result, as the page has them."""
    parts = cast(Any, _environment().get_template("parts.html.j2").module)
    return str(parts.facts(SimpleNamespace(folder=folder, manifest=manifest)))


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
    lost = second["last_run"]["tasks"]
    assert 0 < lost < tasks
    assert second["spent"]["tasks"] == tasks + lost
    assert second["spent"]["wall_seconds"] > first["spent"]["wall_seconds"]
    text = about(folder, second)
    assert "<dd>dpmf run mine.yaml -j 1</dd>" in text
    assert re.search(rf"{tasks + lost} tasks computed in [^<]* of CPU time, [^<]* by the clock<", text)
    assert "<dt>seed</dt><dd>2016</dd>" in text


def test_an_older_manifest_says_what_it_knows_and_what_others_computed_took_no_time(results: Path) -> None:
    folder = results / "mine"
    manifest = read_manifest(folder)
    others = {**manifest, "spent": {"tasks": 0, "wall_seconds": 3.2, "cpu_seconds": 0.0}}
    assert "<dd>3 s; another experiment, or an interrupted run, computed its tasks</dd>" in about(
        folder, others
    )
    for key in ("command", "spent", "git", "cpu"):
        del manifest[key]
    text = about(folder, manifest)
    assert "<dd>dpmf run configs/mine.yaml</dd>" in text
    assert " in its last run</dd>" in text
    assert "processor" not in text
    # By the clock, in versions before.
    old = {**manifest, "spent": {"tasks": 2, "wall_seconds": 3.2, "task_seconds": 60.0}}
    assert "<dd>2 tasks computed in 3 s by the clock</dd>" in about(folder, old)
