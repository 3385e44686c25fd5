"""An experiment end to end: plan, run, collect, and write the results folder."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpmf_cli.config import ExperimentConfig
from dpmf_cli.datasets import Dataset, load
from dpmf_cli.datasets.prize import load_test_set
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.crossings import Crossing
from dpmf_cli.evaluation.portions import Portion, first_share, portion
from dpmf_cli.report.outputs import write_outputs
from dpmf_cli.results.collect import Collected
from dpmf_cli.results.folders import collect_ran
from dpmf_cli.results.manifest import Ran, refuse_changed_data
from dpmf_cli.results.run_manifest import keep_manifest
from dpmf_cli.results.store import Store
from dpmf_cli.results.task import Task, arrivals, fold_assignment
from dpmf_cli.running.calibration import known
from dpmf_cli.running.machine import REFERENCE, Machine
from dpmf_cli.running.plan import TWIN_GRID, Plan, make_plan, sum_of_squares
from dpmf_cli.running.runner import Executor, LocalProcesses, Outcome, available_cores, run_plan
from dpmf_cli.terminal import Progress, say


@dataclass(frozen=True)
class Finished:
    """What a run came to. `missing` counts tasks without a result: failed ones, or deleted by somebody."""

    collected: Collected
    crossings: list[Crossing]
    folder: Path
    computed: int
    missing: int
    failures: list[Outcome]


def plan_for(
    config: ExperimentConfig, dataset: Dataset, test_checksum: str, store: Store, machine: Machine = REFERENCE
) -> Plan:
    """The plan of a config on a data set that is present, with the checksum of its fixed test set, "" for folds."""
    return make_plan(
        config,
        dataset=dataset.key,
        checksum=dataset.checksum,
        test_checksum=test_checksum,
        squares=sum_of_squares(dataset.ratings),
        users=dataset.ratings.n_users,
        items=dataset.ratings.n_items,
        ratings=len(dataset.ratings),
        store=store,
        machine=machine,
    )


def run(
    config: ExperimentConfig,
    *,
    base: Path,
    results: Path,
    data: Path,
    cache: Path,
    jobs: int = 1,
    executor: Executor | None = None,
    new_data: bool = False,
    command: str = "",
) -> Finished:
    """Runs what is left of a config and writes its results folder. Raises DpmfError for all that a user can mend.

    Tasks are executed in `jobs` processes of this machine, or by another executor. `new_data` replaces the tables of
    ratings that have changed since; without it they are kept, by an error. The manifest tells `command`, as typed.
    """
    begin = time.perf_counter()
    executor = executor or LocalProcesses(jobs)
    folder = results / config.name
    store = Store(results, warn=say, set_aside=True)
    store.prepare(folder)
    dataset = load(config.dataset, data=data, cache=cache, base=base)
    if len(dataset.ratings) < config.folds:
        raise DpmfError(
            f"{dataset.title} has {len(dataset.ratings)} ratings, fewer than the {config.folds} folds asked for"
        )
    spec, test = config.dataset, ""
    if config.test != "folds" and isinstance(spec, CatalogSpec):
        test = load_test_set(spec, config.test, dataset, data=data, cache=cache, base=base).checksum
    if not new_data:
        refuse_changed_data(folder, config, dataset, test)
    portions = _portions(config, dataset)
    machine = known(cache, available_cores()) or REFERENCE
    plan = plan_for(config, dataset, test, store, machine)
    left = plan.left
    say(
        f"{config.name}: {dataset.title}, {plan.total} tasks, {plan.total - len(left)} done, {len(left)} left"
        f"{new_epsilons(config, left)}"
    )
    progress = Progress(config.name, len(left), sum(map(plan.cost_of, left)))
    outcomes = run_plan(plan, store, cache, executor, progress)
    failures = [outcome for outcome in outcomes if outcome.failure]
    ran = Ran(config, dataset.key, dataset.title, dataset.checksum, test, portions)
    collected = collect_ran(ran, store)
    keep_manifest(
        folder,
        ran,
        dataset.ratings,
        outcomes,
        seconds=time.perf_counter() - begin,
        processes=executor.processes,
        command=command,
    )
    crossings = write_outputs(folder, collected)
    missing = sum(each.missing for each in collected.experiment.measured())
    return Finished(collected, crossings, folder, len(outcomes) - len(failures), missing, failures)


def new_epsilons(config: ExperimentConfig, left: Sequence[Task]) -> str:
    """For the line above a run: which ε alone are computed, where the others of the grid are done."""
    partial = [
        task
        for task in left
        if len(task.epsilons) < len(config.grid(task.algorithm)) and task.epsilons != TWIN_GRID
    ]
    if not partial:
        return ""
    new = sorted({epsilon for task in partial for epsilon in task.epsilons})
    which = ", ".join(f"{epsilon:g}" for epsilon in new) if len(new) <= 8 else f"{len(new)} values"
    return f"; {len(partial)} of them at new ε alone ({which})"


def _portions(config: ExperimentConfig, dataset: Dataset) -> tuple[Portion, ...]:
    """What the portions of a config with growth hold, none for one without.

    Raises `DpmfError` where there is no order of time, or nothing to train on or to test in some fold.
    """
    if config.growth is None:
        return ()
    ratings, order, found = dataset.ratings, config.growth.order, []
    folds = fold_assignment(dataset.key, config.seed, config.folds, len(ratings))
    positions = arrivals(ratings, order, dataset=dataset.key, seed=config.seed)
    for share in config.portions:
        first = first_share(positions, share)
        counts = np.bincount(folds[first], minlength=config.folds)
        if not (counts[: config.folds_run].all() and (counts > 0).sum() > 1):
            raise DpmfError(
                f"{dataset.title}: {share:g} of the ratings are {counts.sum()}, too few for a test and a training "
                f"rating in each of {config.folds} folds; begin `growth.portions` with a larger one"
            )
        found.append(portion(ratings, share, order, first))
    return tuple(found)
