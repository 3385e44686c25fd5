"""The measurements of a task."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.friedman2016.pge import PrivateGlobalEffects
from dpmf_cli.algorithms.shared.model import RecordCosts
from dpmf_cli.results.task import Task, TaskResult, tasks_of
from dpmf_cli.running.batches import execute, joined
from tests.conftest import make_ratings
from tests.results.test_collect import CONFIG, DATA

COSTS = RecordCosts((1.0, 2.0), (0.5, 0.6), (0.1, 0.2), (0.3, 0.4), (1.0, 2.0))


def first_task() -> Task:
    return next(tasks_of(CONFIG, CONFIG.algorithms[0], DATA))


def test_clipping_is_what_the_entry_asks_for() -> None:
    ratings = make_ratings(2)
    clipping = CONFIG.algorithms[1]
    task = replace(first_task(), data=replace(DATA, key="data"), epsilons=(0.01,))
    unclipped = execute([task], ratings, ratings)[0].rmse[0]
    clipped = execute([replace(task, algorithm=clipping)], ratings, ratings)[0].rmse[0]
    assert clipped < unclipped


class Accounting:
    """A model of no particular algorithm that reports what it cost the ratings."""

    record_costs = COSTS

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.floating]:
        return np.ones((len(users), 2))


def test_what_any_model_tells_of_its_records_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = make_ratings(2)
    assert execute([first_task()], ratings, ratings)[0].records is None
    monkeypatch.setattr(PrivateGlobalEffects, "fit", lambda self, train, epsilons, **rest: Accounting())
    assert execute([first_task()], ratings, ratings)[0].records == COSTS


def test_parts_of_a_grid_are_joined_with_what_they_cost_the_records() -> None:
    def part(at: int) -> TaskResult:
        costs = RecordCosts(*((column[at],) for column in COSTS.__dict__.values()))
        return TaskResult(
            (1.0 + at,), (0.9,), (1.0,), (2.0,), ({"step": "a", "claimed": [at]},), records=costs
        )

    whole = joined([part(0), part(1)])
    assert whole.records == COSTS
    assert (whole.epsilons, whole.ledger) == ((1.0, 2.0), ({"step": "a", "claimed": [0, 1]},))
