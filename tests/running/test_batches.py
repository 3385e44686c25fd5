"""Tasks run with one BLAS thread on any machine."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.config import ExperimentConfig
from dpmf_cli.datasets import DataIdentity
from dpmf_cli.errors import DpmfError
from dpmf_cli.results.task import Task, TaskResult, tasks_of
from dpmf_cli.running import batches
from tests.conftest import make_ratings


def task() -> Task:
    config = ExperimentConfig.model_validate(
        {"name": "x", "dataset": "ml-100k", "epsilons": [1], "algorithms": [{"algorithm": "pge"}]}
    )
    return next(tasks_of(config, config.algorithms[0], DataIdentity("ml-100k", "", "c")))


def test_blas_keeps_to_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def watching(tasks: Any, *folds: Any) -> list[TaskResult]:
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return [TaskResult(task.epsilons, (1.0,), (1.0,), (1.0,), ()) for task in tasks]

    monkeypatch.setattr(batches, "execute", watching)
    monkeypatch.setattr(batches, "open_cached", lambda checksum, cache: make_ratings())
    (outcome,) = batches.run_batch((task(),), tmp_path)
    assert outcome.failure is None, outcome.failure
    assert seen
    assert set(seen) == {1}


def test_libraries_are_looked_for_once_and_again_where_more_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[None] = []

    class Counted(ThreadpoolController):  # type: ignore[misc]
        def __init__(self) -> None:
            looked.append(None)
            super().__init__()

    result = TaskResult((1.0,), (1.0,), (1.0,), (1.0,), ())
    monkeypatch.setattr(batches, "ThreadpoolController", Counted)
    monkeypatch.setattr(batches, "execute", lambda tasks, *folds: [result])
    monkeypatch.setattr(batches, "open_cached", lambda checksum, cache: make_ratings())
    batches._threads.cache_clear()
    for _ in range(3):
        batches.run_batch((task(),), tmp_path)
    assert len(looked) == 1
    monkeypatch.setitem(sys.modules, "a module that is loaded now", sys)
    batches.run_batch((task(),), tmp_path)
    assert len(looked) == 2
    batches._threads.cache_clear()


def test_a_fit_without_memory_is_a_message_and_not_a_failed_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*_: Any, **__: Any) -> None:
        np.empty(1 << 60, np.int8)

    monkeypatch.setattr(batches, "open_cached", lambda checksum, cache: make_ratings())
    monkeypatch.setattr(PRIVATE["pge"], "fit", fit)
    with pytest.raises(
        DpmfError, match=r"not enough memory for .* on ml-100k; use a smaller -j, or see `dpmf plan`"
    ):
        batches.run_batch((task(),), tmp_path)
