"""What a run writes and `dpmf crossings` reads, and the messages for commands that cannot work."""

import json
from pathlib import Path

import pytest

from tests.command import dpmf, task_files
from tests.runs.tiny import TASKS, TINY, outputs

pytestmark = pytest.mark.usefixtures("reference_machine")


def test_a_run_writes_what_it_promises(undisturbed: Path) -> None:
    assert all(outputs(undisturbed).values())
    assert len(task_files(undisturbed)) == TASKS
    manifest = json.loads((undisturbed / "results" / "tiny" / "manifest.json").read_bytes())
    assert manifest["config"]["dataset"]["seed"] == 3
    assert manifest["dataset"]["ratings"] == 2400
    assert manifest["last_run"]["tasks"] == TASKS
    assert {"config_sha256", "git", "versions", "cpu", "seed"} <= manifest.keys()
    assert not list(undisturbed.glob("results/**/.*"))


def test_two_processes_give_the_bytes_of_one(folder: Path, cache: Path, undisturbed: Path) -> None:
    done = dpmf(folder, cache, "run", "tiny.yaml", "-j", "2")
    assert done.stdout.startswith("synthetic, shaped like MovieLens 100K")
    assert "results in results/tiny/" in done.stderr
    assert outputs(folder) == outputs(undisturbed)
    assert task_files(folder) == task_files(undisturbed)


def test_crossings_as_json_has_the_promised_keys(undisturbed: Path, cache: Path) -> None:
    rows = json.loads(dpmf(undisturbed, cache, "crossings", "--format", "json").stdout)
    assert [(row["algorithm"], row["baseline"]) for row in rows] == [
        ("pge", "IA"), ("pge", "GE"), ("isgd", "IA"), ("isgd", "GE")
    ]  # fmt: skip
    for row in rows:
        found = row["dataset"], row["neighbours"], row["mode"]
        assert found == ("synthetic-ml-100k", "bounded", "published")
        assert {"status", "printed", "reproduced", "low", "high"} <= row.keys()
        assert (row["reproduced"] is None) == (row["status"] != "crossed")


def test_crossings_of_a_config_a_folder_or_all_but_damaged_ones(
    undisturbed: Path, finished: Path, cache: Path
) -> None:
    named = (), ("tiny.yaml",), ("results/tiny",), (str(undisturbed / "results" / "tiny"),)
    (there,) = {dpmf(finished, cache, "crossings", *names, "--format", "csv").stdout for names in named}
    (finished / "results" / "other").mkdir()
    (finished / "results" / "other" / "manifest.json").write_text("{}")
    done = dpmf(finished, cache, "crossings", "--format", "csv")
    assert done.stdout == there
    assert "passed over: results/other/manifest.json: damaged" in done.stderr


def test_odd_labels_and_diverged_models_spoil_nothing(folder: Path, cache: Path) -> None:
    odd = TINY.replace("isgd, factors: 2, epochs: 1500", 'isgd, label: "a$b_$x", factors: 2, epochs: 5')
    odd = odd.replace("runs: 3", "runs: 1").replace("folds: 4", "folds: 2")
    odd = odd.replace("factors: 2, iterations: 3", "factors: 40, regularization: 0")
    (folder / "tiny.yaml").write_text(odd)
    assert "a$b_$x" in dpmf(folder, cache, "run", "tiny.yaml", "-j", "1").stdout
    assert all(outputs(folder).values())


def test_plan_runs_nothing_and_calibrates_once(folder: Path) -> None:
    told = dpmf(folder, folder / "cache", "plan", "tiny.yaml")
    assert f"left: {TASKS} of {TASKS} tasks" in told.stdout
    assert told.stderr.startswith("calibrated this machine in ")
    assert not (folder / "results").exists()
    assert [path.name for path in (folder / "cache").iterdir()] == ["calibration"]
    again = dpmf(folder, folder / "cache", "plan", "tiny.yaml")
    assert (again.stdout, again.stderr) == (told.stdout, "")


BAD = {
    "config missing": (["run", "none.yaml"], "none.yaml: no such file"),
    "data absent": (["run", "absent.yaml"], "dpmf datasets fetch ml-1m"),
    "no results": (["crossings", "--results", "nowhere"], "nowhere: no results here"),
    "not a result": (["crossings", "tiny.yaml"], "run the experiment's config first"),
    "neither": (["crossings", "tiny.txt"], "neither a config nor a results folder"),
    "format": (["crossings", "--format", "xml"], ""),
    "unwritable": (["run", "tiny.yaml", "--results", "tiny.yaml"], "cannot be written"),
    "too few ratings": (["run", "few.yaml"], "fewer than the 100 folds"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_is_one_message_and_exit_code_2(
    folder: Path, cache: Path, arguments: list[str], message: str
) -> None:
    (folder / "absent.yaml").write_text(TINY.replace(TINY.splitlines()[0], "dataset: ml-1m"))
    few = "dataset: {kind: synthetic, like: ml-100k, users: 9, items: 9, ratings: 60}"
    (folder / "few.yaml").write_text(
        TINY.replace(TINY.splitlines()[0], few).replace("folds: 4", "folds: 100")
    )
    done = dpmf(folder, cache, *arguments, expect=2)
    assert message in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
