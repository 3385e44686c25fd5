"""`dpmf run` and `dpmf plan`: run an experiment, or say what a run would do."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.cli.options import (
    ConfigArgument,
    DataOption,
    DatasetOption,
    HeldOutOption,
    PluginOption,
    ResultsOption,
    RunsOption,
)
from dpmf_cli.core.errors import DpmfError

if TYPE_CHECKING:
    from dpmf_cli.experiment.running.processes import Executor
    from dpmf_cli.studies.experiment import Finished

JobsOption = Annotated[
    int | None, typer.Option("-j", "--jobs", min=1, help="Number of processes; default: one per core.")
]
SchedulerOption = Annotated[
    str | None,
    typer.Option("--scheduler", help="Run on a Dask cluster, e.g. tcp://host:8786 (see docs/operations.md)."),
]
WaitOption = Annotated[
    float,
    typer.Option("--wait", min=0, help="Seconds to wait for a cluster's workers, or for its lost scheduler."),
]

MOST_ROWS = 1000
"""Most rows of one table that `dpmf run` prints. The table's file has all rows."""


def run(
    config: ConfigArgument,
    results: ResultsOption = Path("results"),
    data: DataOption = None,
    jobs: JobsOption = None,
    scheduler: SchedulerOption = None,
    wait: WaitOption = 300.0,
    new_data: Annotated[
        bool, typer.Option("--new-data", help="Replace results if their data file has changed since.")
    ] = False,
    dataset: DatasetOption = None,
    held_out: HeldOutOption = None,
    runs: RunsOption = None,
    if_present: Annotated[
        bool,
        typer.Option("--if-present", help="If the data are missing, say how to get them and do nothing."),
    ] = False,
    plugin: PluginOption = None,
) -> None:
    """Run an experiment; finished tasks are not run again.

    Example: dpmf run configs/ml100k_bounded.yaml -j 2
    """
    from dpmf_cli.core.children import available_cores
    from dpmf_cli.core.terminal import say
    from dpmf_cli.datasets import Folders
    from dpmf_cli.datasets.located import what_is_missing
    from dpmf_cli.experiment.config import load_config
    from dpmf_cli.experiment.config.loading import flags, reduced
    from dpmf_cli.experiment.running.processes import LocalProcesses, cluster_executor
    from dpmf_cli.studies.experiment import run as run_experiment

    executor: Executor
    if scheduler is None:
        executor = LocalProcesses(jobs or available_cores())
    elif jobs is None:
        executor = cluster_executor(scheduler, wait, say)
    else:
        raise DpmfError("-j is for this machine, --scheduler for a cluster's workers: give one of them")
    experiment_config = reduced(load_config(config), dataset=dataset, held_out=held_out, runs=runs)
    folders = Folders.named(data, base=config.parent, results=results)
    missing = what_is_missing(experiment_config.dataset, folders)
    if if_present and missing:
        say(f"{experiment_config.name}: skipped: {missing}")
        return
    plugins = [word for file in plugin or () for word in ("--plugin", str(file))]
    finished = run_experiment(
        experiment_config,
        folders,
        executor,
        new_data=new_data,
        command=shlex.join(["dpmf", "run", str(config), *flags(dataset, held_out, runs), *plugins]),
    )
    _print_results(finished)
    _end(finished)


def plan(
    config: ConfigArgument,
    results: ResultsOption = Path("results"),
    data: DataOption = None,
    jobs: JobsOption = None,
    dataset: DatasetOption = None,
    held_out: HeldOutOption = None,
    runs: RunsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
    plugin: PluginOption = None,
) -> str:
    """Say what a run would do and how long it takes; run nothing.

    Shows all tasks, those done and those left, time and memory.

    Example: dpmf plan configs/ml1m_bounded.yaml
    """
    from dpmf_cli.cli.plan_text import describe
    from dpmf_cli.core.children import available_cores
    from dpmf_cli.core.terminal import say
    from dpmf_cli.datasets import Folders, known, look
    from dpmf_cli.datasets.spec import CsvSpec
    from dpmf_cli.experiment.config import load_config
    from dpmf_cli.experiment.config.loading import reduced
    from dpmf_cli.experiment.running.calibration import calibrated
    from dpmf_cli.experiment.running.plan import plan_without_parsing

    loaded = reduced(load_config(config), dataset=dataset, held_out=held_out, runs=runs)
    folders = Folders.named(data, base=config.parent, results=results)
    machine = calibrated(folders.cache, available_cores(), "dpmf_cli.studies.experiment", say)
    made, size = plan_without_parsing(loaded, folders, machine)
    own = known(loaded.dataset, folders) if isinstance(loaded.dataset, CsvSpec) else None
    seen = look(loaded.dataset, own).report() if own else []
    return describe(loaded, made, size, jobs or available_cores(), seen=seen, as_json=as_json)


def _print_results(finished: "Finished") -> None:
    """Prints tables of baselines, twins, crossings and ledgers, and of very long tables only the first rows."""
    from dpmf_cli.report.tables.baselines import baseline_rows, baselines_table, twins_table
    from dpmf_cli.report.tables.crossings import crossings_table
    from dpmf_cli.report.tables.layout import draw, first_rows
    from dpmf_cli.report.tables.ledgers import ledger_table, records_table
    from dpmf_cli.report.tables.local import learned_nothing_table

    experiment = finished.collected.shown
    tables = [(baselines_table(baseline_rows(experiment)), "curves.csv")]
    if any(curve.twin is not None for curve in experiment.curves):
        tables.append((twins_table(experiment), "without_noise.md"))
    tables.append((crossings_table(finished.crossings), "crossings.md"))
    if (learned_nothing := learned_nothing_table(experiment)) is not None:
        tables.append((learned_nothing, "local_mean.md"))
    tables.append((ledger_table(finished.collected.ledgers, experiment.curves), "ledger.csv"))
    if any(curve.records for curve in experiment.curves):
        tables.append((records_table(experiment.curves), "records.csv"))
    shown = (first_rows(table, MOST_ROWS, f"{finished.folder}/{file}") for table, file in tables)
    print("\n".join(map(draw, shown)), end="")


def _end(finished: "Finished") -> None:
    """Says what was computed. The exit code is 1 if tasks failed, or have no result."""
    from dpmf_cli.core.terminal import say

    done = (
        f"computed {finished.computed} tasks"
        if finished.computed
        else "nothing to compute: all tasks are done"
    )
    say(f"{done}; results in {finished.folder}/")
    if finished.failures:
        first = finished.failures[0]
        say(
            f"{len(finished.failures)} tasks failed; the first, {first.task.algorithm.name}:\n{first.failure}"
        )
        say(
            f"all tracebacks are in {finished.folder}/manifest.json; the same command tries these tasks again"
        )
        raise typer.Exit(1)
    if finished.missing:
        say(
            f"{finished.missing} tasks have no result though they were run: was results/tasks changed meanwhile?"
        )
        raise typer.Exit(1)
