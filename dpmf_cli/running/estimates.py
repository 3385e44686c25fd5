"""Estimates the cost of each task of a plan, from constants measured on the reference machine."""

import math
from collections.abc import Iterable
from typing import Any

from dpmf_cli.algorithms.shared.cost import NOTHING, Cost, Shape
from dpmf_cli.evaluation.top_items import users_at_once
from dpmf_cli.results.task import Task
from dpmf_cli.running.batches import together
from dpmf_cli.running.grid_parts import cost_in_parts
from dpmf_cli.running.machine import Machine

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

TASK_BYTES, LANE_BYTES, FILES_BYTES, BLOCK = 1_000.0, 400.0, 4e5, 4096
"""Disk space: a result, and each of its ε; the tables and figures of an experiment; the block to which file sizes are
rounded up."""
KEPT_BYTES, TIME_BYTES = 12.0, 8.0
"""Disk space in the cache per rating, and per time stamp of a rating."""


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


def disk_bytes(tasks: Iterable[Task], ratings: int, *, timestamps: bool) -> float:
    """Bytes that an experiment with these tasks leaves on the disk: results, tables and figures, cached ratings."""
    results = sum(math.ceil((TASK_BYTES + LANE_BYTES * len(task.epsilons)) / BLOCK) * BLOCK for task in tasks)
    return results + FILES_BYTES + (KEPT_BYTES + TIME_BYTES * timestamps) * ratings


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
