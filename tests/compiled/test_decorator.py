"""Compiled functions: kept, loaded by another process, and compiled anew if anything about an entry is wrong.

Machine code that does not do what its source says is found before it is used, and is never kept.

The key of machine code contains everything that the code depends on.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
import pytest
from numba import float64
from numba.core import config

from dpmf_cli.core.compiled import machine_code
from dpmf_cli.core.compiled.lane_groups import (
    MAXIMUM_WIDTH,
    LaneValues,
    groups,
    pad,
    padded_grid,
    padded_width,
)
from dpmf_cli.core.compiled.machine_code import check, compiled, reference
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import WRITING
from dpmf_cli.experiment.running import processes
from tests.compiled import made
from tests.compiled.made import RIGHT, doubled, entry, example, fresh, moved, result, was_loaded


@pytest.fixture(autouse=True)
def kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty cache for the entries of a test. Messages that are given once are given again."""
    monkeypatch.setenv("DPMF_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DPMF_KERNELS")
    forget()
    yield machine_code.place()
    machine_code._private.cache_clear()


def forget() -> None:
    for cached in (machine_code._private, machine_code._say, machine_code._depends, machine_code._versions):
        cached.cache_clear()


def test_what_was_compiled_is_loaded_by_the_next_and_is_this_users_alone(kernels: Path) -> None:
    first, second, before = fresh(), fresh(), os.umask(0)
    try:
        assert result(first) == result(second) == RIGHT
    finally:
        os.umask(before)
    assert (was_loaded(first), was_loaded(second)) == (False, True)
    assert kernels.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in kernels.iterdir()} == {0o600}


def flip(path: Path, at: int) -> None:
    whole = bytearray(path.read_bytes())
    whole[at] ^= 1
    path.write_bytes(whole)


def other_key(path: Path) -> None:
    """A sound entry of other sources under this one's name."""
    key, payload = machine_code.content(path)
    machine_code.write(path, key.replace(b"numba", b"other"), payload)


def unpicklable(path: Path) -> None:
    key, _ = machine_code.content(path)
    machine_code.write(path, key, b"no pickle")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "first bit": lambda path: flip(path, 0),
    "in the checksum": lambda path: flip(path, len(machine_code.MAGIC) + 3),
    "in the key": lambda path: flip(path, 100),
    "in the machine code": lambda path: flip(path, path.stat().st_size // 2),
    "last bit": lambda path: flip(path, -1),
    "cut off": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "another's": other_key,
    "unpicklable": unpicklable,
    "writable by all": lambda path: path.chmod(0o666),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_entry_that_is_off_is_compiled_anew_and_not_unpickled(
    damage: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result(fresh())
    path = entry()
    DAMAGES[damage](path)
    again, after = fresh(), fresh()
    with monkeypatch.context() as patched:
        if damage != "unpicklable":
            patched.setattr(pickle, "loads", lambda data: pytest.fail("unpickled"))
        assert (result(again), was_loaded(again)) == (RIGHT, False)
    said = capsys.readouterr().err
    assert said.count("; the kernel is compiled anew") == 1
    assert str(path) in said
    assert (result(after), was_loaded(after)) == (RIGHT, True)


@pytest.mark.parametrize("mode", [0o777, 0o770, None])
def test_a_folder_that_others_may_write_to_or_own_is_not_used(
    kernels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], mode: int | None
) -> None:
    result(fresh())
    kernels.chmod(mode or 0o700)
    if mode is None:
        status = kernels.lstat()
        other = os.stat_result((*status[:4], os.getuid() + 1, *status[5:10]))
        monkeypatch.setattr(Path, "lstat", lambda path: other if path == kernels else os.lstat(path))
    machine_code._private.cache_clear()
    again = fresh()
    assert result(again) == RIGHT
    assert not was_loaded(again)
    result(fresh())
    assert capsys.readouterr().err == (
        f"{kernels}: compiled kernels are not kept there: {machine_code.NOT_PRIVATE}\n"
    )


@pytest.mark.parametrize("there", [True, False])
def test_a_cache_that_cannot_be_written_is_said_once(
    monkeypatch: pytest.MonkeyPatch, kernels: Path, capsys: pytest.CaptureFixture[str], there: bool
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    if there:
        kernels.mkdir(parents=True, mode=0o700)
    monkeypatch.setattr(Path, "mkdir", refuse)
    monkeypatch.setattr(machine_code, "write_whole", refuse)
    assert result(fresh()) == result(fresh()) == RIGHT
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "not kept there (Read-only file system); name another folder in $DPMF_KERNELS" in said


def test_a_read_only_cache_that_is_full_is_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result(fresh())
    monkeypatch.setattr(machine_code, "write_whole", lambda *_, **__: pytest.fail("written"))
    again = fresh()
    assert result(again) == RIGHT
    assert was_loaded(again)
    assert capsys.readouterr().err == ""


def test_the_newest_entries_of_a_signature_are_kept(kernels: Path) -> None:
    result(fresh())
    path = entry()
    stem = path.name.rpartition("-")[0]
    for age in range(1, machine_code.KEPT + 3):
        old = kernels / f"{stem}-{age:032}{machine_code.SUFFIX}"
        old.write_bytes(b"of older sources")
        os.utime(old, (0, 1000 - age))
    path.unlink()
    result(fresh())
    kept = {each.name for each in machine_code.entries() if each.name.startswith(stem)}
    newest = range(1, machine_code.KEPT)
    assert kept == {path.name, *(f"{stem}-{age:032}{machine_code.SUFFIX}" for age in newest)}


TWO = """
import sys
from tests.compiled.made import RIGHT, fresh, result, was_loaded
print("ready", flush=True)
sys.stdin.readline()
first = fresh()
assert result(first) == RIGHT
print(was_loaded(first))
"""


@pytest.mark.slow
def test_of_three_processes_one_compiles_and_the_others_wait(kernels: Path) -> None:
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    both: list[Any] = [subprocess.Popen([sys.executable, "-c", TWO], text=True, **pipes) for _ in range(3)]
    assert [process.stdout.readline() for process in both] == ["ready\n"] * 3
    for process in both:
        process.stdin.write("go\n")
        process.stdin.flush()
    found = [process.communicate(timeout=machine_code.LONGEST_WAIT / 2) for process in both]
    assert sorted(found) == [("False\n", ""), ("True\n", ""), ("True\n", "")]
    assert not list(kernels.glob(f"{WRITING}*"))
    last = fresh()
    assert result(last) == RIGHT
    assert was_loaded(last), "the key of another process is another"


def test_what_is_wrong_with_the_folder_is_said_before_processes_are_started(
    kernels: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def start(*_: object, **__: object) -> None:
        assert "compiled kernels are not kept there" in capsys.readouterr().err
        raise InterruptedError

    kernels.mkdir(parents=True)
    kernels.chmod(0o777)
    monkeypatch.setattr(processes, "_start", start)
    with pytest.raises(InterruptedError):
        list(processes.each_of(len, ["", ""], 2))


def test_a_reference_runs_the_same_source_without_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(moved), "__call__", lambda *_: pytest.fail("compiled"))
    assert result(reference(fresh())) == RIGHT


def test_wrong_machine_code_is_refused_each_time_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_code, "reference", lambda _: lambda values, out: out.fill(7))
    dispatcher = fresh()
    for _ in range(2):
        with pytest.raises(DpmfError, match=r"made\.doubled: the machine code .* is wrong on this machine"):
            result(dispatcher)
    assert not any(".doubled-" in path.name for path in machine_code.entries())
    monkeypatch.undo()


def test_what_is_checked_stays_as_it_was() -> None:
    """An example is made again for machine code and reference, and no random stream is advanced."""
    state = str(np.random.get_state())  # noqa: NPY002
    values = np.arange(4.0)
    result(compiled(lambda kinds: {"values": values, "out": values})(doubled))
    assert values.tolist() == [0, 1, 2, 3]
    assert str(np.random.get_state()) == state  # noqa: NPY002


@pytest.mark.parametrize("found", [[1, 3, 5, 7 + 1e-7], [0, 0, 0, 0], [1, 3, 5, np.nan]])
def test_one_number_that_is_off_is_enough(found: Any) -> None:
    def entry_point(values: np.ndarray, out: np.ndarray) -> None:
        out[:] = written

    dispatcher, kinds = fresh(), ("values' type", "out's type")
    written: Any = RIGHT
    check(dispatcher, entry_point, kinds, [example])
    written = found
    with pytest.raises(DpmfError):
        check(dispatcher, entry_point, kinds, [example])


TARGET = ("x86_64-unknown-linux-gnu", "skylake", "+avx2")
KIND = (float64[::1], float64[::1])


def key(dispatcher: Any = None, kinds: Any = KIND, target: tuple[str, ...] = TARGET) -> bytes:
    return machine_code.as_bytes(machine_code.key_of(dispatcher or made.fresh(), kinds, target))


@pytest.mark.parametrize(
    ("owner", "name", "other"),
    [
        (made, "STEP", np.float64(0.25)),  # a constant that is compiled into a function that is called
        *((package, "__version__", "99") for package in (numba, np, llvmlite)),
        (config, "LOOP_VECTORIZE", 0),
    ],
)
def test_all_that_code_is_made_of_is_in_the_key(
    owner: Any, name: str, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 77)
    before = key()
    monkeypatch.undo()
    assert key() == before, "a setting that changes no code"
    keys = {
        before,
        key(kinds=(float64[::1], float64[:])),
        key(target=("x86_64-unknown-linux-gnu", "znver3", "+avx2")),
        key(target=("x86_64-unknown-linux-gnu", "skylake", "-avx2")),
        key(compiled(error_model="numpy")(made.doubled)),
    }
    assert len(keys) == 5
    monkeypatch.setattr(owner, name, other)
    forget()
    assert key() not in keys


def test_the_sources_of_all_that_is_called_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmf_cli.kernels import sgd, survivors

    depends = set(machine_code._depends(survivors._descend_survivors))
    modules = {"kernels.survivors", "kernels.sgd", "kernels.lanes", "kernels.releasing", "privacy.noise"}
    assert {f"dpmf_cli.{module}" for module in modules} <= depends
    assert "dpmf_cli.privacy.noise:_GOLDEN" in depends
    before = key(sgd._descend_perturbed)
    monkeypatch.setattr(
        machine_code,
        "note_source",
        lambda module: "changed" if module == "dpmf_cli.kernels.lanes" else "same",
    )
    machine_code._depends.cache_clear()
    assert key(sgd._descend_perturbed) != before


def test_a_source_is_that_which_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a file is edited while a run compiles, the machine code of the old text is not stored under the new
    text's name."""
    before = machine_code.note_source(made.__name__)
    monkeypatch.setattr(made.__spec__.loader, "get_data", lambda path: b"edited", raising=False)
    assert machine_code.note_source(made.__name__) == before


@pytest.mark.parametrize(
    ("count", "widths"), [(1, [1]), (8, [8]), (9, [16]), (16, [16]), (20, [16, 8]), (48, [16] * 3)]
)
def test_groups_cover_the_grid_once(count: int, widths: list[int]) -> None:
    parts = groups(count)
    assert np.concatenate([np.arange(count)[group] for group in parts]).tolist() == list(range(count))
    assert [padded_width(group.stop - group.start) for group in parts] == widths
    assert padded_grid(count) == sum(widths)
    assert max(widths) <= MAXIMUM_WIDTH


def test_padding_repeats_the_last_model() -> None:
    assert pad(np.array([[1.0, 2.0]]), 4).tolist() == [[1.0, 2.0, 2.0, 2.0]]


@pytest.mark.parametrize("grid", [1, 8, 9, 16, 20])
def test_values_are_found_by_model_and_by_group(grid: int) -> None:
    numbers = np.random.default_rng(grid).random((7, grid)).astype(np.float32)
    values = LaneValues.empty(7, grid)
    for rows in (slice(0, 3), slice(3, 7)):
        values.put(rows, numbers[rows])
    assert np.array_equal(np.stack([values.column(e) for e in range(grid)], axis=1), numbers)
    for part in groups(grid):
        assert np.array_equal(values.of(part), pad(numbers[:, part], padded_width(part.stop - part.start)))
    assert all(map(np.array_equal, values.groups, LaneValues.of_grid(numbers).groups))
