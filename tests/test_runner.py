"""Tasks run with one BLAS thread, whatever the machine."""

from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_info

from dpmf_cli import runner
from dpmf_cli.config import ExperimentConfig
from dpmf_cli.plan import tasks_of
from dpmf_cli.tasks import TaskResult
from tests.conftest import make_ratings


def test_blas_keeps_to_one_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def watching(tasks: Any, *folds: Any) -> list[TaskResult]:
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return [TaskResult(task.epsilons, (1.0,), (1.0,), (1.0,), ()) for task in tasks]

    monkeypatch.setattr(runner, "execute", watching)
    monkeypatch.setattr(runner, "open_cached", lambda checksum, cache: make_ratings())
    config = ExperimentConfig(name="x", dataset="ml-100k", epsilons=[1], algorithms=[{"algorithm": "pge"}])  # type: ignore[arg-type, list-item]
    task = next(tasks_of(config, config.algorithms[0], "ml-100k", "c"))
    (outcome,) = runner.run_batch((task,), tmp_path)
    assert outcome.failure is None, outcome.failure
    assert seen
    assert set(seen) == {1}
