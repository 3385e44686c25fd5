"""What a second run of a config computes: what is missing, damaged, failed or new, and nothing else."""

import json
import sys
from pathlib import Path

import pytest

from dpmf_cli.algorithms.shared.model import Model
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from tests.command import dpmf, task_files
from tests.runs.tiny import TASKS, TINY, outputs

pytestmark = pytest.mark.usefixtures("reference_machine")


def test_a_second_run_computes_nothing_and_says_so(finished: Path, cache: Path) -> None:
    manifest = (finished / "results" / "tiny" / "manifest.json").read_bytes()
    before = outputs(finished)
    again = dpmf(finished, cache, "run", "tiny.yaml")
    assert "nothing to compute" in again.stderr
    assert "0 left" in again.stderr
    assert outputs(finished) == before
    assert (finished / "results" / "tiny" / "manifest.json").read_bytes() == manifest


def test_a_refined_grid_computes_only_the_new_epsilons(folder: Path, cache: Path, undisturbed: Path) -> None:
    (folder / "tiny.yaml").write_text(TINY.replace("[0.5, 2, 8]", "[2]"))
    dpmf(folder, cache, "run", "tiny.yaml", "-j", "1")
    (folder / "tiny.yaml").write_text(TINY)
    plan = json.loads(dpmf(folder, cache, "plan", "tiny.yaml", "--json").stdout)
    assert {part["label"]: part["epsilons_left"] for part in plan["algorithms"] if part["left"]} == {
        "PGE": 2,
        "ISGD": 2,
    }
    told = dpmf(folder, cache, "run", "tiny.yaml", "-j", "1").stderr
    assert "48 tasks, 24 done, 24 left; 24 of them only compute new ε (0.5, 8)" in told
    assert outputs(folder) == outputs(undisturbed)


def test_another_run_of_the_same_folds_adds_to_what_is_there(finished: Path, cache: Path) -> None:
    (finished / "tiny.yaml").write_text(TINY.replace("runs: 3", "runs: 4"))
    plan = json.loads(dpmf(finished, cache, "plan", "tiny.yaml", "--json").stdout)
    assert {part["label"]: part["left"] for part in plan["algorithms"]} == {
        "GA": 0, "IA": 0, "GE": 0, "Clean MF (ALS)": 4, "PGE": 4, "ISGD": 4
    }  # fmt: skip


def test_a_damaged_result_is_named_and_computed_again(finished: Path, cache: Path, undisturbed: Path) -> None:
    victim = next((finished / "results").glob("tasks/**/*.json"))
    victim.write_bytes(victim.read_bytes()[:-40])
    again = dpmf(finished, cache, "run", "tiny.yaml", "-j", "1")
    assert f"{victim.relative_to(finished)}: damaged" in again.stderr
    assert "computed 1 tasks" in again.stderr
    assert outputs(finished) == outputs(undisturbed)


def test_a_failing_task_is_recorded_and_the_others_go_on(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dpmf_cli.algorithms.friedman2016.isgd import InputPerturbationSGD
    from dpmf_cli.cli import main as cli

    fit = InputPerturbationSGD.fit

    def fails_once(
        self: InputPerturbationSGD, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> Model:
        if (streams.fold, streams.run) == (2, 1):
            raise ZeroDivisionError("on purpose")
        return fit(self, train, epsilons, streams=streams, curator=curator)

    monkeypatch.setattr(InputPerturbationSGD, "fit", fails_once)
    monkeypatch.setattr(sys, "argv", ["dpmf", "run", "tiny.yaml", "-j", "1"])
    monkeypatch.setenv("DPMF_CACHE", str(cache))
    monkeypatch.chdir(folder)
    with pytest.raises(SystemExit) as exited:
        cli.main()
    assert exited.value.code == 1
    assert "1 tasks failed" in capsys.readouterr().err
    manifest = json.loads((folder / "results" / "tiny" / "manifest.json").read_bytes())
    (failure,) = manifest["failures"]
    assert (failure["algorithm"], failure["fold"], failure["run"]) == ("ISGD", 2, 1)
    assert "ZeroDivisionError: on purpose" in failure["traceback"]
    assert len(task_files(folder)) == TASKS - 1
    rows = json.loads(dpmf(folder, cache, "crossings", "--format", "json").stdout)
    assert {row["algorithm"]: row["status"] for row in rows}["isgd"] == "incomplete"
    monkeypatch.undo()
    dpmf(folder, cache, "run", "tiny.yaml", "-j", "1")
    assert len(task_files(folder)) == TASKS


def test_the_manifest_follows_the_config_though_nothing_is_computed(finished: Path, cache: Path) -> None:
    (finished / "tiny.yaml").write_text(TINY.replace("  - {algorithm: isgd, factors: 2, epochs: 1500}\n", ""))
    stale = dpmf(finished, cache, "crossings", "tiny.yaml", "--format", "json")
    assert "`dpmf run tiny.yaml` brings the results up to date" in stale.stderr
    again = dpmf(finished, cache, "run", "tiny.yaml")
    assert "nothing to compute" in again.stderr
    assert "held results of another form of this config" in again.stderr
    shown = dpmf(finished, cache, "crossings", "--format", "json")
    assert {row["algorithm"] for row in json.loads(shown.stdout)} == {"pge"}
    assert shown.stderr == ""
