"""Compiled functions: kept, loaded by another process, and compiled anew if anything about an entry is wrong.

Machine code that does not do what its source says is found before it is used, and is never kept.

The key of machine code contains everything that the code depends on.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
import pytest
from numba import float64
from numba.core import config

from dpmf_cli.core.compiled import decorator, entries
from dpmf_cli.core.compiled.decorator import check, compiled, twin
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import WRITING
from dpmf_cli.experiment.running import processes
from tests.compiled import made
from tests.compiled.made import RIGHT, doubled, entry, example, fresh, moved, result, was_loaded


def test_what_was_compiled_is_loaded_by_the_next() -> None:
    first, second = fresh(), fresh()
    assert result(first) == result(second) == RIGHT
    assert (was_loaded(first), was_loaded(second)) == (False, True)


def flip(path: Path, at: int) -> None:
    whole = bytearray(path.read_bytes())
    whole[at] ^= 1
    path.write_bytes(whole)


def other_key(path: Path) -> None:
    """A sound entry of other sources under this one's name."""
    key, payload = entries.content(path)
    entries.write(path, key.replace(b"numba", b"other"), payload)


def unpicklable(path: Path) -> None:
    key, _ = entries.content(path)
    entries.write(path, key, b"no pickle")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "first bit": lambda path: flip(path, 0),
    "in the checksum": lambda path: flip(path, len(entries.MAGIC) + 3),
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
def test_an_entry_that_is_off_is_compiled_anew(damage: str, capsys: pytest.CaptureFixture[str]) -> None:
    result(fresh())
    path = entry()
    DAMAGES[damage](path)
    again, after = fresh(), fresh()
    assert result(again) == RIGHT
    assert not was_loaded(again)
    said = capsys.readouterr().err
    assert said.count("; the kernel is compiled anew") == 1
    assert str(path) in said
    assert result(after) == RIGHT
    assert was_loaded(after)


def test_nothing_is_unpickled_that_was_not_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    result(fresh())
    flip(entry(), -1)
    monkeypatch.setattr(pickle, "loads", lambda data: pytest.fail("unpickled"))
    assert result(fresh()) == RIGHT


def test_entries_are_this_users_alone(kernels: Path) -> None:
    before = os.umask(0)
    try:
        result(fresh())
    finally:
        os.umask(before)
    assert kernels.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in kernels.iterdir()} == {0o600}


@pytest.mark.parametrize("theirs", [0o777, 0o770, "another user's"])
def test_a_folder_that_others_may_write_to_is_not_used(
    kernels: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    theirs: int | str,
) -> None:
    result(fresh())
    if isinstance(theirs, int):
        kernels.chmod(theirs)
    else:
        status = kernels.lstat()
        other = os.stat_result((*status[:4], os.getuid() + 1, *status[5:10]))
        monkeypatch.setattr(Path, "lstat", lambda path: other if path == kernels else os.lstat(path))
    entries._private.cache_clear()
    again = fresh()
    assert result(again) == RIGHT
    assert not was_loaded(again)
    result(fresh())
    assert capsys.readouterr().err == (
        f"{kernels}: compiled kernels are not kept there: {entries.NOT_PRIVATE}\n"
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
    monkeypatch.setattr(entries, "write_whole", refuse)
    assert result(fresh()) == result(fresh()) == RIGHT
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert (
        "compiled kernels are not kept there (Read-only file system); name another folder in $DPMF_KERNELS"
        in said
    )


def test_a_read_only_cache_that_is_full_is_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result(fresh())
    monkeypatch.setattr(entries, "write_whole", lambda *_, **__: pytest.fail("written"))
    again = fresh()
    assert result(again) == RIGHT
    assert was_loaded(again)
    assert capsys.readouterr().err == ""


def test_the_newest_entries_of_a_signature_are_kept(kernels: Path) -> None:
    result(fresh())
    path = entry()
    stem = path.name.rpartition("-")[0]
    for age in range(1, entries.KEPT + 3):
        old = kernels / f"{stem}-{age:032}{entries.SUFFIX}"
        old.write_bytes(b"of older sources")
        os.utime(old, (0, 1000 - age))
    path.unlink()
    result(fresh())
    kept = {each.name for each in entries.entries() if each.name.startswith(stem)}
    assert kept == {path.name, *(f"{stem}-{age:032}{entries.SUFFIX}" for age in range(1, entries.KEPT))}


TWO = """
import sys
from tests.compiled.made import RIGHT, fresh, result, was_loaded
print("ready", flush=True)
sys.stdin.readline()
first = fresh()
assert result(first) == RIGHT
"""


@pytest.mark.slow
def test_two_processes_that_compile_at_once_both_succeed(kernels: Path) -> None:
    both = [
        subprocess.Popen(
            [sys.executable, "-c", TWO],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate()[1] for process in both]
    assert said == ["", ""]
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


def test_a_twin_runs_the_same_source_without_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(moved), "__call__", lambda *_: pytest.fail("compiled"))
    assert result(twin(fresh())) == RIGHT


def test_wrong_machine_code_is_refused_each_time_and_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decorator, "twin", lambda _: lambda values, out: out.fill(7))
    dispatcher = fresh()
    for _ in range(2):
        with pytest.raises(DpmfError, match=r"made\.doubled: the machine code .* is wrong on this machine"):
            result(dispatcher)
    assert not any(".doubled-" in path.name for path in entries.entries())
    monkeypatch.undo()


def test_what_is_checked_stays_as_it_was() -> None:
    """An example is made again for machine code and twin, and no random stream is advanced."""
    state = str(np.random.get_state())  # noqa: NPY002
    values = np.arange(4.0)
    result(compiled(lambda kinds: {"values": values, "out": values})(doubled))
    assert values.tolist() == [0, 1, 2, 3]
    assert str(np.random.get_state()) == state  # noqa: NPY002


def entry_point(found: Any) -> Callable[..., Any]:
    """Machine code that writes `found`, whatever its arguments."""

    def run(values: np.ndarray, out: np.ndarray) -> None:
        out[:] = found

    return run


@pytest.mark.parametrize("found", [[1, 3, 5, 7 + 1e-7], [0, 0, 0, 0], [1, 3, 5, np.nan]])
def test_one_number_that_is_off_is_enough(found: Any) -> None:
    dispatcher = fresh()
    kinds = ("values' type", "out's type")
    check(dispatcher, entry_point(RIGHT), kinds, [example])
    with pytest.raises(DpmfError):
        check(dispatcher, entry_point(found), kinds, [example])


TARGET = ("x86_64-unknown-linux-gnu", "skylake", "+avx2")
KIND = (float64[::1], float64[::1])


@pytest.fixture(autouse=True)
def forgotten() -> None:
    entries._depends.cache_clear()
    entries._versions.cache_clear()


def key(dispatcher: Any = None, kinds: Any = KIND, target: tuple[str, ...] = TARGET) -> bytes:
    return entries.as_bytes(entries.key_of(dispatcher or made.fresh(), kinds, target))


def test_a_key_is_the_same_for_another_dispatcher_of_the_same_function() -> None:
    assert key() == key()
    assert b"\n" not in key()


def test_signature_processor_and_options_are_in_the_key() -> None:
    keys = [
        key(),
        key(kinds=(float64[::1], float64[:])),
        key(target=("x86_64-unknown-linux-gnu", "znver3", "+avx2")),
        key(target=("x86_64-unknown-linux-gnu", "skylake", "-avx2")),
        key(compiled(error_model="numpy")(made.doubled)),
    ]
    assert len(set(keys)) == len(keys)


def test_a_constant_that_is_compiled_into_a_function_that_is_called_is_in_the_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = key()
    monkeypatch.setattr(made, "STEP", np.float64(0.25))
    entries._depends.cache_clear()
    assert key() != before


def test_the_sources_of_all_that_is_called_are_in_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmf_cli.kernels import sgd, survivors

    depends = set(entries._depends(survivors._descend_survivors))
    modules = {"kernels.survivors", "kernels.sgd", "kernels.lanes", "kernels.releasing", "privacy.noise"}
    assert {f"dpmf_cli.{module}" for module in modules} <= depends
    assert "dpmf_cli.privacy.noise:_GOLDEN" in depends
    before = key(sgd._descend_perturbed)
    monkeypatch.setattr(
        entries, "note_source", lambda module: "changed" if module == "dpmf_cli.kernels.lanes" else "same"
    )
    entries._depends.cache_clear()
    assert key(sgd._descend_perturbed) != before


@pytest.mark.parametrize("package", [numba, np, llvmlite])
def test_versions_are_in_the_key(monkeypatch: pytest.MonkeyPatch, package: Any) -> None:
    before = key()
    monkeypatch.setattr(package, "__version__", "99")
    entries._versions.cache_clear()
    assert key() != before


def test_numbas_settings_are_in_the_key_but_for_those_that_change_no_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = key()
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 77)
    assert key() == before
    monkeypatch.setattr(config, "LOOP_VECTORIZE", 0)
    assert key() != before


def test_a_source_is_that_which_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a file is edited while a run compiles, the machine code of the old text is not stored under the new
    text's name."""
    before = entries.note_source(made.__name__)
    monkeypatch.setattr(made.__spec__.loader, "get_data", lambda path: b"edited", raising=False)
    assert entries.note_source(made.__name__) == before
