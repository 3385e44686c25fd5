"""The plan: the tasks of a config, which of them are done or left, and what those that are left will cost.

Costs are estimated from constants measured on the reference machine.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.cost import NOTHING, Cost, Shape
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import DataIdentity, Dataset, Folders, Sizes, known, sizes
from dpmf_cli.datasets.spec import SyntheticSpec
from dpmf_cli.evaluation.folds import Order
from dpmf_cli.evaluation.metrics import users_at_once
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import Task, tasks_of
from dpmf_cli.experiment.running.batches import Batch, cost_in_parts, room, together
from dpmf_cli.experiment.running.cutting import held_out_share, training_shape
from dpmf_cli.experiment.running.machine import REFERENCE, Machine

PROCESS_BYTES = 49e6
"""Resident memory of a process that has run kernels and drawn figures, beside its imports and the ratings."""
FIGURES_SECONDS, KERNEL_SECONDS = 0.4, 0.1
"""Time of a run beside its imports and fits: for figures, and for reading an entry's compiled kernels from the
cache."""
TASK_SECONDS, PREDICTION_SECONDS = 0.01, 1e-8
"""Measured time of storing a result, and of one prediction of one rating for one ε."""
RANKED_SECONDS, RANKED_BYTES = 1e-8, 30.0
"""Ranking metrics: time per predicted score, and memory per score of a block, including arrays computed from it."""
CUT_SECONDS = 6.5e-8
"""Per rating, process and cut: time to assign a fold and to copy the rating into the training or test set."""
RATING_BYTES, CUT_BYTES = 16.0, 15.0
"""Per rating and process: memory in the training or test set and in the users' memory map; and, while these sets are
made, in the memory map of all columns and in the folds."""
MADE_SECONDS, MADE_BYTES, MAKING_BYTES = 4.5e-7, 12.5, 3.7e8
"""Per synthetic rating: time and memory to generate it. Then the memory of the process with a block of ratings
(`datasets.synthetic`)."""


def in_order(tasks: Iterable[Task]) -> list[Task]:
    """Orders tasks so that those of one cut of one data set follow each other and share its split."""
    return sorted(tasks, key=lambda task: (*place_of_cut(task), task.run))


def place_of_cut(task: Task) -> tuple[Any, ...]:
    """The first key by which tasks are ordered: the same for all tasks that share a split."""
    cut = task.cut
    return task.data.key, cut.portion, cut.fold, cut.folds, cut.order, cut.test, str(task.seed)


def costs_of(
    tasks: Iterable[Task],
    shapes: dict[float, Shape],
    asked: dict[float, float],
    machine: Machine,
    within: float,
) -> dict[Any, Cost]:
    """The cost of each task on a machine, by `Task.key`.

    The time is an equal part of the fit that the task shares, and its own predictions of the ratings `asked` for (by
    portion). The memory is that of the fit or of the predictions, whichever is larger. Ranking metrics add to both. A
    fit may hold `within` bytes; a larger grid is cut into parts.
    """
    costs = {}
    for batch in together(in_order(tasks)):
        shape, predicted = shapes[batch[0].cut.portion], asked[batch[0].cut.portion]
        lanes = sum(len(task.epsilons) for task in batch)
        whole = cost_in_parts(batch[0].algorithm, shape, lanes, within)
        fit = machine.seconds(whole) / len(batch)
        for task in batch:
            grid = len(task.epsilons)
            measured = machine.passes * (TASK_SECONDS + PREDICTION_SECONDS * predicted * grid)
            held = 8.0 * grid * (predicted + shape.users + shape.items)
            ranked = _ranking_cost(task, shape, predicted, machine)
            costs[task.key] = Cost(fit + measured + ranked.seconds, max(whole.bytes, held) + ranked.bytes)
    return costs


def _ranking_cost(task: Task, shape: Shape, predicted: float, machine: Machine) -> Cost:
    """The cost of a task's ranking metrics: predicting and ordering all items for each user with a held-out rating.

    `predicted` is the number of held-out ratings.
    """
    if task.ranking is None:
        return NOTHING
    grid, users = len(task.epsilons), min(float(shape.users), predicted)
    at_once = users_at_once(shape.items, grid)
    pairs = users * shape.items
    found = task.algorithm.predictions_cost(shape, grid, pairs, math.ceil(users / at_once))
    ordering = machine.passes * RANKED_SECONDS * pairs * grid
    block = RANKED_BYTES * grid * shape.items * min(at_once, users)
    return Cost(machine.seconds(found) + ordering, block + found.bytes)


@dataclass(frozen=True)
class EntryPlan:
    """One algorithm's part of a plan.

    experiment  the name of the entry's experiment
    left        tasks with only those ε of the grid that have no result yet
    refined     the tasks in `left` of which some ε are done
    """

    experiment: str
    entry: Algorithm
    grid: tuple[float, ...]
    total: int
    left: tuple[Task, ...]
    refined: tuple[Task, ...]
    costs: tuple[Cost, ...]

    @property
    def done(self) -> int:
        return self.total - len(self.left)

    @property
    def seconds_left(self) -> float:
        return sum(cost.seconds for cost in self.costs)


@dataclass(frozen=True)
class Plan:
    """What a run of a config would do.

    shapes  shape of the training set, by the portion of the ratings
    made    cost of first generating synthetic ratings
    """

    entries: tuple[EntryPlan, ...]
    ratings: int
    shapes: dict[float, Shape]
    machine: Machine = REFERENCE
    made: Cost = NOTHING

    @property
    def left(self) -> list[Task]:
        """All tasks left, ordered so that tasks of one cut follow each other and share its split."""
        return in_order(task for entry in self.entries for task in entry.left)

    @property
    def batches(self) -> list[Batch]:
        """The tasks that are left, grouped if they share a fit.

        Within a cut the longest batches come first, so that few processes wait for the last batch at the end.
        """
        return sorted(
            together(self.left), key=lambda batch: (*place_of_cut(batch[0]), -sum(map(self.cost_of, batch)))
        )

    @property
    def total(self) -> int:
        return sum(entry.total for entry in self.entries)

    @property
    def summary(self) -> str:
        """How many tasks are done and left, and the new ε of tasks whose other ε are done."""
        left = len(self.left)
        counts = f"{self.total} tasks, {self.total - left} done, {left} left"
        refined = [task for entry in self.entries for task in entry.refined]
        if not refined:
            return counts
        new = sorted({epsilon for task in refined for epsilon in task.epsilons})
        which = ", ".join(f"{epsilon:g}" for epsilon in new) if len(new) <= 8 else f"{len(new)} values"
        return f"{counts}; {len(refined)} of them only compute new ε ({which})"

    def cost_of(self, task: Task) -> float:
        """Estimated seconds of a task that is left."""
        return self.costs[task.key].seconds

    @cached_property
    def costs(self) -> dict[Any, Cost]:
        """The cost of each task that is left, by `Task.key`."""
        pairs = (pair for each in self.entries for pair in zip(each.left, each.costs, strict=True))
        return {task.key: cost for task, cost in pairs}

    def seconds(self, jobs: int) -> float:
        """Estimated wall time of what is left, in `jobs` processes; never less than the longest task."""
        longest = max((cost.seconds for entry in self.entries for cost in entry.costs), default=0.0)
        work = sum(entry.seconds_left for entry in self.entries)
        if not work:
            return 0.0
        # Every process does this work for itself, so it is not divided by the number of processes.
        each = CUT_SECONDS * self.ratings * len({task.cut for task in self.left})
        each += KERNEL_SECONDS * sum(bool(entry.left) for entry in self.entries)
        starts = self.machine.start.seconds * min(jobs, 2)  # workers start side by side, after their parent
        beside = starts + self.machine.passes * (FIGURES_SECONDS + each)
        return self.made.seconds + beside + max(work / jobs, longest)

    def peak_bytes(self, jobs: int) -> float:
        """Estimated resident memory of all processes together at the worst moment."""
        fit = max((cost.bytes for entry in self.entries for cost in entry.costs), default=0.0)
        process = self.machine.start.bytes + PROCESS_BYTES
        worker = process + RATING_BYTES * self.ratings + max(fit, CUT_BYTES * self.ratings)
        return max(jobs * worker + (process if jobs > 1 else 0.0), self.made.bytes)


def plan_for(config: ExperimentConfig, dataset: Dataset, store: Store, machine: Machine = REFERENCE) -> Plan:
    """The plan of a config on a data set that is present."""
    ratings = dataset.ratings
    size = Sizes(ratings.n_users, ratings.n_items, len(ratings), "counted")
    squares = float(np.square(ratings.user_counts, dtype=np.float64).sum())
    return make_plan(config, dataset.identity, size, store, squares=squares, machine=machine)


def plan_without_parsing(config: ExperimentConfig, folders: Folders, machine: Machine) -> tuple[Plan, Sizes]:
    """The plan of a config, from what is known about its data without reading them.

    If the data were never read, no result can exist yet, because its name depends on the data. So all tasks are left.
    """
    spec, store = config.dataset, Store(folders.results)
    size = sizes(spec, folders)
    try:
        dataset = known(spec, folders, config.test)
    except DpmfError:
        dataset = None
    if dataset is not None:
        return plan_for(config, dataset, store, machine), size
    return make_plan(config, DataIdentity(spec.key, "", ""), size, store, machine=machine), size


def make_plan(
    config: ExperimentConfig,
    data: DataIdentity,
    size: Sizes,
    store: Store,
    *,
    squares: float | None = None,
    machine: Machine = REFERENCE,
    within: float | None = None,
) -> Plan:
    """The plan of a config on a data set of that size. All tasks are left where the data were never read.

    squares   Σ c_u² over the users, c_u being the number of ratings of one; None where it is not counted
    within    bytes that one fit may hold; None for the limit on this machine
    """
    held_out = held_out_share(config, size.users, size.ratings)
    order: Order = config.growth.order if config.growth else "timestamp"
    shapes = {
        portion: training_shape(
            size.users, size.items, size.ratings, held_out, squares=squares, portion=portion, order=order
        )
        for portion in config.portions
    }
    found = []
    for entry in config.entries:
        tasks = list(tasks_of(config, entry, data))
        left = tuple(store.left(tasks) if data.checksum else tasks)
        whole = {task.key for task in tasks}
        refined = tuple(task for task in left if task.key not in whole)
        found.append((entry, config.grid(entry), len(tasks), left, refined))
    asked = {portion: portion * size.ratings * held_out for portion in config.portions}
    within = room() if within is None else within
    costs = costs_of((task for *_, left, _ in found for task in left), shapes, asked, machine, within)
    entries = (EntryPlan(config.name, *each, tuple(costs[task.key] for task in each[3])) for each in found)
    made = NOTHING
    if not data.checksum and isinstance(config.dataset, SyntheticSpec):
        seconds = machine.passes * MADE_SECONDS * size.ratings
        made = Cost(seconds, MAKING_BYTES + MADE_BYTES * size.ratings)
    return Plan(tuple(entries), size.ratings, shapes, machine, made)
