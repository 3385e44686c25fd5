"""Tasks run with one BLAS thread on any machine."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info

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


def test_blas_keeps_to_one_thread_wherever_it_was_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def watching(tasks: Any, *folds: Any) -> list[TaskResult]:
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return [TaskResult(task.epsilons, (1.0,), (1.0,), (1.0,), ()) for task in tasks]

    monkeypatch.setattr(batches, "execute", watching)
    monkeypatch.setattr(batches, "open_cached", lambda checksum, cache: make_ratings())
    for _ in range(2):
        (outcome,) = batches.run_batch((task(),), tmp_path)
        assert outcome.failure is None, outcome.failure
        monkeypatch.setitem(sys.modules, "a module that is loaded now", sys)
    assert seen
    assert set(seen) == {1}


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
