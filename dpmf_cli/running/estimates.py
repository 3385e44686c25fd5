"""What the work of a plan costs: constants measured on the reference machine, and the cost of each task."""

import math
from collections.abc import Iterable
from typing import Any

from dpmf_cli.algorithms.costs.cost import NOTHING, Cost, Shape
from dpmf_cli.algorithms.costs.predictions import predictions_cost
from dpmf_cli.evaluation.top_items import users_at_once
from dpmf_cli.results.task import Task
from dpmf_cli.running.batches import together
from dpmf_cli.running.grid_parts import cost_in_parts
from dpmf_cli.running.machine import Machine

PROCESS_BYTES = 49e6
"""Resident memory of a process that has run kernels and drawn figures, beside its imports and the ratings."""
FIGURES_SECONDS, KERNEL_SECONDS = 0.4, 0.1
"""What a run takes beside its imports and fits: figures, and an entry's compiled kernels read from the cache."""
TASK_SECONDS, PREDICTION_SECONDS = 0.01, 1e-8
"""Storing a result, and one prediction of one rating for one ε, measured."""
RANKED_SECONDS, RANKED_BYTES = 1e-8, 30.0
"""One predicted score among those of all items for a user; and one of a block, with what is made of it."""
CUT_SECONDS = 6.5e-8
"""Folds dealt out to one rating, and the rating copied to where it belongs: per process and cut."""
RATING_BYTES, CUT_BYTES = 16.0, 15.0
"""Per rating and process: in training or test set, and the users' memory map; and, while these sets are made, the
memory map of all, and folds."""
MADE_SECONDS, MADE_BYTES, MAKING_BYTES = 4.5e-7, 12.5, 3.7e8
"""Per rating that is made up before it can be used; and the process with a block of them (`datasets.synthetic`)."""

TASK_BYTES, LANE_BYTES, FILES_BYTES, BLOCK = 1_000.0, 400.0, 4e5, 4096
"""On the disk: a result, and each ε of it; tables and figures of an experiment; and what a file is rounded up to."""
KEPT_BYTES, TIME_BYTES = 12.0, 8.0
"""Per rating of the cache of a data set that was read, and of its time stamp."""


def in_order(tasks: Iterable[Task]) -> list[Task]:
    """Tasks of one cut of one data set follow each other and share its split."""
    return sorted(tasks, key=lambda task: (*place_of_cut(task), task.run))


def place_of_cut(task: Task) -> tuple[Any, ...]:
    """What tasks are ordered by first: the same for all that share a split."""
    cut = task.cut
    return task.data.key, cut.portion, cut.fold, cut.folds, cut.order, cut.test, str(task.seed)


def costs_of(
    tasks: Iterable[Task],
    shapes: dict[float, Shape],
    asked: dict[float, float],
    machine: Machine,
    within: float,
) -> dict[Any, Cost]:
    """By `Task.key` what each task costs on a machine: an equal part of the time of the fit that it shares, its own
    predictions of the ratings `asked` for (by portion), and all of the memory of whichever needs more. One fit may
    hold so many bytes `within` which a grid is cut into parts."""
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
    """What an experiment of these tasks leaves on the disk: results, files made of them, and the ratings as kept."""
    results = sum(math.ceil((TASK_BYTES + LANE_BYTES * len(task.epsilons)) / BLOCK) * BLOCK for task in tasks)
    return results + FILES_BYTES + (KEPT_BYTES + TIME_BYTES * timestamps) * ratings


def _ranking_cost(task: Task, shape: Shape, predicted: float, machine: Machine) -> Cost:
    """What the metrics of the items that are put first take: all items predicted and ordered for those users who have
    one of the `predicted` ratings."""
    if task.ranking is None:
        return NOTHING
    grid, users = len(task.epsilons), min(float(shape.users), predicted)
    at_once = users_at_once(shape.items, grid)
    pairs = users * shape.items
    found = predictions_cost(task.algorithm, shape, grid, pairs, math.ceil(users / at_once))
    ordering = machine.passes * RANKED_SECONDS * pairs * grid
    block = RANKED_BYTES * grid * shape.items * min(at_once, users)
    return Cost(machine.seconds(found) + ordering, block + found.bytes)
