"""The command line: parse, call, print. Heavy imports happen inside the commands, so that help is instant."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.combined_cli import combined
from dpmf_cli.datasets.cli import app as datasets_app
from dpmf_cli.errors import DpmfError
from dpmf_cli.interrupts import resumable
from dpmf_cli.local_cli import app as local_app
from dpmf_cli.options import PluginOption
from dpmf_cli.report_cli import add_commands

if TYPE_CHECKING:
    from dpmf_cli.evaluation.crossings import Crossing

app = typer.Typer(
    help="Experiments on differentially private recommenders: from a YAML config to a crossing table.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(datasets_app, name="datasets")
app.add_typer(local_app, name="local")
app.command()(combined)

ResultsOption = Annotated[Path, typer.Option("--results", help="Folder of results.")]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="Folder of data files; default $DPMF_DATA, else ./datasets.")
]
JobsOption = Annotated[
    int | None, typer.Option("-j", "--jobs", min=1, help="Processes; default one per core.")
]
SchedulerOption = Annotated[
    str | None,
    typer.Option("--scheduler", help="Run on a Dask cluster, e.g. tcp://host:8786 (see docs/cluster.md)."),
]
WaitOption = Annotated[
    float, typer.Option("--wait", min=0, help="Seconds to wait for a cluster's workers or lost scheduler.")
]
FormatOption = Annotated[str, typer.Option("--format", help="table, csv, md, latex or json.")]
ResultsArgument = Annotated[
    list[Path] | None,
    typer.Argument(help="Configs or results folders; default: every result found.", show_default=False),
]
ComparedArgument = Annotated[Path, typer.Argument(help="A config that was run, or its results folder.")]
ConfigArgument = Annotated[Path, typer.Argument(help="A YAML config, see configs/.", show_default=False)]


def main() -> None:
    """The console script: a DpmfError becomes one message on stderr and exit code 2."""
    try:
        app(prog_name="dpmf")
    except DpmfError as error:
        print(f"dpmf: {error}", file=sys.stderr)
        sys.exit(2)
    except MemoryError as error:
        what = f" ({error})" if str(error) else ""
        print(f"dpmf: not enough memory{what}; `dpmf plan` says what a config takes", file=sys.stderr)
        sys.exit(2)


@app.command()
@resumable
def run(
    config: ConfigArgument,
    results: ResultsOption = Path("results"),
    data: DataOption = None,
    jobs: JobsOption = None,
    scheduler: SchedulerOption = None,
    wait: WaitOption = 300.0,
    new_data: Annotated[
        bool, typer.Option("--new-data", help="Replace results whose data file has changed since.")
    ] = False,
    dataset: Annotated[
        str | None, typer.Option(help="Another data set than the config's, by its key; the name says so.")
    ] = None,
    held_out: Annotated[
        int | None, typer.Option(min=1, help="Hold out only the first so many folds; the name says so.")
    ] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="Runs of each fold; the name says so.")] = None,
    if_present: Annotated[
        bool, typer.Option("--if-present", help="Without its data, say how to get them and do nothing.")
    ] = False,
    plugin: PluginOption = None,
) -> None:
    """Run what is left of an experiment and write its results folder.

    Example: dpmf run configs/ml100k_bounded.yaml -j 2
    """
    from dpmf_cli.config import load_config
    from dpmf_cli.datasets import cache_folder, data_folder
    from dpmf_cli.datasets.presence import what_is_missing
    from dpmf_cli.experiment import run as run_experiment
    from dpmf_cli.progress import say
    from dpmf_cli.reduced import flags, reduced
    from dpmf_cli.report.layout import terminal
    from dpmf_cli.report.ledgers import ledger_text, records_text
    from dpmf_cli.report.local_tables import learned_nothing_table
    from dpmf_cli.report.tables import baseline_rows, baselines_table, crossings_table, twins_table
    from dpmf_cli.runner import available_cores

    executor = None
    if scheduler is not None:
        from dpmf_cli.cluster import cluster_executor

        if jobs is not None:
            raise DpmfError("-j is for this machine, --scheduler for a cluster's workers: give one of them")
        executor = cluster_executor(scheduler, wait, say)
    experiment_config = reduced(load_config(config), dataset=dataset, held_out=held_out, runs=runs)
    missing = what_is_missing(experiment_config.dataset, data=data or data_folder(), base=config.parent)
    if if_present and missing:
        say(f"{experiment_config.name}: skipped: {missing}")
        return
    plugins = [word for file in plugin or () for word in ("--plugin", str(file))]
    finished = run_experiment(
        experiment_config,
        base=config.parent,
        results=results,
        data=data or data_folder(),
        cache=cache_folder(),
        jobs=jobs or available_cores(),
        executor=executor,
        new_data=new_data,
        command=shlex.join(["dpmf", "run", str(config), *flags(dataset, held_out, runs), *plugins]),
    )
    experiment = finished.collected.experiment
    print(baselines_table(baseline_rows(experiment)))
    if any(curve.twin is not None for curve in experiment.curves):
        print(twins_table(experiment))
    print(crossings_table(finished.crossings))
    if (learned_nothing := learned_nothing_table(experiment)) is not None:
        print(terminal(learned_nothing))
    print(terminal(ledger_text(finished.collected.ledgers, experiment.curves)), end="")
    if any(curve.records for curve in experiment.curves):
        print()
        print(terminal(records_text(experiment.curves)), end="")
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


@app.command()
def plan(
    config: ConfigArgument,
    results: ResultsOption = Path("results"),
    data: DataOption = None,
    jobs: JobsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout.")] = False,
    plugin: PluginOption = None,
) -> None:
    """Say what a run would do and how long it takes; runs nothing.

    Tasks, what is done, what is left, time and memory.

    Example: dpmf plan configs/ml1m_bounded.yaml
    """
    from dpmf_cli.calibration import calibrated
    from dpmf_cli.config import load_config
    from dpmf_cli.datasets import cache_folder, data_folder
    from dpmf_cli.planning import describe, plan_without_parsing
    from dpmf_cli.progress import say
    from dpmf_cli.runner import available_cores
    from dpmf_cli.store import Store

    loaded = load_config(config)
    made, sizes = plan_without_parsing(
        loaded,
        base=config.parent,
        data=data or data_folder(),
        cache=cache_folder(),
        store=Store(results),
        machine=calibrated(cache_folder(), available_cores(), say),
    )
    print(describe(loaded, made, sizes, jobs or available_cores(), as_json=as_json), end="")


@app.command()
def crossings(
    of: ResultsArgument = None,
    results: ResultsOption = Path("results"),
    form: FormatOption = "table",
    printed: Annotated[
        bool, typer.Option("--printed", help="Add the papers' cells that no result stands beside.")
    ] = False,
    advise: Annotated[
        bool,
        typer.Option("--advise", help="Say in plain words what results recommend and leave open."),
    ] = False,
    plugin: PluginOption = None,
) -> None:
    """The ε at which private algorithms become as good as averages.

    As good as the item average (IA), and as item and user averages together, the global effects (GE).

    Example: dpmf crossings configs/quickstart.yaml --advise
    """
    from dpmf_cli.errors import DpmfError
    from dpmf_cli.evaluation.crossings import find_crossings, with_absent_datasets
    from dpmf_cli.progress import say
    from dpmf_cli.report.advice import advice as advice_on
    from dpmf_cli.report.tables import crossings_table
    from dpmf_cli.results_folders import collected_results

    if advise and (printed or form != "table"):
        raise DpmfError("--advise answers in words; leave --format and --printed out")
    rows: list[Crossing] = []
    experiments = []
    for collected in collected_results(of or [], results):
        found = find_crossings(collected.experiment)
        if any(crossing.status == "incomplete" for crossing in found):
            say(
                f"{collected.experiment.name}: some tasks have no result yet; `dpmf run` its config to complete it"
            )
        rows += found
        experiments.append(collected.experiment)
    if advise:
        print(advice_on(experiments, rows), end="")
        return
    print(crossings_table(with_absent_datasets(rows) if printed else rows, form), end="")


@app.command()
def compare(
    a: ComparedArgument,
    b: ComparedArgument,
    results: ResultsOption = Path("results"),
    form: Annotated[str, typer.Option("--format", help="table, csv, md or json.")] = "table",
    plugin: PluginOption = None,
) -> None:
    """Say in what two experiments differ: settings, and errors.

    Errors are paired over the folds and runs that both have.

    Example: dpmf compare mine.yaml other.yaml
    """
    from dpmf_cli.comparing import compare_folders
    from dpmf_cli.report.comparison import comparison_text
    from dpmf_cli.results_folders import results_folder

    compared = compare_folders(results_folder(a, results), results_folder(b, results))
    print(comparison_text(compared, form), end="")


@app.command()
def baselines(
    of: ResultsArgument = None,
    results: ResultsOption = Path("results"),
    form: FormatOption = "table",
    plugin: PluginOption = None,
) -> None:
    """The errors of the baselines: GA, IA, GE, clean MF.

    Beside those that Friedman et al. (2016) print in table 3, where there are any.

    Example: dpmf baselines --format md
    """
    from dpmf_cli.report.tables import baseline_rows, baselines_table
    from dpmf_cli.results_folders import collected_results

    experiments = [collected.experiment for collected in collected_results(of or [], results)]
    print(
        baselines_table([row for experiment in experiments for row in baseline_rows(experiment)], form),
        end="",
    )


add_commands(app)


@app.command()
def schema(
    names: Annotated[
        list[str] | None, typer.Argument(help="Plugins that the schema shall know too.", show_default=False)
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Print the JSON schema of a config, for editors.

    Example: dpmf schema > configs/schema.json
    """
    import json

    from dpmf_cli import plugins
    from dpmf_cli.config import ExperimentConfig

    model = ExperimentConfig.knowing([plugins.plugin(name) for name in names or plugins.given()])
    print(json.dumps(model.model_json_schema(), indent=2, ensure_ascii=False))


@app.command()
def docs() -> None:
    """Print the reference: commands, keys, algorithms.

    Example: dpmf docs > docs/reference.md
    """
    from dpmf_cli.reference import reference

    print(reference(typer.main.get_command(app)), end="")
