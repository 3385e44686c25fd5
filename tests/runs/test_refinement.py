"""Runs that add ε where curves cross: the same ε whichever process computes them, however often it is interrupted."""

import os
import signal
from typing import Any

import pytest

from tests.command import fork, wait_for_tasks
from tests.runs.tiny import TINY, Place

pytestmark = pytest.mark.usefixtures("reference_machine")

COARSE = (
    TINY.replace("[0.5, 2, 8]", "[0.1, 0.5, 8, 40]").replace("epochs: 1500", "epochs: 20") + "refine: true\n"
)


@pytest.fixture(scope="module")
def refined(undisturbed: Place, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """A folder with the results of a run in one process, and what it said."""
    place = Place(tmp_path_factory.mktemp("refined"), undisturbed.cache)
    (place.folder / "said").write_text(place.run(COARSE).stderr)
    return place


def crossings(place: Place) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["algorithm"], row["baseline"]): row for row in place.json("crossings")}


def test_epsilons_are_added_where_curves_cross_until_crossings_are_settled(refined: Place) -> None:
    assert "refining crossings" in (refined.folder / "said").read_text()
    added, found = refined.manifest["added"], crossings(refined)
    assert not any(row["coarse"] for row in found.values())
    for key in (("pge", "IA"), ("isgd", "IA")):
        at = found[key]["reproduced"]
        assert any(abs(epsilon / at - 1) < 0.7 for epsilon in added[key[0].upper()])
    curves = {row["epsilon"] for row in refined.rows("curves.csv")}
    assert {repr(epsilon) for epsilons in added.values() for epsilon in epsilons} <= curves


def test_without_refine_nothing_is_added(place: Place, refined: Place) -> None:
    assert "refining" not in place.run(COARSE.replace("refine: true", "refine: false")).stderr
    assert len(place.tasks) < len(refined.tasks)
    ours, theirs = crossings(place), crossings(refined)
    assert [key for key in ours if ours[key]["reproduced"] != theirs[key]["reproduced"]]


def test_two_processes_and_killed_runs_add_the_same(place: Place, refined: Place) -> None:
    place.write(COARSE)
    for jobs, count in (("1", 5), ("2", len(refined.tasks) - 5)):  # the second time while ε are added
        process = fork(place.folder, place.cache, "run", "tiny.yaml", "-j", jobs)
        wait_for_tasks(place.folder, process, count)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    place.run()
    assert (place.outputs, place.tasks) == (refined.outputs, refined.tasks)


def test_the_other_commands_know_them(refined: Place) -> None:
    before = refined.path("manifest.json").read_bytes()
    assert "nothing to compute" in refined.run().stderr
    assert refined.path("manifest.json").read_bytes() == before
    assert "more may come" in refined.dpmf("plan", "tiny.yaml").stdout
    refined.dpmf("verify", "results/tiny", "--recompute", "200", "--seed", "1")
    victim = max((refined.folder / "results").glob("tasks/*/pge-*/*.json"), key=os.path.getmtime)
    whole = victim.read_bytes()
    victim.unlink()  # of an added ε
    told = refined.dpmf("verify", "results/tiny", expect=1).stdout
    victim.write_bytes(whole)
    assert "1 of its tasks have no sound result" in told
    refined.dpmf("report", "results/tiny")
