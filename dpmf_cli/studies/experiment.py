"""An experiment end to end: plan → run → collect → write."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from dpmf_cli.core.children import available_cores
from dpmf_cli.core.remembered import remember, state
from dpmf_cli.core.terminal import say
from dpmf_cli.datasets import Folders, load, look
from dpmf_cli.evaluation.crossings import Crossing
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results import manifest as manifests
from dpmf_cli.experiment.results.folders import Collected
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import Outcome, tasks_of
from dpmf_cli.experiment.running.calibration import REFERENCE, known
from dpmf_cli.experiment.running.cutting import portions_of
from dpmf_cli.experiment.running.plan import run_rounds
from dpmf_cli.papers.beside_print import beside_print
from dpmf_cli.report.outputs import never_made, outputs


@dataclass(frozen=True)
class Finished:
    """The outcome of a run. `missing` counts tasks without a result, which failed, or whose files were deleted.

    again   its config and data, and what the next run says before its tables; empty if that may have something to do
    """

    collected: Collected
    crossings: list[Crossing]
    folder: Path
    computed: int
    missing: int
    failures: list[Outcome]
    again: tuple[Any, ...] = ()


def run(
    config: ExperimentConfig,
    folders: Folders,
    processes: int = 1,
    *,
    new_data: bool = False,
    command: str = "",
) -> Finished:
    """Runs the remaining tasks of a config and writes its results folder. Raises DpmfError for what a user can mend.

    processes  how many execute tasks; 1 for this process
    new_data   whether to replace the tables if the ratings have changed since; otherwise that is an error
    command    the command as it was typed, for the manifest
    """
    begin = time.perf_counter()
    folder = folders.results / config.name
    store = Store(folders.results, warn=say, set_aside=True)
    store.prepare(folder)
    dataset = load(config.dataset, folders, config.split)
    if not new_data:
        manifests.refuse_changed_data(folder, config, dataset.identity)
    ran = manifests.Ran(config, dataset.identity, portions_of(config, dataset))
    own = [*look(config.dataset, dataset).report(), *config.left_to_defaults] if ran.data.own else []
    said = [f"{config.name}: {line}" for line in own]
    for line in said:
        say(line)
    tasks = len({task.key for entry in config.entries for task in tasks_of(config, entry, ran.data)})
    said.append(f"{config.name}: {ran.data.title}, {tasks} tasks, {tasks} done, 0 left")
    machine = known(folders.cache, available_cores()) or REFERENCE

    def manifest(ran: manifests.Ran, outcomes: Sequence[Outcome] = ()) -> dict[str, Any]:
        return manifests.manifest_of_run(
            folder,
            ran,
            dataset.ratings,
            outcomes,
            seconds=time.perf_counter() - begin,
            processes=processes,
            command=command,
        )

    with manifests.held(folder):
        if not manifests.has_tables(folder):  # so that the finished tasks of an interrupted run can be shown
            manifests.write_manifest(folder, {**manifest(ran), "files": {}})
    ran, collected, outcomes = run_rounds(ran, dataset, store, folders.cache, processes, machine)
    failures = [outcome for outcome in outcomes if outcome.failure]
    experiment = collected.shown
    missing = sum(each.missing for each in experiment.measured())
    crossings = beside_print(experiment)
    with manifests.held(folder):
        manifests.write_files(
            folder, manifest(ran, outcomes), outputs(collected, crossings), never_made(experiment)
        )
        if collected.made_from:
            collected = replace(collected, made_from=state([folder]) | collected.made_from)
            remember(f"collected {folder.absolute()}", collected, collected.made_from)
    finished = Finished(collected, crossings, folder, len(outcomes) - len(failures), missing, failures)
    if failures or missing or not collected.made_from:
        return finished
    of = config.hash, ran.data, dataset.merged
    return replace(finished, again=(of, config.dataset, config.split, said))
