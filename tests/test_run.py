"""Whole runs from the command line: the same bytes whatever happens, nothing lost, errors as promised."""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

TINY = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 120, items: 80, ratings: 2400}
folds: 4
runs: 3
epsilons: [0.5, 2, 8]
baselines: [ga, ia, ge, {algorithm: als, factors: 2, iterations: 3}]
algorithms:
  - algorithm: pge
  - {algorithm: isgd, factors: 2, epochs: 1500}
"""
OUTPUTS = ("curves.csv", "crossings.csv", "crossings.md", "ledger.csv", "curves.png", "curves.svg")
TASKS = 4 * 3 + 3 * 4 * 3


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tiny.yaml").write_text(TINY)
    return tmp_path


def environment(cache: Path) -> dict[str, str]:
    return {**os.environ, "DPMF_CACHE": str(cache), "DPMF_DATA": str(cache / "no-data")}


def dpmf(folder: Path, cache: Path, *arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dpmf_cli", *arguments]
    done = subprocess.run(
        command, cwd=folder, env=environment(cache), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == expect, done.stderr
    assert "Traceback" not in done.stderr
    return done


def outputs(folder: Path, results: str = "results") -> dict[str, bytes]:
    return {name: (folder / results / "tiny" / name).read_bytes() for name in OUTPUTS}


def task_files(folder: Path, results: str = "results") -> dict[str, bytes]:
    root = folder / results
    return {str(path.relative_to(root)): path.read_bytes() for path in root.glob("tasks/**/*.json")}


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    """A folder with the results of one run in one process."""
    folder = tmp_path_factory.mktemp("undisturbed")
    (folder / "tiny.yaml").write_text(TINY)
    dpmf(folder, cache, "run", "tiny.yaml", "-j", "1")
    return folder


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
    assert "PGE" in done.stdout
    assert outputs(folder) == outputs(undisturbed)
    assert task_files(folder) == task_files(undisturbed)


def test_a_second_run_computes_nothing_and_says_so(folder: Path, cache: Path) -> None:
    dpmf(folder, cache, "run", "tiny.yaml", "-j", "1")
    manifest = (folder / "results" / "tiny" / "manifest.json").read_bytes()
    before = outputs(folder)
    again = dpmf(folder, cache, "run", "tiny.yaml")
    assert "nothing to compute" in again.stderr
    assert "0 left" in again.stderr
    assert outputs(folder) == before
    assert (folder / "results" / "tiny" / "manifest.json").read_bytes() == manifest


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_killed_at_random_moments_and_resumed_gives_the_same_bytes(
    folder: Path, cache: Path, undisturbed: Path, jobs: str
) -> None:
    rng = random.Random(int(jobs))
    command = [sys.executable, "-m", "dpmf_cli", "run", "tiny.yaml", "-j", jobs]
    interrupted = 0
    for _ in range(5):
        process = subprocess.Popen(
            command, cwd=folder, env=environment(cache), stderr=subprocess.DEVNULL, start_new_session=True
        )
        begin, seen = time.monotonic(), len(task_files(folder))
        while process.poll() is None and time.monotonic() - begin < 60:
            if len(task_files(folder)) >= min(seen + rng.randint(1, 8), TASKS - 1):
                break
            time.sleep(0.005)
        interrupted += process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert interrupted >= 2
    dpmf(folder, cache, "run", "tiny.yaml", "-j", jobs)
    assert outputs(folder) == outputs(undisturbed)
    assert task_files(folder) == task_files(undisturbed)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_keeps_finished_tasks_and_says_how_to_go_on(
    folder: Path, cache: Path, undisturbed: Path, jobs: str
) -> None:
    command = [sys.executable, "-m", "dpmf_cli", "run", "tiny.yaml", "-j", jobs]
    for _ in range(5):  # a busy machine may let a run end before it is interrupted
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment(cache),
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a background job ignores it
        )
        while len(task_files(folder)) < 3 and process.poll() is None:
            time.sleep(0.005)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        if process.returncode:
            break
        shutil.rmtree(folder / "results")
    assert process.returncode == 130, errors
    assert "interrupted: finished tasks are kept" in errors
    assert "Traceback" not in errors
    assert 3 <= len(task_files(folder)) <= TASKS
    dpmf(folder, cache, "run", "tiny.yaml")
    assert outputs(folder) == outputs(undisturbed)


def test_ctrl_c_while_workers_are_still_starting_is_as_quiet(folder: Path, cache: Path) -> None:
    command = [sys.executable, "-m", "dpmf_cli", "run", "tiny.yaml", "-j", "2"]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment(cache),
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    while len(children.read_text().split()) < 3 and process.poll() is None:  # two workers and a tracker
        time.sleep(0.005)
    time.sleep(0.3)  # while they import
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "interrupted: finished tasks are kept" in errors
    assert "Traceback" not in errors


def test_workers_end_with_a_parent_that_is_killed(folder: Path, cache: Path, undisturbed: Path) -> None:
    command = [sys.executable, "-m", "dpmf_cli", "run", "tiny.yaml", "-j", "2"]
    process = subprocess.Popen(
        command, cwd=folder, env=environment(cache), stderr=subprocess.DEVNULL, start_new_session=True
    )
    while len(task_files(folder)) < 3 and process.poll() is None:
        time.sleep(0.005)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 20
    while session_lives(process.pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not session_lives(process.pid)
    dpmf(folder, cache, "run", "tiny.yaml")
    assert outputs(folder) == outputs(undisturbed)


def session_lives(group: int) -> bool:
    """Whether a process of that group is still there."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_killed_worker_is_said_and_what_was_finished_is_kept(folder: Path, cache: Path) -> None:
    command = [sys.executable, "-m", "dpmf_cli", "run", "tiny.yaml", "-j", "2"]
    process = subprocess.Popen(command, cwd=folder, env=environment(cache), stderr=subprocess.PIPE, text=True)
    while len(task_files(folder)) < 3 and process.poll() is None:
        time.sleep(0.005)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[-1]), signal.SIGKILL)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 2, errors
    assert "a worker process was killed" in errors
    assert "Traceback" not in errors
    assert len(task_files(folder)) >= 3


def test_two_runs_at_once_do_not_harm_each_other(folder: Path, cache: Path, undisturbed: Path) -> None:
    command = [sys.executable, "-m", "dpmf_cli", "run", "tiny.yaml", "-j", "1"]
    both = [
        subprocess.Popen(command, cwd=folder, env=environment(cache), stderr=subprocess.DEVNULL)
        for _ in range(2)
    ]
    assert [process.wait(timeout=300) for process in both] == [0, 0]
    assert outputs(folder) == outputs(undisturbed)
    assert task_files(folder) == task_files(undisturbed)


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
    assert "48 tasks, 24 done, 24 left; 24 of them at new ε alone (0.5, 8)" in told
    assert outputs(folder) == outputs(undisturbed)


def test_another_run_of_the_same_folds_adds_to_what_is_there(folder: Path, cache: Path) -> None:
    dpmf(folder, cache, "run", "tiny.yaml", "-j", "1")
    (folder / "tiny.yaml").write_text(TINY.replace("runs: 3", "runs: 4"))
    plan = json.loads(dpmf(folder, cache, "plan", "tiny.yaml", "--json").stdout)
    assert {part["label"]: part["left"] for part in plan["algorithms"]} == {
        "GA": 0, "IA": 0, "GE": 0, "Clean MF (ALS)": 4, "PGE": 4, "ISGD": 4
    }  # fmt: skip


def test_a_damaged_result_is_named_and_computed_again(folder: Path, cache: Path, undisturbed: Path) -> None:
    dpmf(folder, cache, "run", "tiny.yaml", "-j", "1")
    victim = next((folder / "results").glob("tasks/**/*.json"))
    victim.write_bytes(victim.read_bytes()[:-40])
    again = dpmf(folder, cache, "run", "tiny.yaml", "-j", "1")
    assert f"{victim.relative_to(folder)}: damaged" in again.stderr
    assert "computed 1 tasks" in again.stderr
    assert outputs(folder) == outputs(undisturbed)


def test_a_failing_task_is_recorded_and_the_others_go_on(
    folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from dpmf_cli import cli
    from dpmf_cli.algorithms.input_perturbation import InputPerturbationSGD

    fit = InputPerturbationSGD.fit

    def fails_once(self, train, *, streams, ledger):  # type: ignore[no-untyped-def]
        if (streams.fold, streams.run) == (2, 1):
            raise ZeroDivisionError("on purpose")
        return fit(self, train, streams=streams, ledger=ledger)

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


def test_crossings_as_json_has_the_promised_keys(undisturbed: Path, cache: Path) -> None:
    rows = json.loads(dpmf(undisturbed, cache, "crossings", "--format", "json").stdout)
    assert [(row["algorithm"], row["baseline"]) for row in rows] == [
        ("pge", "IA"), ("pge", "GE"), ("isgd", "IA"), ("isgd", "GE")
    ]  # fmt: skip
    for row in rows:
        assert (row["dataset"], row["neighbours"], row["mode"]) == (
            "synthetic-ml-100k",
            "bounded",
            "published",
        )
        assert {"status", "printed", "reproduced", "low", "high"} <= row.keys()
        assert (row["reproduced"] is None) == (row["status"] != "crossed")


@pytest.mark.parametrize("named", ["tiny.yaml", "results/tiny"])
def test_crossings_of_a_config_or_a_folder(undisturbed: Path, cache: Path, named: str) -> None:
    every = dpmf(undisturbed, cache, "crossings", "--format", "csv").stdout
    assert dpmf(undisturbed, cache, "crossings", named, "--format", "csv").stdout == every


def test_the_manifest_follows_the_config_though_nothing_is_computed(folder: Path, cache: Path) -> None:
    dpmf(folder, cache, "run", "tiny.yaml", "-j", "1")
    (folder / "tiny.yaml").write_text(TINY.replace("  - {algorithm: isgd, factors: 2, epochs: 1500}\n", ""))
    stale = dpmf(folder, cache, "crossings", "tiny.yaml", "--format", "json")
    assert "`dpmf run tiny.yaml` brings it up to date" in stale.stderr
    again = dpmf(folder, cache, "run", "tiny.yaml")
    assert "nothing to compute" in again.stderr
    assert "was of another form of this config" in again.stderr
    shown = dpmf(folder, cache, "crossings", "--format", "json")
    assert {row["algorithm"] for row in json.loads(shown.stdout)} == {"pge"}
    assert shown.stderr == ""


def test_results_elsewhere_and_damaged_manifests(undisturbed: Path, folder: Path, cache: Path) -> None:
    there = dpmf(folder, cache, "crossings", str(undisturbed / "results" / "tiny"), "--format", "csv").stdout
    assert there == dpmf(undisturbed, cache, "crossings", "--format", "csv").stdout
    dpmf(folder, cache, "run", "tiny.yaml", "-j", "1")
    (folder / "results" / "other").mkdir()
    (folder / "results" / "other" / "manifest.json").write_text("{}")
    done = dpmf(folder, cache, "crossings", "--format", "csv")
    assert done.stdout == there
    assert "passed over: results/other/manifest.json: damaged" in done.stderr


def test_results_can_be_read_by_others(undisturbed: Path) -> None:
    umask = os.umask(0)
    os.umask(umask)
    modes = {path.stat().st_mode & 0o777 for path in (undisturbed / "results").rglob("*.*") if path.is_file()}
    assert modes == {0o666 & ~umask}


def test_odd_labels_and_diverged_models_spoil_nothing(folder: Path, cache: Path) -> None:
    odd = TINY.replace(
        "{algorithm: isgd, factors: 2, epochs: 1500}",
        '{algorithm: isgd, label: "a$b_$x", factors: 2, epochs: 5}',
    )
    odd = odd.replace("runs: 3", "runs: 1").replace("folds: 4", "folds: 2")
    odd = odd.replace(
        "{algorithm: als, factors: 2, iterations: 3}", "{algorithm: als, factors: 40, regularization: 0}"
    )
    (folder / "tiny.yaml").write_text(odd)
    assert "a$b_$x" in dpmf(folder, cache, "run", "tiny.yaml", "-j", "1").stdout
    assert all(outputs(folder).values())


def test_tasks_deleted_during_a_run_are_missed(folder: Path, cache: Path) -> None:
    command = [sys.executable, "-m", "dpmf_cli", "run", "tiny.yaml", "-j", "1"]
    process = subprocess.Popen(command, cwd=folder, env=environment(cache), stderr=subprocess.PIPE, text=True)
    while len(task_files(folder)) < 5 and process.poll() is None:
        time.sleep(0.005)
    next((folder / "results").glob("tasks/**/*.json")).unlink()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "1 tasks have no result though they were run" in errors


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
    "neither": (["crossings", "tiny.txt"], "neither a config (.yaml) nor a results folder"),
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


def test_errors_go_to_stderr_and_tables_to_stdout(undisturbed: Path, cache: Path) -> None:
    done = dpmf(undisturbed, cache, "run", "tiny.yaml")
    assert "results in results/tiny/" in done.stderr
    assert done.stdout.startswith("synthetic, shaped like MovieLens 100K")
    assert done.stdout.rstrip().endswith("what the step spends of the total ε")
