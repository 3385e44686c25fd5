"""Runs several experiments as one: fits that they share are done once, and one progress bar covers them all."""

from collections.abc import Iterable
from dataclasses import replace

from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.config import ExperimentConfig
from dpmf_cli.datasets import Dataset, Folders, load
from dpmf_cli.errors import DpmfError
from dpmf_cli.results.store import Store
from dpmf_cli.results.task import Outcome, Task
from dpmf_cli.running import calibration
from dpmf_cli.running.machine import REFERENCE, available_cores
from dpmf_cli.running.plan import EntryPlan, Plan, plan_for, plan_without_parsing
from dpmf_cli.running.runner import Executor, run_plan
from dpmf_cli.terminal import Progress, say


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
    making = Cost(
        sum(each.seconds for each in made.values()), max((each.bytes for each in made.values()), default=0)
    )
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
        known = seen.setdefault((task.settings_hash, task.fold, task.run), set())
        epsilons = tuple(epsilon for epsilon in task.epsilons if epsilon not in known)
        if epsilons:
            known.update(epsilons)
            left.append(replace(task, epsilons=epsilons))
            costs.append(cost)
    shared, here = len(part.left) - len(left), {(task.settings_hash, task.fold, task.run) for task in left}
    refined = tuple(task for task in part.refined if (task.settings_hash, task.fold, task.run) in here)
    return replace(part, total=part.total - shared, left=tuple(left), refined=refined, costs=tuple(costs))


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
