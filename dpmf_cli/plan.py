"""The plan: the tasks of a config, what is done, what is left, and what that will take."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmf_cli.algorithms.base import Algorithm, Cost, Shape
from dpmf_cli.config import ExperimentConfig
from dpmf_cli.evaluation.portions import Order
from dpmf_cli.ratings import Ratings
from dpmf_cli.store import Store
from dpmf_cli.tasks import Cut, Task, together, training_shape

PROCESS_BYTES = 190e6
"""Resident memory of a process that has imported the kernels, before it holds any ratings."""
START_SECONDS, TASK_SECONDS = 4.0, 0.02
"""What a run takes beside its fits: starting processes and drawing figures, and per task split and prediction."""
RATING_BYTES = 40.0
"""Per rating and process: the memory-mapped ratings, the training and test copies, and their order."""


TWIN_GRID = (math.inf,)
"""The grid of a fit without noise."""


@dataclass(frozen=True)
class EntryPlan:
    """One algorithm's part of a plan. `left` holds tasks with only those ε that have no result yet."""

    entry: Algorithm
    total: int
    left: tuple[Task, ...]
    costs: tuple[Cost, ...]

    @property
    def done(self) -> int:
        return self.total - len(self.left)

    @property
    def seconds_left(self) -> float:
        return sum(cost.seconds for cost in self.costs)


@dataclass(frozen=True)
class Plan:
    """What a run of a config would do. `shapes` are those of the training sets, by the portion of the ratings."""

    entries: tuple[EntryPlan, ...]
    ratings: int
    shapes: dict[float, Shape]

    @property
    def left(self) -> list[Task]:
        """All tasks left, ordered so that tasks of one cut follow each other and share its split."""
        return _in_order(task for entry in self.entries for task in entry.left)

    @property
    def batches(self) -> list[tuple[Task, ...]]:
        """The same, those side by side that one fit serves."""
        return together(self.left)

    @property
    def total(self) -> int:
        return sum(entry.total for entry in self.entries)

    def cost_of(self, task: Task) -> float:
        """Estimated seconds of a task that is left."""
        return self.costs[task.key].seconds

    @cached_property
    def costs(self) -> dict[Any, Cost]:
        """By `Task.key` what each task that is left costs."""
        tasks = (
            (task.key, cost)
            for each in self.entries
            for task, cost in zip(each.left, each.costs, strict=True)
        )
        return dict(tasks)

    def seconds(self, jobs: int) -> float:
        """Estimated wall time of what is left, in `jobs` processes: no less than the longest task takes."""
        longest = max((cost.seconds for entry in self.entries for cost in entry.costs), default=0.0)
        work = sum(entry.seconds_left + TASK_SECONDS * len(entry.left) for entry in self.entries)
        return START_SECONDS + max(work / jobs, longest) if work else 0.0

    def peak_bytes(self, jobs: int) -> float:
        """Estimated resident memory of all processes together at the worst moment."""
        fit = max((cost.bytes for entry in self.entries for cost in entry.costs), default=0.0)
        workers = jobs * (PROCESS_BYTES + RATING_BYTES * self.ratings + fit)
        return workers + (PROCESS_BYTES if jobs > 1 else 0.0)


def _in_order(tasks: Iterable[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: (task.cut.portion, task.fold, task.run))


def _costs(tasks: Iterable[Task], shapes: dict[float, Shape]) -> dict[Any, Cost]:
    """By `Task.key` what each task costs: an equal part of the time of the fit that it shares, all of its memory."""
    costs = {}
    for batch in together(_in_order(tasks)):
        lanes = sum(len(task.epsilons) for task in batch)
        whole = batch[0].algorithm.cost(shapes[batch[0].cut.portion], lanes)
        costs.update({task.key: Cost(whole.seconds / len(batch), whole.bytes) for task in batch})
    return costs


def tasks_of(
    config: ExperimentConfig,
    entry: Algorithm,
    dataset: str,
    checksum: str,
    *,
    test_checksum: str = "",
    portions: Sequence[float] | None = None,
) -> Iterator[Task]:
    """Every task of one algorithm of a config, or those on some of its portions; twins have the grid `TWIN_GRID`."""
    grid = config.grid(entry)
    order: Order = config.growth.order if config.growth else "timestamp"
    for portion in portions or config.portions:
        for fold in range(config.folds_run):
            cut = Cut(config.folds, fold, portion, order, config.test, test_checksum)
            for run in range(config.runs_of(entry)):
                yield Task(dataset, checksum, config.seed, cut, run, entry, grid, config.limits)
            if config.twins and entry.private:
                yield Task(dataset, checksum, config.seed, cut, 0, entry, TWIN_GRID, config.limits)


def sum_of_squares(ratings: Ratings) -> float:
    """Σ c_u² over the users, c_u being the number of ratings of one."""
    return float(np.square(ratings.user_counts, dtype=np.float64).sum())


def make_plan(
    config: ExperimentConfig,
    *,
    dataset: str,
    checksum: str | None,
    users: int,
    items: int,
    ratings: int,
    store: Store,
    squares: float | None = None,
    test_checksum: str = "",
) -> Plan:
    """The plan of a config on a data set of that size; `checksum` is None where the data are not present."""
    order: Order = config.growth.order if config.growth else "timestamp"
    shapes = {
        portion: training_shape(
            users, items, ratings, config.folds, squares=squares, portion=portion, order=order
        )
        for portion in config.portions
    }
    found = []
    for entry in config.entries:
        tasks = list(tasks_of(config, entry, dataset, checksum or "", test_checksum=test_checksum))
        left = tasks if checksum is None else [task for task in map(store.missing, tasks) if task]
        found.append((entry, len(tasks), tuple(left)))
    costs = _costs((task for *_, left in found for task in left), shapes)
    entries = (EntryPlan(*each, tuple(costs[task.key] for task in each[-1])) for each in found)
    return Plan(tuple(entries), ratings, shapes)
