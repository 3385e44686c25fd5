"""The store: complete files or none, named by content, damage noticed."""

import errno
import json
import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.algorithms.friedman2016.matrix_factorization import PrivateGlobalEffects
from dpmf_cli.algorithms.shared.sample_fits import RecordCosts
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import temporary_folder
from dpmf_cli.datasets import DataIdentity
from dpmf_cli.evaluation.metrics import TopItems
from dpmf_cli.experiment.results.store import Store, content, encode, sealed, unsealed
from dpmf_cli.experiment.results.task import Cut, Task, TaskResult

DATA = DataIdentity("data", "Data", "c" * 64)
STEP = {
    "step": "a", "mechanism": "Laplace", "sensitivity": 4.0, "calibrated_to": 4.0, "norm": "L1",
    "neighbours": "bounded", "source": "here",
}  # fmt: skip
"""A step of a ledger without its numbers for each ε."""


def task(epsilons: tuple[float, ...] = (0.1, 1.0), *, cut: Cut | None = None, **changes: Any) -> Task:
    algorithm = PrivateGlobalEffects(algorithm="pge")
    settings = {"data": DATA, "run": 1, "seed": 7, "algorithm": algorithm, **changes}
    return Task(cut=cut or Cut(10, 3), epsilons=epsilons, **settings)


def result(epsilons: tuple[float, ...] = (0.1, 1.0)) -> TaskResult:
    rmse = tuple(1 / epsilon / 3 for epsilon in epsilons)
    ledger = ({**STEP, "claimed": list(epsilons), "provable": ["inf"] * len(epsilons)},)
    return TaskResult(epsilons, rmse, epsilons, (math.inf,) * len(epsilons), ledger)


def read(store: Store, task: Task) -> dict[float, TaskResult]:
    ((_, known),) = store.read_each([task])
    return known


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def store(tmp_path: Path, told: list[str]) -> Store:
    """A store with the result of a task, which tells what it warns of."""
    store = Store(tmp_path, warn=told.append)
    store.write(task(), result())
    return store


@pytest.fixture
def path(store: Store) -> Path:
    """The file of that result."""
    return store.path(task())


def test_what_is_written_is_read_back_exactly(store: Store, path: Path) -> None:
    assert read(store, task()) == {0.1: result(), 1.0: result()}
    assert store.missing(task()) is None
    assert path.read_bytes() == content(task(), result())


def test_a_finer_grid_leaves_only_the_new_epsilons(store: Store) -> None:
    left = store.missing(task((0.05, 0.1, 0.5, 1.0)))
    assert left is not None
    assert left.epsilons == (0.05, 0.5)
    store.write(left, result((0.05, 0.5)))
    assert sorted(read(store, task())) == [0.05, 0.1, 0.5, 1.0]


def test_the_folder_of_many_tasks_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path)
    other = PrivateGlobalEffects(algorithm="pge", clip_predictions=True)
    runs = 1, 12, 123, 1234
    tasks = [task(run=run, algorithm=each) for each in (task().algorithm, other) for run in runs]
    for each in tasks[::2]:
        store.write(each, result())
    listed: list[Path] = []
    glob = Path.glob

    def listing(path: Path, pattern: str) -> Iterator[Path]:
        listed.append(path)
        return glob(path, pattern)

    monkeypatch.setattr(Path, "glob", listing)
    assert list(store.left(tasks)) == tasks[1::2]
    assert [len(known) for _, known in store.read_each(tasks)] == [2, 0] * 4
    assert len(listed) == 4


CUTS = (
    (Cut(10, 4), ""),
    (Cut(10, 3, portion=0.5), ""),
    (Cut(10, 3, portion=0.5, order="random"), ""),
    (Cut(10, 3, portion=0.6), ""),
    (Cut(10, 3, split="recent"), ""),
    (Cut(10, 3, portion=0.5, split="recent"), ""),
    (Cut(10, 3, split="probe"), "a"),
    (Cut(10, 3, split="probe"), "b"),
    (Cut(10, 3, split="judging"), "a"),
)
OTHERS: list[dict[str, Any]] = [
    {"run": 0},
    {"seed": 8},
    {"data": replace(DATA, checksum="d" * 64)},
    *({"cut": cut, "data": replace(DATA, test_checksum=checksum)} for cut, checksum in CUTS),
]


def test_a_result_belongs_to_one_task_one_cut_and_one_revision(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for change in OTHERS:
        assert read(store, task(**change)) == {}
        store.write(task(**change), result())
    monkeypatch.setattr(PrivateGlobalEffects, "revision", 99)
    assert read(store, task()) == {}


def test_what_changes_no_result_is_no_setting() -> None:
    """Results that are older than portions and test sets are still found."""
    plain = task().settings
    assert plain == {
        "dataset": "data",
        "checksum": "c" * 64,
        "folds": 10,
        "seed": 7,
        "algorithm": PrivateGlobalEffects(algorithm="pge").parameters(),
    }
    named = PrivateGlobalEffects(algorithm="pge", label="mine")
    for same in (
        {"cut": Cut(10, 3, portion=1.0, order="random")},
        {"algorithm": named},
        {"data": replace(DATA, title="b")},
    ):
        assert task(**same).settings == plain
    fixed = task(cut=Cut(1, 0, split="probe"), data=replace(DATA, test_checksum="t" * 64)).settings
    assert fixed == {**plain, "folds": 1, "test": "probe", "test_checksum": "t" * 64}


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data.replace(b'"rmse": [3', b'"rmse": [2'),
        lambda data: b"[]",
        lambda data: b"\xff" * 10,
        lambda data: encode({"format": 1, "sha256": "0"}),
        lambda data: data.replace(b'"format": 1', b'"format": 7'),
        lambda data: data.replace(b'"format": 1', b'"format":\n1'),
        lambda data: data.replace(b'"fold": 3', b'"fold": NaN'),
        lambda data: b"[" * 100_000,
        lambda data: encode(sealed({**json.loads(data), "fold": 4})),
    ],
)
def test_a_damaged_file_is_told_and_made_again(
    store: Store, path: Path, told: list[str], damage: Any
) -> None:
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert store.missing(task()) == task()
    assert len(told) == 1
    assert told[0].startswith(f"{path}: damaged (")
    store.write(task(), result())
    assert path.read_bytes() == whole


def test_a_damaged_file_is_set_aside_once(store: Store, path: Path, told: list[str]) -> None:
    damaged = path.read_bytes()[:50]
    path.write_bytes(damaged)
    for _ in range(2):  # of a finer grid: a task that is computed again gets another name
        assert replace(store, set_aside=True).missing(task((0.05, 0.1))) == task((0.05, 0.1))
    why = f"damaged (its content does not fit its checksum); set aside as {path.stem}.damaged"
    assert told == [f"{path}: {why}, its task is computed again"]
    aside = [(each.name, each.read_bytes()) for each in path.parent.iterdir()]
    assert aside == [(f"{path.stem}.damaged", damaged)]


def test_what_another_run_computes_meanwhile_is_not_set_aside(store: Store, path: Path) -> None:
    finer = task((0.05, 0.1))
    for each in (path, store.path(finer)):
        each.write_bytes(b"")
    reading = replace(store, set_aside=True).read_each([task(), replace(finer, cut=Cut(10, 4))])
    assert next(reading)[1] == {}
    store.write(task(), result())
    assert [known for _, known in reading] == [{}]
    assert 0.1 in read(store, task())


@pytest.mark.parametrize("set_aside", [False, True])
def test_many_damaged_files_are_a_line(store: Store, path: Path, told: list[str], *, set_aside: bool) -> None:
    names = [f"fold003-run001-{number:08x}.json" for number in range(2000)]
    for name in names:
        (path.parent / name).write_bytes(b"")
    assert replace(store, set_aside=set_aside).missing(task()) is None
    (line,) = told
    assert line.startswith(f"{path.parent}: 2,000 damaged task files, such as {', '.join(names[:3])}; ")
    assert len([*path.parent.glob("*.damaged")]) == 2000 * set_aside


@pytest.mark.parametrize("link", ["tasks", "tasks/data", "tasks/data/{algorithm}"])
def test_a_link_that_leads_out_of_the_results_is_refused(tmp_path: Path, link: str) -> None:
    store = Store(tmp_path / "results")
    place = store.root / link.format(algorithm=store.path(task()).parent.name)
    place.parent.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    place.symlink_to(tmp_path / "elsewhere")
    message = r"leads out of .*results/, to .*elsewhere.*; remove the link.*--results"
    with pytest.raises(DpmfError, match=message):
        store.write(task(), result())
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_the_results_folder_itself_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "large-disk").mkdir()
    (tmp_path / "results").symlink_to(tmp_path / "large-disk")
    store = Store(tmp_path / "results")
    store.prepare(store.root / "x")
    store.write(task(), result())
    assert store.missing(task()) is None


def test_what_killed_runs_were_writing_is_swept_and_what_others_write_is_not(
    store: Store, path: Path
) -> None:
    for place in (store.root, store.root / "x", path.parent):
        place.mkdir(exist_ok=True)
        (place / ".writing-left").write_bytes(b"half")
    with temporary_folder(path.parent) as held:
        store.prepare(store.root / "x")
        assert held.exists()
    assert [each for each in store.root.rglob("*") if each.is_file()] == [path]


def test_a_result_of_another_version_is_refused_with_the_fix(store: Store, path: Path) -> None:
    body = json.loads(path.read_bytes())
    del body["sha256"]
    path.write_bytes(encode(sealed({**body, "format": 99})))
    with pytest.raises(DpmfError, match=r"format 99 by another version.*--results"):
        read(store, task())


def test_a_full_disk_leaves_no_trace_and_says_so(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(DpmfError, match=r"No space left.*free some space and run the same command again"):
        store.write(task((5.0,)), result((5.0,)))
    assert list(path.parent.iterdir()) == [path]


def test_a_folder_that_cannot_be_made_is_said_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(DpmfError, match=r"cannot be written.*--results"):
        Store(tmp_path / "results").prepare()


def test_encoding_is_canonical_and_strict() -> None:
    assert encode({"b": math.inf, "a": (0.1, 1)}) == b'{"a": [0.1, 1], "b": "inf"}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(math.nan)
    body = {"format": 1, "command": os.fsdecode(b"dpmf run r\xff.yaml")}  # a path that is no text
    assert unsealed(encode(sealed(body))) == body


def test_what_only_some_results_have_is_read_back_and_leaves_others_as_they_were(
    store: Store, path: Path
) -> None:
    whole = replace(
        result(),
        error_cdf=((0.1, 1.0), (0.25, 0.75)),
        records=RecordCosts((0.1, 0.5), (0.5, 1.0), (0.1, 0.1), (0.1, 0.3), (0.1, math.inf)),
        ranking=((0.1, 0.2), (0.3, 1 / 3)),
        others={"mae": (0.5, 1 / 3)},
    )
    asked = task(limits=(1.0, 2.0), ranking=TopItems(threshold=4))
    ranking = {"threshold": 4.0, "ndcg": 10, "recall": 20}
    assert asked.settings == {**task().settings, "error_cdf": [1.0, 2.0], "ranking": ranking}
    store.write(asked, whole)
    assert read(store, asked) == {0.1: whole, 1.0: whole}
    assert json.loads(store.path(asked).read_bytes())["mae"] == [0.5, 1 / 3]
    assert read(store, task()) == {0.1: result(), 1.0: result()}
    optional = {"error_cdf", "records", "ranking", "mae", "others"}
    assert not optional & json.loads(path.read_bytes()).keys()
