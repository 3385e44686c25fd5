"""Several experiments as one run: what they have in common is fitted once, and one bar tells of all of them."""

from collections.abc import Iterable

from dpmf_cli.algorithms.costs.cost import Shape
from dpmf_cli.config import ExperimentConfig
from dpmf_cli.datasets import Dataset, Folders, load
from dpmf_cli.results.store import Store
from dpmf_cli.results.task import tasks_of
from dpmf_cli.running import calibration
from dpmf_cli.running.machine import REFERENCE, available_cores
from dpmf_cli.running.plan import EntryPlan, Plan, plan_for


def whole_plan(configs: Iterable[ExperimentConfig], folders: Folders) -> Plan:
    """What is left of all configs, on whatever data sets: a task that several of them ask for is in it once.

    Raises DpmfError where data are not there.
    """
    machine = calibration.known(folders.cache, available_cores()) or REFERENCE
    store = Store(folders.results)
    datasets = Datasets(folders)
    seen, entries, ratings, shapes = set[object](), list[EntryPlan](), 0, dict[float, Shape]()
    for config in configs:
        dataset = datasets.of(config)
        plan = plan_for(config, dataset, store, machine)
        for part in plan.entries:
            keys = {task.key for task in tasks_of(config, part.entry, dataset.identity)} - seen
            if keys:
                entries.append(part.only(keys))
                seen |= keys
        ratings = max(ratings, plan.ratings)
        shapes |= plan.shapes
    return Plan(tuple(entries), ratings, shapes, machine)


class Datasets:
    """Data sets that are loaded when they are first asked for, and once."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._loaded: dict[object, Dataset] = {}

    def of(self, config: ExperimentConfig) -> Dataset:
        """That of a config, with its test set. Raises DpmfError where it is not there."""
        key = config.dataset, config.test
        if key not in self._loaded:
            self._loaded[key] = load(config.dataset, self._folders, config.test)
        return self._loaded[key]
