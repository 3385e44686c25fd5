"""Runs that add ε where curves cross: the same ε whichever process computes them, however often it is interrupted."""

import json
import os
import signal
from pathlib import Path

import pytest

from tests.command import dpmf, fork, task_files, wait_for_tasks
from tests.runs.tiny import TINY, outputs

pytestmark = pytest.mark.usefixtures("reference_machine")

COARSE = (
    TINY.replace("[0.5, 2, 8]", "[0.1, 0.5, 8, 40]").replace("epochs: 1500", "epochs: 20") + "refine: true\n"
)


@pytest.fixture(scope="module")
def refined(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A folder with the results of a run in one process, and what it said."""
    folder = tmp_path_factory.mktemp("refined")
    (folder / "tiny.yaml").write_text(COARSE)
    (folder / "said").write_text(dpmf(folder, cache, "run", "tiny.yaml", "-j", "1").stderr)
    return folder


def crossings(folder: Path, cache: Path) -> dict[tuple[str, str], dict[str, object]]:
    rows = json.loads(dpmf(folder, cache, "crossings", "--format", "json").stdout)
    return {(row["algorithm"], row["baseline"]): row for row in rows}


def test_epsilons_are_added_where_curves_cross_until_crossings_are_settled(
    refined: Path, cache: Path
) -> None:
    assert "refining crossings" in (refined / "said").read_text()
    added = json.loads((refined / "results/tiny/manifest.json").read_bytes())["added"]
    found = crossings(refined, cache)
    assert not any(row["coarse"] for row in found.values())
    for key in (("pge", "IA"), ("isgd", "IA")):
        at = found[key]["reproduced"]
        assert isinstance(at, float)
        assert any(abs(epsilon / at - 1) < 0.7 for epsilon in added[key[0].upper()])
    curves = (refined / "results/tiny/curves.csv").read_text()
    assert all(f",{epsilon!r}," in curves for epsilons in added.values() for epsilon in epsilons)


def test_without_refine_nothing_is_added(folder: Path, cache: Path, refined: Path) -> None:
    (folder / "tiny.yaml").write_text(COARSE.replace("refine: true", "refine: false"))
    said = dpmf(folder, cache, "run", "tiny.yaml", "-j", "1").stderr
    assert "refining" not in said
    assert len(task_files(folder)) < len(task_files(refined))
    ours, theirs = crossings(folder, cache), crossings(refined, cache)
    moved = [key for key in ours if ours[key]["reproduced"] != theirs[key]["reproduced"]]
    assert moved


def test_two_processes_and_killed_runs_add_the_same(folder: Path, cache: Path, refined: Path) -> None:
    (folder / "tiny.yaml").write_text(COARSE)
    for jobs, count in (("1", 5), ("2", len(task_files(refined)) - 5)):  # the second time while ε are added
        process = fork(folder, cache, "run", "tiny.yaml", "-j", jobs)
        wait_for_tasks(folder, process, count)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    dpmf(folder, cache, "run", "tiny.yaml", "-j", "1")
    assert outputs(folder) == outputs(refined)
    assert task_files(folder) == task_files(refined)


def test_the_other_commands_know_them(refined: Path, cache: Path) -> None:
    before = (refined / "results/tiny/manifest.json").read_bytes()
    assert "nothing to compute" in dpmf(refined, cache, "run", "tiny.yaml").stderr
    assert (refined / "results/tiny/manifest.json").read_bytes() == before
    assert "more may come" in dpmf(refined, cache, "plan", "tiny.yaml").stdout
    assert json.loads(
        dpmf(refined, cache, "verify", "results/tiny", "--recompute", "200", "--seed", "1", "--json").stdout
    )
    victim = max((refined / "results").glob("tasks/*/pge-*/*.json"), key=os.path.getmtime)  # of an added ε
    whole = victim.read_bytes()
    victim.unlink()
    told = dpmf(refined, cache, "verify", "results/tiny", expect=1).stdout
    victim.write_bytes(whole)
    assert "1 of its tasks have no sound result" in told
    dpmf(refined, cache, "report", "results/tiny")


def test_it_cannot_be_asked_for_while_ratings_grow(folder: Path, cache: Path) -> None:
    (folder / "tiny.yaml").write_text(COARSE + "twins: true\ngrowth: {portions: [0.5, 1], order: random}\n")
    told = dpmf(folder, cache, "plan", "tiny.yaml", expect=2).stderr
    assert "tiny.yaml:9:9: refine: ε are not added while the ratings grow" in told
