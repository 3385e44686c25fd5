"""The plan: the tasks of a config, what is done, what is left, and what that will take."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmf_cli.algorithms.costs.cost import Cost, Shape
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.config import ExperimentConfig
from dpmf_cli.datasets.spec import SyntheticSpec
from dpmf_cli.evaluation.portions import Order
from dpmf_cli.ratings import Ratings
from dpmf_cli.results.store import Store
from dpmf_cli.results.task import Cut, Task, together, training_shape
from dpmf_cli.running.grid_parts import cost_in_parts, room
from dpmf_cli.running.machine import REFERENCE, Machine

PROCESS_BYTES = 49e6
"""Resident memory of a process that has run kernels and drawn figures, beside its imports and the ratings."""
FIGURES_SECONDS, KERNEL_SECONDS = 0.4, 0.1
"""What a run takes beside its imports and fits: figures, and an entry's compiled kernels read from numba's cache."""
TASK_SECONDS, PREDICTION_SECONDS = 0.01, 1e-8
"""Storing a result, and one prediction of one rating for one ε, measured."""
CUT_SECONDS = 6.5e-8
"""Folds dealt out to one rating, and the rating copied to where it belongs: per process and cut."""
RATING_BYTES, CUT_BYTES = 16.0, 15.0
"""Per rating and process: in training or test set, and the users' memory map; and, while these sets are made, the
memory map of all, and folds."""
MADE_SECONDS, MADE_BYTES, MAKING_BYTES = 4.5e-7, 12.5, 3.7e8
"""Per rating that is made up before it can be used; and the process with a block of them (`datasets.synthetic`)."""
PRIZE_SHARE = 0.015
"""Of the Netflix Prize's ratings, those in one of its test sets."""


NOTHING = Cost(0.0, 0.0)
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
    """What a run of a config would do. `shapes` are those of the training sets, by the portion of the ratings; `made`
    is what making up the ratings first takes."""

    entries: tuple[EntryPlan, ...]
    ratings: int
    shapes: dict[float, Shape]
    machine: Machine = REFERENCE
    made: Cost = NOTHING

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
        work = sum(entry.seconds_left for entry in self.entries)
        if not work:
            return 0.0
        # What every process does by itself is not shared out.
        each = CUT_SECONDS * self.ratings * len({task.cut for task in self.left})
        each += KERNEL_SECONDS * sum(bool(entry.left) for entry in self.entries)
        starts = self.machine.start.seconds * (
            2 if jobs > 1 else 1
        )  # workers start side by side, after their parent
        beside = starts + self.machine.passes * (FIGURES_SECONDS + each)
        return self.made.seconds + beside + max(work / jobs, longest)

    def peak_bytes(self, jobs: int) -> float:
        """Estimated resident memory of all processes together at the worst moment."""
        fit = max((cost.bytes for entry in self.entries for cost in entry.costs), default=0.0)
        process = self.machine.start.bytes + PROCESS_BYTES
        worker = process + RATING_BYTES * self.ratings + max(fit, CUT_BYTES * self.ratings)
        return max(jobs * worker + (process if jobs > 1 else 0.0), self.made.bytes)


def _in_order(tasks: Iterable[Task]) -> list[Task]:
    return sorted(tasks, key=lambda task: (task.cut.portion, task.fold, task.run))


def _costs(
    tasks: Iterable[Task], shapes: dict[float, Shape], asked: dict[float, float], machine: Machine
) -> dict[Any, Cost]:
    """By `Task.key` what each task costs on a machine: an equal part of the time of the fit that it shares, its own
    predictions of the ratings `asked` for (by portion), and all of the memory of whichever needs more."""
    costs, within = {}, room()
    for batch in together(_in_order(tasks)):
        shape, predicted = shapes[batch[0].cut.portion], asked[batch[0].cut.portion]
        lanes = sum(len(task.epsilons) for task in batch)
        whole = cost_in_parts(batch[0].algorithm, shape, lanes, within)
        fit = machine.seconds(whole) / len(batch)
        for task in batch:
            grid = len(task.epsilons)
            measured = machine.passes * (TASK_SECONDS + PREDICTION_SECONDS * predicted * grid)
            held = 8.0 * grid * (predicted + shape.users + shape.items)
            costs[task.key] = Cost(fit + measured, max(whole.bytes, held))
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
    machine: Machine = REFERENCE,
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
    held_out = 1 / config.folds if config.folds > 1 else PRIZE_SHARE
    asked = {portion: portion * ratings * held_out for portion in config.portions}
    costs = _costs((task for *_, left in found for task in left), shapes, asked, machine)
    entries = (EntryPlan(*each, tuple(costs[task.key] for task in each[-1])) for each in found)
    made = NOTHING
    if checksum is None and isinstance(config.dataset, SyntheticSpec):
        seconds = machine.passes * MADE_SECONDS * ratings
        made = Cost(seconds, MAKING_BYTES + MADE_BYTES * ratings)
    return Plan(tuple(entries), ratings, shapes, machine, made)
