"""An experiment end to end: plan → run → collect → write."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dpmf_cli.core.children import available_cores
from dpmf_cli.core.remembered import remember, state
from dpmf_cli.core.terminal import say
from dpmf_cli.datasets import Folders, load, look
from dpmf_cli.datasets.spec import CsvSpec
from dpmf_cli.evaluation.crossings import Crossing, find_crossings
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.folders import Collected
from dpmf_cli.experiment.results.manifest import (
    Ran,
    has_tables,
    held,
    manifest_of_run,
    refuse_changed_data,
    write_files,
    write_manifest,
)
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import Outcome, tasks_of
from dpmf_cli.experiment.running import calibration
from dpmf_cli.experiment.running.calibration import REFERENCE
from dpmf_cli.experiment.running.cutting import portions_of
from dpmf_cli.experiment.running.plan import Executor, run_rounds
from dpmf_cli.experiment.running.processes import LocalProcesses
from dpmf_cli.papers.printed_cells import beside_print
from dpmf_cli.report.outputs import never_made, outputs


@dataclass(frozen=True)
class Finished:
    """The outcome of a run. `missing` counts tasks without a result: they failed, or somebody deleted their files.

    again      of which config and data it is, how to find these data, and what the next run says before its tables
    made_from  the state of its files; with these, the next run has nothing to do. Empty if it has
    """

    collected: Collected
    crossings: list[Crossing]
    folder: Path
    computed: int
    missing: int
    failures: list[Outcome]
    again: tuple[Any, ...] = ()
    made_from: dict[str, str] = field(default_factory=dict)


def run(
    config: ExperimentConfig,
    folders: Folders,
    executor: Executor | None = None,
    *,
    new_data: bool = False,
    command: str = "",
) -> Finished:
    """Runs the remaining tasks of a config and writes its results folder. Raises DpmfError for what a user can mend.

    executor   executes the tasks; default: this process
    new_data   whether to replace the tables if the ratings have changed since; otherwise that is an error
    command    the command as it was typed, for the manifest
    """
    begin = time.perf_counter()
    executor = executor or LocalProcesses(1)
    folder = folders.results / config.name
    store = Store(folders.results, warn=say, set_aside=True)
    store.prepare(folder)
    dataset = load(config.dataset, folders, config.test)
    if not new_data:
        refuse_changed_data(folder, config, dataset.identity)
    ran = Ran(config, dataset.identity, portions_of(config, dataset))
    lines = list[str]()
    if isinstance(config.dataset, CsvSpec):
        lines = [*look(config.dataset, dataset).report(), *config.left_to_defaults]
        for line in lines:
            say(f"{config.name}: {line}")
    tasks = sum(1 for entry in config.entries for _ in tasks_of(config, entry, ran.data))
    lines.append(f"{ran.data.title}, {tasks} tasks, {tasks} done, 0 left")
    of = config.hash, ran.data, dataset.merged
    again = of, config.dataset, config.test, [f"{config.name}: {line}" for line in lines]

    machine = calibration.known(folders.cache, available_cores()) or REFERENCE

    def manifest(ran: Ran, outcomes: Sequence[Outcome] = ()) -> dict[str, Any]:
        return manifest_of_run(
            folder,
            ran,
            dataset.ratings,
            outcomes,
            seconds=time.perf_counter() - begin,
            processes=executor.processes,
            command=command,
        )

    with held(folder):
        if not has_tables(folder):  # so that the finished tasks of an interrupted run can be shown
            write_manifest(folder, {**manifest(ran), "files": {}})
    ran, collected, outcomes = run_rounds(ran, dataset, store, folders.cache, executor, machine)
    failures = [outcome for outcome in outcomes if outcome.failure]
    experiment = collected.shown
    missing = sum(each.missing for each in experiment.measured())
    crossings = beside_print(find_crossings(experiment))
    with held(folder):
        write_files(folder, manifest(ran, outcomes), outputs(collected, crossings), never_made(experiment))
        made_from = state([folder]) | collected.made_from
    if collected.made_from:
        remember(f"collected {folder.absolute()}", collected, made_from)
    ended = collected.made_from and not failures and not missing
    computed = len(outcomes) - len(failures)
    return Finished(
        collected, crossings, folder, computed, missing, failures, again, made_from if ended else {}
    )
