"""The power is cut after every call that a run, a changed run and a report make; then each command is resumed."""

import os
import random
import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from dpmf_cli.cli import main as cli
from dpmf_cli.core.files import WRITING, write_whole
from dpmf_cli.experiment.results.store import Store
from tests.command import dpmf, fork
from tests.faults.arena import CONFIG, differing, files, ratings_csv
from tests.faults.power_cut import State, after, after_each, lay_out
from tests.faults.recorder import Call, Recorder, recorded, watch
from tests.faults.tally import FULL, Tally

SMALL = CONFIG.replace("folds: 4\nruns: 3", "folds: 2\nruns: 1").replace("[0.5, 2, 8]", "[0.5, 8]")
SMALL = SMALL.replace("  - {algorithm: isgd, factors: 2, epochs: 100}\n", "")
FINER = SMALL.replace("[0.5, 8]", "[0.5, 2, 8]")
ASIDE = 15
"""The number of states that the short form resumes from."""


@dataclass(frozen=True)
class Stage:
    """A command, the config at that time, the number of calls made before it began, and its results."""

    command: tuple[str, ...]
    config: str
    begin: int
    expected: dict[str, bytes]


@dataclass(frozen=True)
class Recording:
    """All calls of several commands in one folder, one after the other; `past` are commands that were not
    recorded."""

    folder: Path
    calls: list[Call]
    stages: list[Stage]
    past: list[str]

    def stage(self, made: int) -> Stage:
        return next(stage for stage in reversed(self.stages) if stage.begin <= made)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    folder = tmp_path_factory.mktemp("power")
    (folder / "ratings.csv").write_text(ratings_csv())
    os.utime(folder / "ratings.csv", (1, 1))  # an old file, whose digest is remembered
    run, report = ("run", "tiny.yaml", "-j", "1"), ("report", "results/tiny")
    stages = []
    with pytest.MonkeyPatch.context() as patch, recorded(folder) as recorder:
        patch.chdir(folder)
        patch.setenv("DPMF_CACHE", str(folder / "cache"))
        _tell_results(recorder, patch)
        past = watch([folder / "results", folder / "cache"])
        for command, config in ((run, SMALL), (run, FINER), (report, FINER), (("verify",), FINER)):
            (folder / "tiny.yaml").write_text(config)
            begin = len(recorder.calls)
            patch.setattr(sys, "argv", ["dpmf", *command])
            cli.app(standalone_mode=False)
            if command == ("verify",):
                break  # makes no calls: it is imported now, for the forked processes
            stages.append(Stage(command, config, begin, files(folder / "results")))
        watch([])
    return Recording(folder, recorder.calls, stages, past)


def _tell_results(recorder: Recorder, patch: pytest.MonkeyPatch) -> None:
    """Records when a result has been written: from then on the run reports its task as done."""
    write = Store.write

    def told(store: Store, task: object, result: object) -> None:
        write(store, task, result)  # type: ignore[arg-type]
        recorder.note("told", store.path(task))  # type: ignore[arg-type]

    patch.setattr(Store, "write", told)


def distinct(recording: Recording) -> list[tuple[int, State]]:
    """The different states, each with the first number of calls after which a cut may leave it, for each stage."""
    seen, found = set(), []
    for made, states in after_each(recording.calls):
        for state in states:
            key = recording.stage(made).begin, frozenset(state.items())
            if key not in seen:
                seen.add(key)
                found.append((made, state))
    return found


def go_on(recording: Recording, made: int, state: State) -> int:
    """The number of bytes that differ after the same command was given again.

    Before that, every file must be sound or interrupted.
    """
    folder, stage = recording.folder, recording.stage(made)
    for name in ("results", "cache"):
        shutil.rmtree(folder / name, ignore_errors=True)
    lay_out(state, folder)
    (folder / "tiny.yaml").write_text(stage.config)
    process = fork(folder, folder / "cache", "verify")
    printed, said = process.communicate(timeout=300)
    off = [line for line in printed.splitlines() if line.startswith("results/") or "cache" in line]
    assert process.returncode == (1 if off else 2 if "no results here" in said else 0), said
    assert all("interrupted while it was written; run" in line for line in off), printed
    dpmf(folder, folder / "cache", *stage.command)
    dpmf(folder, folder / "cache", "verify")
    now = files(folder / "results")
    if stage.command[0] == "report":  # which leaves to the next run what the last one was about to take away
        now = {name: content for name, content in now.items() if WRITING not in name}
    return differing(now, stage.expected)


def test_nothing_is_written_past_the_one_module_that_flushes(recording: Recording) -> None:
    assert recording.past == []


def test_what_writes_past_it_is_noticed(tmp_path: Path) -> None:
    past = watch([tmp_path])
    (tmp_path / "a.csv").write_bytes(b"")
    (tmp_path / "a.csv").replace(tmp_path / "b.csv")
    write_whole(tmp_path / "c.csv", b"")
    (tmp_path / "c.csv").read_bytes()
    watch([])
    assert [line.partition(" ")[0] for line in past] == ["open", "os.rename"]


def test_a_task_that_was_told_is_there_whatever_is_lost(recording: Recording) -> None:
    told = [call for call in recording.calls if call.kind == "told"]
    assert len(told) == 2 * 4 + 2  # and of the finer grid two of them
    content = {call.path: (recording.folder / call.path).read_bytes() for call in told}
    for made, states in after_each(recording.calls):
        for call in recording.calls[:made]:
            if call.kind == "told":
                assert all(state.get(call.path) == content[call.path] for state in states), call.path


@pytest.mark.slow
def test_power_cuts(recording: Recording, tally: Tally) -> None:
    """In the full form, after every call."""
    row = tally.row("power cut after each call of a run")
    states = distinct(recording)
    chosen = states if FULL else random.Random(1).sample(states, ASIDE)
    for made, state in chosen:
        row.differing += go_on(recording, made, state)
        row.resumed += 1
    row.injected += len(recording.calls) + 1 if FULL else ASIDE
    print(f"{len(recording.calls) + 1} prefixes, {len(states)} distinct states, {len(chosen)} gone on with")
    assert row.differing == 0


def test_a_disk_that_flushes_no_folder_loses_what_was_told(recording: Recording) -> None:
    """The model detects missing flushes."""
    lazy = [call for call in recording.calls if call.kind != "flush folder"]
    told = {call.path for call in lazy if call.kind == "told"}
    states = after(lazy)
    assert any(told - state.keys() for state in states)


def test_a_disk_that_flushes_no_file_leaves_others_bytes(recording: Recording) -> None:
    lazy = [replace(call, kind="told") if call.kind == "flush" else call for call in recording.calls]
    told = next(call.path for call in recording.calls if call.kind == "told")
    assert len({state.get(told) for state in after(lazy)}) > 2
