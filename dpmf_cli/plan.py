"""The plan: the tasks of a config, what is done, what is left, and what that will take."""

from collections.abc import Iterator
from dataclasses import dataclass

from dpmf_cli.algorithms.base import Algorithm, Cost
from dpmf_cli.config import ExperimentConfig
from dpmf_cli.store import Store
from dpmf_cli.tasks import Task, training_shape

PROCESS_BYTES = 190e6
"""Resident memory of a process that has imported the kernels, before it holds any ratings."""
START_SECONDS, TASK_SECONDS = 4.0, 0.02
"""What a run takes beside its fits: starting processes and drawing figures, and per task split and prediction."""
RATING_BYTES = 40.0
"""Per rating and process: the memory-mapped ratings, the training and test copies, and their order."""


@dataclass(frozen=True)
class EntryPlan:
    """One algorithm's part of a plan. `left` holds tasks with only those ε that have no result yet."""

    entry: Algorithm
    total: int
    left: tuple[Task, ...]
    cost: Cost

    @property
    def done(self) -> int:
        return self.total - len(self.left)

    @property
    def seconds_left(self) -> float:
        return self.cost.seconds * len(self.left)


@dataclass(frozen=True)
class Plan:
    """What a run of a config would do."""

    entries: tuple[EntryPlan, ...]
    ratings: int

    @property
    def left(self) -> list[Task]:
        """All tasks left, ordered so that tasks of one fold follow each other and share its split."""
        tasks = [task for entry in self.entries for task in entry.left]
        return sorted(tasks, key=lambda task: (task.fold, task.run))

    @property
    def total(self) -> int:
        return sum(entry.total for entry in self.entries)

    def cost_of(self, task: Task) -> float:
        """Estimated seconds of a task."""
        entry = next(entry for entry in self.entries if entry.entry == task.algorithm)
        return entry.cost.seconds

    def seconds(self, jobs: int) -> float:
        """Estimated wall time of what is left, in `jobs` processes: no less than the longest task takes."""
        longest = max((entry.cost.seconds for entry in self.entries if entry.left), default=0.0)
        work = sum(entry.seconds_left + TASK_SECONDS * len(entry.left) for entry in self.entries)
        return START_SECONDS + max(work / jobs, longest) if work else 0.0

    def peak_bytes(self, jobs: int) -> float:
        """Estimated resident memory of all processes together at the worst moment."""
        fit = max((entry.cost.bytes for entry in self.entries if entry.left), default=0.0)
        workers = jobs * (PROCESS_BYTES + RATING_BYTES * self.ratings + fit)
        return workers + (PROCESS_BYTES if jobs > 1 else 0.0)


def tasks_of(config: ExperimentConfig, entry: Algorithm, dataset: str, checksum: str) -> Iterator[Task]:
    """Every task of one algorithm of a config."""
    for fold in range(config.folds_run):
        for run in range(config.runs_of(entry)):
            yield Task(dataset, checksum, config.folds, config.seed, fold, run, entry, config.grid(entry))


def make_plan(
    config: ExperimentConfig,
    *,
    dataset: str,
    checksum: str | None,
    users: int,
    items: int,
    ratings: int,
    store: Store,
) -> Plan:
    """The plan of a config on a data set of that size; `checksum` is None where the data are not present."""
    shape = training_shape(users, items, ratings, config.folds)
    entries = []
    for entry in config.entries:
        tasks = list(tasks_of(config, entry, dataset, checksum or ""))
        left = tasks if checksum is None else [task for task in map(store.missing, tasks) if task]
        grid = max((len(task.epsilons) for task in left), default=len(config.grid(entry)))
        entries.append(EntryPlan(entry, len(tasks), tuple(left), entry.cost(shape, grid)))
    return Plan(tuple(entries), ratings)
