"""The runner: has tasks executed here or elsewhere, stores each result as it comes, and reports progress.

It runs an experiment round by round: each round adds the ε that refine the crossings. It also runs several
experiments as one.
"""

from collections.abc import Generator, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.core.children import available_cores
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.terminal import Progress, say
from dpmf_cli.datasets import Dataset, Folders, load
from dpmf_cli.evaluation.crossings import MOST_ROUNDS, epsilons_to_add
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.collect import Collected, collect
from dpmf_cli.experiment.results.manifest import Ran
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import Outcome, Task
from dpmf_cli.experiment.running import calibration
from dpmf_cli.experiment.running.machine import REFERENCE, Machine
from dpmf_cli.experiment.running.plan import EntryPlan, Plan, plan_for, plan_without_parsing
from dpmf_cli.experiment.running.processes import Claims


class Executor(Protocol):
    """Where batches of tasks are executed."""

    @property
    def processes(self) -> int:
        """The number of processes that execute tasks, as far as is known."""
        ...

    def outcomes(self, batches: Claims, cache: Path) -> Generator[list[Outcome]]:
        """The outcomes of each batch, in the order in which batches end. The data are in `cache` on this machine.

        Raises DpmfError for errors that a user can mend. When the caller stops iterating, unfinished batches are
        stopped.
        """
        ...


def run_plan(plan: Plan, store: Store, cache: Path, executor: Executor, progress: Progress) -> list[Outcome]:
    """Has the tasks that are left executed, stores their results, and returns their outcomes without the results.

    If a task raises, that is recorded and the other tasks go on. Tasks that another run finishes in the meantime are
    not computed. Raises DpmfError where results cannot be kept; finished tasks stay finished.
    """
    ended: list[Outcome] = []
    if not plan.batches:
        return ended

    def elsewhere(task: Task) -> None:
        progress.finished(task.algorithm.name, plan.cost_of(task))

    def waiting(tasks: int) -> None:
        say(f"another run computes the {tasks} tasks that are left: waiting for that run")

    with (
        progress,
        Claims(store, plan.batches, elsewhere, waiting) as claims,
        closing(executor.outcomes(claims, cache)) as found,
    ):
        for outcomes in found:
            for outcome in outcomes:
                if outcome.result is not None:
                    store.write(outcome.task, outcome.result)
                progress.finished(outcome.task.algorithm.name, plan.cost_of(outcome.task))
            claims.release(outcome.task for outcome in outcomes)
            # Results are in the store now, so a long run need not hold them in memory.
            ended += (replace(outcome, result=None) for outcome in outcomes)
    return ended


def run_rounds(
    ran: Ran, dataset: Dataset, store: Store, cache: Path, executor: Executor, machine: Machine
) -> tuple[Ran, Collected, list[Outcome]]:
    """Returns what was run, with the added ε; the collected results; and the outcome of each task without its result.

    The ε that a round adds depend only on the results of earlier rounds. So a run that continues after an interrupt,
    or in other processes, adds the same ε. Raises DpmfError as `run_plan` does.
    """
    name, outcomes = ran.config.name, list[Outcome]()
    for number in range(MOST_ROUNDS + 1):
        plan = plan_for(ran.config, dataset, store, machine)
        if plan.left or not number:
            say(f"{name}: {'refining crossings' if number else ran.data.title}, {plan.summary}")
        progress = Progress(name, len(plan.left), sum(map(plan.cost_of, plan.left)))
        outcomes += run_plan(plan, store, cache, executor, progress)
        collected = collect(ran, store)
        if not ran.config.refines or number == MOST_ROUNDS or any(each.failure for each in outcomes):
            break
        added = epsilons_to_add(collected.shown)
        if not added:
            break
        ran = ran.with_added(added)
    return ran, collected, outcomes


def whole_plan(configs: Iterable[ExperimentConfig], folders: Folders, *, parsing: bool = True) -> Plan:
    """The plan of what is left of all configs, on any data sets. Configs that share an ε of a task compute it once.

    parsing  whether to read, or generate, data that were never read. If False, all tasks on such data are left
    Raises DpmfError where data are missing.
    """
    machine = calibration.known(folders.cache, available_cores()) or REFERENCE
    store, datasets = Store(folders.results), Datasets(folders)
    seen: dict[tuple[str, int, int], set[float]] = {}
    entries, ratings, shapes, made = list[EntryPlan](), 0, dict[float, Shape](), dict[str, Cost]()
    for config in configs:
        if parsing:
            plan = plan_for(config, datasets.of(config), store, machine)
        else:
            plan, _ = plan_without_parsing(config, folders, machine)
        entries += [_without_shared(part, seen) for part in plan.entries]
        ratings = max(ratings, plan.ratings)
        shapes |= plan.shapes
        made[config.dataset.key] = plan.made
    most = max((each.bytes for each in made.values()), default=0)
    making = Cost(sum(each.seconds for each in made.values()), most)
    return Plan(tuple(entries), ratings, shapes, machine, making)


def run_whole(title: str, plan: Plan, folders: Folders, executor: Executor) -> list[Outcome]:
    """Runs a plan with a progress bar of that title, stores the results, and returns the outcome of each task."""
    store = Store(folders.results, warn=say, set_aside=True)
    store.prepare()
    progress = Progress(title, len(plan.left), sum(map(plan.cost_of, plan.left)))
    return run_plan(plan, store, folders.cache, executor, progress)


def refuse_failures(ended: Iterable[Outcome]) -> None:
    """Raises DpmfError, with the first failure, if any task failed."""
    failures = [outcome for outcome in ended if outcome.failure]
    if failures:
        first = failures[0]
        raise DpmfError(
            f"{len(failures)} tasks failed; run the same command to try them again. The first failure, of "
            f"{first.task.algorithm.name}:\n{first.failure}"
        )


def _without_shared(part: EntryPlan, seen: dict[tuple[str, int, int], set[float]]) -> EntryPlan:
    """An entry's plan without the ε that earlier entries have. `seen` holds their ε, and gets those of this entry."""
    left, costs = list[Task](), list[Cost]()
    for task, cost in zip(part.left, part.costs, strict=True):
        known = seen.setdefault(task.key[:3], set())
        epsilons = tuple(epsilon for epsilon in task.epsilons if epsilon not in known)
        if epsilons:
            known.update(epsilons)
            left.append(replace(task, epsilons=epsilons))
            costs.append(cost)
    total, here = part.total - len(part.left) + len(left), {task.key[:3] for task in left}
    refined = tuple(task for task in part.refined if task.key[:3] in here)
    return replace(part, total=total, left=tuple(left), refined=refined, costs=tuple(costs))


class Datasets:
    """Data sets. Each is loaded once, when it is first asked for."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._loaded: dict[object, Dataset] = {}

    def of(self, config: ExperimentConfig) -> Dataset:
        """The data set of a config, with its test set. Raises DpmfError where it is missing."""
        key = config.dataset, config.test
        if key not in self._loaded:
            self._loaded[key] = load(config.dataset, self._folders, config.test)
        return self._loaded[key]
