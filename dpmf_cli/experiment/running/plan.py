"""The plan: the tasks of configs, those that are done or left, and what those that are left will cost; and its run.

Costs are estimated from constants measured on the reference machine.

A run has tasks executed, stores each result as it comes, and reports progress. An experiment is run round by round:
each round adds the ε that refine the crossings. Several experiments are run as one.
"""

import math
from collections.abc import Iterable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache as cached, partial
from pathlib import Path
from typing import Any

import numpy as np

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.cost import NOTHING, Cost, Shape
from dpmf_cli.core.children import available_cores
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.terminal import Progress, say
from dpmf_cli.datasets import DataIdentity, Dataset, Folders, Sizes, known, load, sizes
from dpmf_cli.datasets.spec import SyntheticSpec
from dpmf_cli.evaluation.crossings import MOST_ROUNDS, epsilons_to_add
from dpmf_cli.evaluation.folds import LATEST
from dpmf_cli.evaluation.metrics import users_at_once
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.collect import collect
from dpmf_cli.experiment.results.folders import Collected
from dpmf_cli.experiment.results.manifest import Ran
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import Cut, Outcome, Task, tasks_of
from dpmf_cli.experiment.running import calibration
from dpmf_cli.experiment.running.batches import Batch, cost_in_parts, room, run_batch, together
from dpmf_cli.experiment.running.calibration import REFERENCE, Machine
from dpmf_cli.experiment.running.processes import Claims, each_of

PRIZE_SHARE = 0.015
"""Fraction of the Netflix Prize's ratings in one of its test sets. Fits under other single cuts cost no more."""
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
    """The tasks, ordered so that those of one cut of one data set follow each other and share its split."""
    return sorted(tasks, key=lambda task: (*place_of_cut(task), task.run))


def place_of_cut(task: Task) -> tuple[Any, ...]:
    """The first key by which tasks are ordered: the same for all tasks that share a split."""
    cut = task.cut
    return task.data.key, cut.portion, cut.fold, cut.folds, cut.order, str(cut.split), str(task.seed)


def training_set(cut: Cut, size: Sizes, squares: float | None = None) -> tuple[Shape, float]:
    """The size of the training set under a cut, and the number of ratings that are held out.

    `squares` is Σ c_u² over the users, c_u being the number of ratings of one; None where it is not counted. It falls
    with the square of the share of each user's ratings that is kept. A portion in the order of time keeps or drops
    all ratings of a user, so there it falls in proportion.
    """
    latest = min(1.0, LATEST * size.users / size.ratings) if cut.split == "recent" else 1.0
    held_out, portion = PRIZE_SHARE if cut.folds == 1 else latest / cut.folds, cut.portion
    shape = Shape(size.users, size.items, round((1 - held_out) * portion * size.ratings))
    if squares is not None:
        kept = (1 - held_out) ** 2 * (portion**2 if cut.order == "random" else portion)
        shape = replace(shape, squares=squares * kept)
    return shape, portion * size.ratings * held_out


Sized = tuple[Sizes, float | None]
"""The sizes of a data set, and the `squares` of its users (`training_set`)."""


def priced(
    tasks: Iterable[Task], size: Sized, machine: Machine, within: float
) -> tuple[list[Batch], dict[Any, Cost]]:
    """The batches in which tasks on one data set are executed, and the cost of each task, by `Task.key`.

    The time is an equal part of the fit that the task shares, and its own predictions of the held-out ratings. The
    memory is that of the fit or of the predictions, whichever is larger. Ranking metrics add to both. A fit may hold
    `within` bytes: a larger grid is cut into parts, and tasks whose shared release would be larger are executed
    alone.
    """
    batches, costs = list[Batch](), {}
    waiting = together(in_order(tasks))[::-1]
    while waiting:
        batch = waiting.pop()
        shape, predicted = training_set(batch[0].cut, *size)
        entries, grids = [task.algorithm for task in batch], [len(task.epsilons) for task in batch]
        if len(batch) > 1:
            whole = entries[0].cost_together(entries, shape, grids)
            # Entries that share lanes hold hardly more than one of them; a shared release is held besides.
            if entries[0].settings_at_once and whole.bytes > within:
                waiting += [(task,) for task in reversed(batch)]
                continue
        else:
            whole = cost_in_parts(entries[0], shape, grids[0], within, apart=batch[0].cut.of_new_users)
        batches.append(batch)
        fit = machine.seconds(whole) / len(batch)
        for task in batch:
            grid = len(task.epsilons)
            measured = machine.passes * (TASK_SECONDS + PREDICTION_SECONDS * predicted * grid)
            held = 8.0 * grid * (predicted + shape.users + shape.items)
            cost = Cost(fit + measured, max(whole.bytes, held))
            if task.ranking is not None:
                # All items are predicted and ordered for each user with a held-out rating.
                users = min(float(shape.users), predicted)
                at_once, pairs = users_at_once(shape.items, grid), users * shape.items
                found = task.algorithm.predictions_cost(shape, grid, pairs, math.ceil(users / at_once))
                ordering = machine.passes * RANKED_SECONDS * pairs * grid
                block = RANKED_BYTES * grid * shape.items * min(at_once, users)
                cost += Cost(machine.seconds(found) + ordering, block + found.bytes)
            costs[task.key] = cost
    return batches, costs


@dataclass(frozen=True)
class EntryPlan:
    """One algorithm's part of a plan, without what an earlier part has.

    experiment  the name of the entry's experiment
    left        tasks with only those ε of the grid that have no result yet
    refined     the tasks in `left` of which some ε are done
    """

    experiment: str
    entry: Algorithm
    total: int
    left: tuple[Task, ...]
    refined: tuple[Task, ...]


@dataclass(frozen=True)
class Plan:
    """What a run of configs would do.

    batches   the tasks that are left, grouped if they share a fit. Within a cut the longest batches come first, so
              that few processes wait for the last batch at the end
    costs     the cost of each task that is left, by `Task.key`
    ratings   those of the largest data set
    made      the cost of first generating synthetic ratings: the time of all, the memory of the largest
    """

    entries: tuple[EntryPlan, ...]
    batches: tuple[Batch, ...]
    costs: Mapping[Any, Cost]
    ratings: int
    machine: Machine = REFERENCE
    made: Cost = NOTHING

    @property
    def left(self) -> list[Task]:
        """All tasks left, ordered so that tasks of one cut follow each other and share its split."""
        return in_order(task for entry in self.entries for task in entry.left)

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

    def seconds_of(self, entry: EntryPlan) -> float:
        """Estimated seconds, on one core, of what is left of an entry."""
        return sum(map(self.cost_of, entry.left))

    def seconds(self, jobs: int) -> float:
        """Estimated wall time of what is left, in `jobs` processes; never less than the longest batch."""
        work = sum(cost.seconds for cost in self.costs.values())
        if not work:
            return 0.0
        longest = max(sum(map(self.cost_of, batch)) for batch in self.batches)
        # Every process does this work for itself, so it is not divided by the number of processes.
        each = CUT_SECONDS * self.ratings * len({task.cut for task in self.left})
        each += KERNEL_SECONDS * sum(bool(entry.left) for entry in self.entries)
        starts = self.machine.start.seconds * min(jobs, 2)  # workers start side by side, after their parent
        beside = starts + self.machine.passes * (FIGURES_SECONDS + each)
        return self.made.seconds + beside + max(work / jobs, longest)

    def peak_bytes(self, jobs: int) -> float:
        """Estimated resident memory of all processes together at the worst moment."""
        fit = max((cost.bytes for cost in self.costs.values()), default=0.0)
        process = self.machine.start.bytes + PROCESS_BYTES
        worker = process + RATING_BYTES * self.ratings + max(fit, CUT_BYTES * self.ratings)
        return max(jobs * worker + (process if jobs > 1 else 0.0), self.made.bytes)


def sizes_of(dataset: Dataset) -> Sized:
    """The sizes of a data set that is present."""
    ratings = dataset.ratings
    size = Sizes(ratings.n_users, ratings.n_items, len(ratings), "counted")
    return size, float(np.square(ratings.user_counts, dtype=np.float64).sum())


Asked = tuple[ExperimentConfig, DataIdentity, Sized]
"""A config, and what is known of its data."""


def plan_for(config: ExperimentConfig, dataset: Dataset, store: Store, machine: Machine = REFERENCE) -> Plan:
    """The plan of a config on a data set that is present."""
    return make_plan([(config, dataset.identity, sizes_of(dataset))], store, machine=machine)


def plan_without_parsing(config: ExperimentConfig, folders: Folders, machine: Machine) -> tuple[Plan, Sizes]:
    """The plan of a config, from what is known about its data without reading them."""
    of = _known(config, folders)
    return make_plan([of], Store(folders.results), machine=machine), of[-1][0]


def _known(config: ExperimentConfig, folders: Folders) -> Asked:
    """What is known about a config's data without reading them."""
    size = sizes(config.dataset, folders)  # reads an own file, if it was never read
    try:
        dataset = known(config.dataset, folders, config.split)
    except DpmfError:
        dataset = None
    return unread(config, size) if dataset is None else (config, dataset.identity, sizes_of(dataset))


def unread(config: ExperimentConfig, size: Sizes) -> Asked:
    """A config whose data were never read. No result can exist yet, because its name depends on the data; the whole
    spec names them."""
    return config, DataIdentity(config.dataset.model_dump_json(), "", ""), (size, None)


def make_plan(
    of: Iterable[Asked], store: Store, *, machine: Machine = REFERENCE, within: float | None = None
) -> Plan:
    """The plan of what is left of configs. An ε of a task that several entries share belongs to the first. All tasks
    are left where the data were never read.

    within    bytes that one fit may hold; None for the limit on this machine
    """
    asked: dict[tuple[str, int, int], set[float]] = {}
    on: dict[DataIdentity, tuple[Sized, list[Task]]] = {}
    entries, made = list[EntryPlan](), dict[DataIdentity, Cost]()
    for config, data, size in of:
        _, on_data = on.setdefault(data, (size, []))
        if not data.checksum and isinstance(config.dataset, SyntheticSpec):
            ratings = size[0].ratings
            made[data] = Cost(machine.passes * MADE_SECONDS * ratings, MAKING_BYTES + MADE_BYTES * ratings)
        for entry in config.entries:
            tasks = list[Task]()
            for task in tasks_of(config, entry, data):  # without the ε that earlier entries have
                there = asked.setdefault(task.key[:3], set())
                if epsilons := tuple(epsilon for epsilon in task.epsilons if epsilon not in there):
                    there.update(epsilons)
                    tasks.append(task if epsilons == task.epsilons else replace(task, epsilons=epsilons))
            left = tuple(store.left(tasks) if data.checksum else tasks)
            whole = {task.key for task in tasks}
            refined = tuple(task for task in left if task.key not in whole)
            entries.append(EntryPlan(config.name, entry, len(tasks), left, refined))
            on_data += left
    batches, costs = list[Batch](), dict[Any, Cost]()
    for size, tasks in on.values():
        grouped, found = priced(tasks, size, machine, room() if within is None else within)
        batches += grouped
        costs |= found
    batches.sort(key=lambda batch: (*place_of_cut(batch[0]), -sum(costs[task.key].seconds for task in batch)))
    ratings = max((size.ratings for (size, _), _ in on.values()), default=0)
    most = max((each.bytes for each in made.values()), default=0.0)
    making = Cost(sum(each.seconds for each in made.values()), most)
    return Plan(tuple(entries), tuple(batches), costs, ratings, machine, making)


def run_plan(title: str, plan: Plan, store: Store, cache: Path, processes: int) -> list[Outcome]:
    """Executes the tasks that are left, stores their results, and returns their outcomes without results.

    If a task raises, that is recorded and the other tasks go on; tasks that another run finishes in the meantime are
    not computed. Raises DpmfError where results cannot be kept; finished tasks stay finished.
    """
    ended: list[Outcome] = []
    batches = plan.batches
    if not batches:
        return ended
    progress = Progress(title, len(plan.left), sum(map(plan.cost_of, plan.left)))

    def finished(task: Task) -> None:
        progress.finished(task.algorithm.name, plan.cost_of(task))

    with (
        progress,
        Claims(store, batches, finished) as claims,
        closing(each_of(partial(run_batch, cache=cache), claims, min(processes, len(batches)))) as found,
    ):
        for outcomes in found:
            for outcome in outcomes:
                if outcome.result is not None:
                    store.write(outcome.task, outcome.result)
                finished(outcome.task)
            claims.release(outcome.task for outcome in outcomes)
            # Results are in the store now, so a long run need not hold them in memory.
            ended += (replace(outcome, result=None) for outcome in outcomes)
    return ended


def run_rounds(
    ran: Ran, dataset: Dataset, store: Store, cache: Path, processes: int, machine: Machine
) -> tuple[Ran, Collected, list[Outcome]]:
    """What was run, with the added ε; the collected results; and the outcome of each task without its result.

    Because the ε that a round adds depend only on the results of earlier rounds, a run that continues after an
    interrupt, or in other processes, adds the same ε. Raises DpmfError as `run_plan` does.
    """
    name, outcomes = ran.config.name, list[Outcome]()
    for number in range(MOST_ROUNDS + 1):
        plan = plan_for(ran.config, dataset, store, machine)
        if plan.left or not number:
            say(f"{name}: {'refining crossings' if number else ran.data.title}, {plan.summary}")
        outcomes += run_plan(name, plan, store, cache, processes)
        collected = collect(ran, store)
        if not ran.config.refines or number == MOST_ROUNDS or any(each.failure for each in outcomes):
            break
        added = epsilons_to_add(collected.shown)
        if not added:
            break
        ran = replace(ran, config=ran.config.with_added(added))
    return ran, collected, outcomes


def whole_plan(configs: Iterable[ExperimentConfig], folders: Folders, *, parsing: bool = True) -> Plan:
    """The plan of what is left of all configs, on any data sets. Configs that share an ε of a task compute it once.

    parsing  whether to read, or generate, data that were never read. If False, all tasks on such data are left
    Raises DpmfError where data are missing.
    """
    machine = calibration.known(folders.cache, available_cores()) or REFERENCE
    loaded = cached(load)

    def of(config: ExperimentConfig) -> Asked:
        if not parsing:
            return _known(config, folders)
        dataset = loaded(config.dataset, folders, config.split)
        return config, dataset.identity, sizes_of(dataset)

    return make_plan(map(of, configs), Store(folders.results), machine=machine)


def run_whole(title: str, plan: Plan, folders: Folders, processes: int) -> list[Outcome]:
    """The outcome of each task of a plan, run with a progress bar of that title, and its results stored."""
    store = Store(folders.results, warn=say, set_aside=True)
    store.prepare()
    return run_plan(title, plan, store, folders.cache, processes)


def refuse_failures(ended: Iterable[Outcome]) -> None:
    """Raises DpmfError, with the first failure, if any task failed."""
    failures = [outcome for outcome in ended if outcome.failure]
    if failures:
        first = failures[0]
        raise DpmfError(
            f"{len(failures)} tasks failed; run the same command to try them again. The first failure, of "
            f"{first.task.algorithm.name}:\n{first.failure}"
        )
