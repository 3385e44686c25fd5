"""A release is whole, or can be ended; it is counted once; and what was changed in it is refused by name."""

import contextlib
import errno
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import sha256
from dpmf_cli.releasing import account, archive
from dpmf_cli.releasing.publishing import FittedRatings, FittedRecommender, fitted, load_model
from tests.command import dpmf
from tests.conftest import make_ratings
from tests.faults.power_cut import State, after_each, lay_out
from tests.faults.recorder import recorded

RATINGS = make_ratings()
SOURCE = FittedRatings(
    "shop", RATINGS, np.arange(RATINGS.n_users), np.array([f"a{item}" for item in range(RATINGS.n_items)])
)


def entry(algorithm: str) -> PrivateAlgorithm:
    found: PrivateAlgorithm = PRIVATE[algorithm].model_validate({"algorithm": algorithm, "mode": "corrected"})
    return found


def model(epsilon: float = 1.0, source: FittedRatings = SOURCE) -> FittedRecommender:
    return fitted(entry("pge"), source, epsilon)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DPMF_STATE", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def emptied(folder: Path) -> None:
    for each in folder.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()


def counted() -> list[account.Total]:
    return account.totals(account.releases_of("shop", ""))


def ended(folder: Path) -> None:
    """The same command again, with noise of its own: it ends the release, which is then counted once."""
    if (folder / archive.STATEMENT).exists():
        with pytest.raises(DpmfError, match="holds a release"):
            model().save(folder)
    else:
        assert not folder.exists()
        model().save(folder)
    statement = load_model(folder).statement
    assert statement.release in {each.release for each in account.releases_of("shop", "")}
    (total,) = counted()
    assert (total.releases, total.epsilon) == (1, 1.0)
    assert {each.name for each in folder.iterdir()} == {archive.ARRAYS, archive.STATEMENT}
    assert not list(folder.parent.glob(".*"))


def states_of_a_release(folder: Path) -> list[State]:
    """Every state that a kill or a power cut may leave, after every call to the disk of one release."""
    with recorded(folder) as recorder:
        model().save(folder / "out")
    emptied(folder)
    found = {frozenset(state.items()): state for _, each in after_each(recorder.calls) for state in each}
    return list(found.values())


def test_a_release_that_was_killed_anywhere_is_ended_by_the_same_command_and_counts_once(here: Path) -> None:
    states = states_of_a_release(here)
    assert len(states) > 30
    for state in states:
        lay_out(state, here)
        if (here / "out").exists():
            assert load_model("out").statement.release == account.releases_of("shop", "")[0].release
        ended(here / "out")
        emptied(here)


@contextlib.contextmanager
def failing(at: int) -> Iterator[None]:
    """The disk is full at the call of that number."""
    with recorded(Path.cwd()) as recorder:
        note = recorder.note

        def full(*arguments: Any, **more: Any) -> None:
            note(*arguments, **more)
            if len(recorder.calls) == at:
                raise OSError(errno.ENOSPC, "No space left on device")

        recorder.note = full  # type: ignore[method-assign]
        yield


def test_a_release_that_failed_at_any_call_is_ended_by_the_same_command(here: Path) -> None:
    with recorded(here) as recorder:
        model().save("out")
    for at in range(1, len(recorder.calls) + 1):
        emptied(here)
        with failing(at), contextlib.suppress(DpmfError):
            model().save("out")
        ended(here / "out")


def waiting(folder: Path) -> State:
    """The last state in which a release is counted, but not there."""
    states = states_of_a_release(folder)
    return [state for state in states if "out" not in state and "state/releases.jsonl" in state][-1]


def test_the_second_attempt_may_be_killed_too(here: Path) -> None:
    state = waiting(here)
    lay_out(state, here)
    (released,) = account.releases_of("shop", "")
    with recorded(here) as recorder:
        model().save("out")
    for made in range(len(recorder.calls)):
        emptied(here)
        lay_out(state, here)
        with failing(made + 1), contextlib.suppress(DpmfError):
            model().save("out")
        assert {each.release for each in account.releases_of("shop", "")} == {released.release}
        ended(here / "out")


def test_only_the_same_command_takes_the_place_of_a_killed_release(here: Path) -> None:
    state = waiting(here)
    values = np.where(RATINGS.values > 4, 4, 5).astype("f4")
    for other in (model(0.5), model(source=replace(SOURCE, ratings=replace(RATINGS, values=values)))):
        lay_out(state, here)
        other.save("out")
        assert [each.releases for each in counted()] == [2]
        emptied(here)


def test_one_model_that_is_saved_twice_is_one_release() -> None:
    one = model()
    for folder in ("a", os.fsdecode(b"not UTF-8: \xe9")):
        (total,) = one.save(folder)
    assert (total.releases, total.epsilon) == (1, 1.0)
    assert (total.releases, counted()) == (1, [total])
    model().save("c")
    assert [each.releases for each in counted()] == [2]
    assert "counted by save() alone" in repr(one)
    assert repr(load_model("a")) == "<PGE of shop, bounded, ε = 1 provable>"


def test_releases_at_the_same_time_are_all_counted() -> None:
    models = [model() for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda each: models[each].save(str(each)), range(8)))
    assert [each.releases for each in counted()] == [8]


def test_lines_of_an_older_dpmf_count_one_each(here: Path) -> None:
    model().save("a")
    path = account.account_file()
    older = json.loads(path.read_text())
    del older["seal"], older["release"]
    path.write_text((json.dumps(older) + "\n") * 2)
    model().save("b")
    assert [each.releases for each in counted()] == [3]


def flipped(data: bytes) -> Iterator[bytes]:
    """The bytes with one bit changed, at some hundred places."""
    for place in [*range(0, len(data), max(1, len(data) // 100)), len(data) - 1]:
        yield data[:place] + bytes([data[place] ^ (1 << place % 8)]) + data[place + 1 :]


def test_every_flipped_bit_is_refused(here: Path) -> None:
    model().save("out")
    for path, read in (
        (here / "out/model.json", lambda: load_model("out")),
        (here / "out/model.npz", lambda: load_model("out")),
        (account.account_file(), counted),
    ):
        sound = path.read_bytes()
        for damaged in flipped(sound):
            path.write_bytes(damaged)
            with pytest.raises(DpmfError, match=path.name):
                read()
        path.write_bytes(sound)
        read()


def run(*words: str, expect: int = 0) -> "CompletedProcess[str]":
    here = Path.cwd()
    return dpmf(here, here / "cache", *words, expect=expect, DPMF_STATE=str(here / "state"))


@pytest.mark.parametrize("named", [(), ("released",), ("released/one", "released/two")])
def test_verify_names_what_was_changed(here: Path, named: tuple[str, ...]) -> None:
    model().save("released/one")
    model().save("released/two")
    assert "nope" in run("verify", "--results", "nope", expect=2).stderr
    assert "name a folder of results" in run("verify", "released", "--recompute", "2", expect=2).stderr
    sound = run("verify", *named)
    assert sound.stderr == ""
    rows = [line.split() for line in sound.stdout.splitlines()[1:]]
    assert rows == [["releases", "2", "0"], ["account", "of", "releases", "2", "0"]]
    path, lines = account.account_file(), account.account_file().read_text()
    path.write_text(lines.splitlines()[0] + "\n")
    assert "released/two: is not in the account" in run("verify", *named).stderr
    path.write_text(lines.replace('"epsilon": 1.0', '"epsilon": 0.1', 1))
    statement = here / "released/two/model.json"
    statement.write_text(statement.read_text().replace('"provable": 1.0', '"provable": 0.1', 1))
    printed = run("verify", *named, expect=1).stdout
    assert f"{path}:1: is not the entry of a release, or was changed" in printed
    assert "released/two/model.json: was changed after the release" in printed


def resealed(folder: Path, data: bytes, **changed: Any) -> None:
    """Replaces the arrays and keys of the statement, and seals both as their author could."""
    statement = folder / archive.STATEMENT
    said = json.loads(statement.read_text()) | changed | {"sha256": sha256(data)}
    del said["seal"]
    sealed = said | {"seal": sha256(json.dumps(said, ensure_ascii=False).encode())}
    statement.write_text(json.dumps(sealed, indent=2, ensure_ascii=False) + "\n")
    (folder / archive.ARRAYS).write_bytes(data)


@pytest.mark.parametrize(("of", "kind"), [("mm_knn", "covariance"), ("dpals", "own factors")])
def test_a_kind_of_model_is_of_a_method_that_makes_it(of: str, kind: str) -> None:
    fitted(entry(of), SOURCE, 1.0).save("out", ids_are_public=True)
    load_model("out")
    pge = {"algorithm": "pge", "mode": "corrected"}
    resealed(Path("out"), Path("out/model.npz").read_bytes(), algorithm=pge)
    with pytest.raises(DpmfError, match=f"model of kind {kind}: its method makes no such model"):
        load_model("out")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"form": 1}, "model.json: has form 1, but this dpmf reads form 2"),
        ({"kin": "averages"}, "is not the statement of a release"),
        ({"privacy": {"epsilon": 1}}, "is not the statement of a release"),
        ({"algorithm": {"algorithm": "pgx"}}, "pgx"),
        ({"algorithm": {"algorithm": "pge", "effects": {"beta_m": -1}}}, "effects.beta_m"),
        ({"kind": "average"}, "no such kind"),
        ({"kind": "neighbourhood"}, "its arrays are not those of a model of kind neighbourhood"),
        ({"kind": "covariance"}, "its method makes no such model"),
        ({"kind": "own means"}, "'overall'"),
        ({"kind": "factors"}, "items is float64"),
    ],
)
def test_a_sealed_statement_must_fit_its_model(here: Path, changed: dict[str, Any], said: str) -> None:
    model().save("out")
    resealed(here / "out", (here / "out/model.npz").read_bytes(), **changed)
    with pytest.raises(DpmfError, match=said):
        load_model("out")


def zipped(data: bytes, members: dict[str, bytes], how: int = zipfile.ZIP_STORED) -> bytes:
    """The archive with members replaced or added."""
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        held = {name: old.read(name) for name in old.namelist()} | members
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", how) as new:
        for name, content in held.items():
            new.writestr(name, content)
        new.comment = b" " * 9999  # longer than its small arrays
    return stream.getvalue()


def member(array: NDArray[Any]) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, allow_pickle=True)
    return stream.getvalue()


def with_items(array: NDArray[Any]) -> Callable[[bytes], bytes]:
    return lambda data: zipped(data, {"model.items.npy": member(array)})


def with_field(offset: int, value: bytes) -> Callable[[bytes], bytes]:
    """Changes a field in the local header and the directory's entry of every member."""

    def change(data: bytes) -> bytes:
        for mark, at in ((b"PK\x03\x04", offset), (b"PK\x01\x02", offset + 2)):
            place = data.find(mark)
            while place >= 0:
                data = data[: place + at] + value + data[place + at + len(value) :]
                place = data.find(mark, place + 1)
        return data

    return change


def promising(data: bytes) -> bytes:
    """An array whose header promises 8 TB."""
    items = member(np.zeros((40, 1))).replace(b"(40, 1), }" + b" " * 10, b"(999999999999, 1), }")
    return zipped(data, {"model.items.npy": items})


HOSTILE: dict[str, Callable[[bytes], bytes]] = {
    "bomb": lambda data: zipped(data, {"model.x.npy": member(np.zeros(10**7))}, zipfile.ZIP_DEFLATED),
    "compressed": lambda data: zipped(data, {}, zipfile.ZIP_DEFLATED),
    "broken deflate": with_field(8, b"\x08\0"),
    "unknown compression": with_field(8, b"\x63\0"),
    "encrypted": with_field(6, b"\x01\0"),
    "larger than the file": with_field(22, b"\xff\xff\xff\x7f"),
    "cut": lambda data: data[: len(data) // 2],
    "no archive": lambda data: b"no archive",
    "more than there is": promising,
    "0-d": with_items(np.array(1.0)),
    "objects": with_items(np.array([[None]] * 40)),
    "text": with_items(np.array([["x"]] * 40)),
    "records": with_items(np.zeros((40, 1), "f8,f8")),
    "other numbers": with_items(np.zeros((40, 1), "f4")),
    "other bytes": with_items(np.zeros((40, 1), ">f8")),
    "other shape": with_items(np.zeros((39, 1))),
    "more columns": with_items(np.zeros((40, 2))),
    "ids of no list": lambda data: zipped(data, {"item_ids.npy": member(np.zeros((40, 2), "i8"))}),
    "ids of floats": lambda data: zipped(data, {"user_ids.npy": member(np.zeros(60))}),
}


def test_what_a_hostile_author_packs_is_one_line(here: Path) -> None:
    model().save("out")
    sound = (here / "out/model.npz").read_bytes()
    resealed(here / "out", zipped(sound, {}))
    load_model("out")
    for name, change in HOSTILE.items():
        data = change(sound)
        assert data != sound, name
        resealed(here / "out", data)
        done = run("predict", "out", "--user", "3", expect=2)
        assert (done.stdout, done.stderr.count("\n")) == ("", 1), (name, done.stderr)
        assert done.stderr.startswith("dpmf: out"), (name, done.stderr)


def test_a_release_from_before_there_were_formulas_is_read(here: Path) -> None:
    model().save("out")
    statement = load_model("out").statement
    older = statement.model_copy(update={"formula": ""}).text(indent=2)
    assert (statement.formula, b"formula" in older) == ("items[i]+users[u]", False)
    (here / "out/model.json").write_bytes(older)
    assert load_model("out").predict([3], ["a1"]).shape == (1,)


def test_what_was_asked_for_is_named() -> None:
    model().save("rel")
    for path in ("rel/nope", "nope", "rel/nope/model.json"):
        with pytest.raises(
            DpmfError, match=f"^{path.removesuffix('/model.json')}/model.json: cannot be read"
        ):
            load_model(path)
    load_model("rel/model.json")
