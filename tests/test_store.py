"""The store: whole files or none, content-named, damage noticed."""

import errno
import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli import files as module
from dpmf_cli.algorithms.private_global_effects import PrivateGlobalEffects
from dpmf_cli.errors import DpmfError
from dpmf_cli.store import Store, encode, write_atomically
from dpmf_cli.tasks import Cut, RecordCosts, Task, TaskResult


def task(epsilons: tuple[float, ...] = (0.1, 1.0), *, cut: Cut | None = None, **changes: Any) -> Task:
    settings = {"run": 1, "seed": 7, "checksum": "c" * 64, **changes}
    algorithm = PrivateGlobalEffects(algorithm="pge")
    return Task("data", cut=cut or Cut(10, 3), algorithm=algorithm, epsilons=epsilons, **settings)


def result(epsilons: tuple[float, ...] = (0.1, 1.0)) -> TaskResult:
    rmse = tuple(1 / epsilon / 3 for epsilon in epsilons)
    ledger = ({"step": "a", "claimed": list(epsilons), "provable": ["inf"] * len(epsilons)},)
    return TaskResult(epsilons, rmse, epsilons, (math.inf,) * len(epsilons), ledger)


def test_what_is_written_is_read_back_exactly(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(task(), result())
    assert store.read(task()) == {0.1: result(), 1.0: result()}
    assert store.missing(task()) is None


def test_a_finer_grid_leaves_only_the_new_epsilons(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(task(), result())
    left = store.missing(task((0.05, 0.1, 0.5, 1.0)))
    assert left is not None
    assert left.epsilons == (0.05, 0.5)
    store.write(left, result((0.05, 0.5)))
    assert sorted(store.read(task())) == [0.05, 0.1, 0.5, 1.0]


@pytest.mark.parametrize("change", [{"cut": Cut(10, 4)}, {"run": 0}, {"seed": 8}, {"checksum": "d" * 64}])
def test_a_result_belongs_to_one_task(tmp_path: Path, change: dict[str, Any]) -> None:
    store = Store(tmp_path)
    store.write(task(), result())
    assert store.read(task(**change)) == {}


CUTS = [
    Cut(10, 3),
    Cut(10, 3, portion=0.5),
    Cut(10, 3, portion=0.5, order="random"),
    Cut(10, 3, portion=0.6),
    Cut(10, 3, test="probe", test_checksum="a"),
    Cut(10, 3, test="probe", test_checksum="b"),
    Cut(10, 3, test="judging", test_checksum="a"),
]


def test_every_cut_has_results_of_its_own(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for cut in CUTS:
        assert store.read(task(cut=cut)) == {}
        store.write(task(cut=cut), result())


def test_a_cut_of_all_ratings_is_that_of_folds_alone_and_keeps_its_name() -> None:
    """Results of before there were portions and test sets are found again."""
    assert task(cut=Cut(10, 3, portion=1.0, order="random")).settings == task().settings
    assert task().settings == {
        "dataset": "data",
        "checksum": "c" * 64,
        "folds": 10,
        "seed": 7,
        "algorithm": PrivateGlobalEffects(algorithm="pge").parameters(),
    }


def test_a_result_belongs_to_one_set_of_parameters_and_one_revision(tmp_path: Path, monkeypatch: Any) -> None:
    store = Store(tmp_path)
    store.write(task(), result())
    monkeypatch.setattr(PrivateGlobalEffects, "revision", 2)
    assert store.read(task()) == {}


def test_a_label_is_no_parameter() -> None:
    named = PrivateGlobalEffects(algorithm="pge", label="mine")
    assert named.parameters() == PrivateGlobalEffects(algorithm="pge").parameters()


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data.replace(b'"rmse": [3', b'"rmse": [2'),
        lambda data: b"[]",
        lambda data: b"\xff" * 10,
        lambda data: encode({"format": 1, "sha256": "0"}),
    ],
    ids=["truncated", "empty", "altered", "a list", "no text", "empty body"],
)
def test_a_damaged_file_is_told_and_made_again(tmp_path: Path, damage: Any) -> None:
    told: list[str] = []
    store = Store(tmp_path, warn=told.append)
    store.write(task(), result())
    path = store.path(task())
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    assert store.missing(task()) == task()
    assert len(told) == 1
    assert "damaged" in told[0]
    assert str(path) in told[0]
    store.write(task(), result())
    assert path.read_bytes() == whole


def test_a_result_of_another_version_is_refused_with_the_fix(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write(task(), result())
    body = json.loads(store.path(task()).read_bytes())
    store.path(task()).write_bytes(encode({**body, "format": 99}))
    with pytest.raises(DpmfError, match=r"format 99 by another version.*--results"):
        store.read(task())


def test_a_full_disk_leaves_no_trace_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    store = Store(tmp_path)
    store.write(task(), result())
    monkeypatch.setattr(module.os, "fsync", full)
    with pytest.raises(DpmfError, match=r"No space left.*free some space and run the same command again"):
        store.write(task((5.0,)), result((5.0,)))
    assert [path.name for path in store.path(task()).parent.iterdir()] == [store.path(task()).name]


def test_a_folder_that_cannot_be_made_is_said_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file")
    with pytest.raises(DpmfError, match=r"cannot be written.*--results"):
        Store(tmp_path / "results").check_writable()


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def interrupted(*names: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module.os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_encoding_is_canonical_and_strict() -> None:
    assert encode({"b": math.inf, "a": (0.1, 1)}) == b'{"a": [0.1, 1], "b": "inf"}\n'
    with pytest.raises(ValueError, match="not JSON compliant"):
        encode(math.nan)


def test_what_only_some_results_have_is_read_back_and_leaves_others_as_they_were(tmp_path: Path) -> None:
    store, plain = Store(tmp_path), result()
    costs = RecordCosts((0.1, 0.5), (0.5, 1.0), (0.1, 0.1), (0.1, 0.3), (0.1, math.inf))
    whole = replace(plain, error_cdf=((0.1, 1.0), (0.25, 0.75)), records=costs)
    asked = replace(task(), limits=(1.0, 2.0))
    assert asked.settings == {**task().settings, "error_cdf": [1.0, 2.0]}
    store.write(asked, whole)
    assert store.read(asked) == {0.1: whole, 1.0: whole}
    assert store.read(task()) == {}
    store.write(task(), plain)
    assert not {"error_cdf", "records"} & json.loads(store.path(task()).read_bytes()).keys()
