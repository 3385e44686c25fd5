"""The command line: parse, call, print. Heavy imports happen inside the commands, so that help is instant."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.datasets.cli import app as datasets_app
from dpmf_cli.errors import DpmfError
from dpmf_cli.local_cli import app as local_app

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

ResultsOption = Annotated[Path, typer.Option("--results", help="Folder of results.")]
DataOption = Annotated[
    Path | None, typer.Option("--data", help="Folder of data files; default $DPMF_DATA, else ./datasets.")
]
JobsOption = Annotated[
    int | None, typer.Option("-j", "--jobs", min=1, help="Processes; default one per core.")
]
FormatOption = Annotated[str, typer.Option("--format", help="table, csv, md, latex or json.")]
ResultsArgument = Annotated[
    list[Path] | None,
    typer.Argument(help="Configs or results folders; default: every result found.", show_default=False),
]
ConfigArgument = Annotated[Path, typer.Argument(help="A YAML config, see configs/.", show_default=False)]


def main() -> None:
    """The console script: a DpmfError becomes one message on stderr and exit code 2."""
    try:
        app(prog_name="dpmf")
    except DpmfError as error:
        print(f"dpmf: {error}", file=sys.stderr)
        sys.exit(2)


@app.command()
def run(
    config: ConfigArgument,
    results: ResultsOption = Path("results"),
    data: DataOption = None,
    jobs: JobsOption = None,
) -> None:
    """Run what is left of an experiment and write its results folder.

    Example: dpmf run configs/ml100k_bounded.yaml -j 2
    """
    from dpmf_cli.config import load_config
    from dpmf_cli.datasets import cache_folder, data_folder
    from dpmf_cli.experiment import run as run_experiment
    from dpmf_cli.experiment import say
    from dpmf_cli.report.layout import terminal
    from dpmf_cli.report.ledgers import ledger_text, records_text
    from dpmf_cli.report.local_tables import learned_nothing_table
    from dpmf_cli.report.tables import baseline_rows, baselines_table, crossings_table, twins_table
    from dpmf_cli.runner import available_cores

    try:
        finished = run_experiment(
            load_config(config),
            base=config.parent,
            results=results,
            data=data or data_folder(),
            cache=cache_folder(),
            jobs=jobs or available_cores(),
        )
    except KeyboardInterrupt:
        say("\ninterrupted: finished tasks are kept; run the same command again to go on")
        raise typer.Exit(130) from None
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
) -> None:
    """Say what a run would do: tasks, what is done, what is left, time and memory. Runs nothing.

    Example: dpmf plan configs/ml1m_bounded.yaml
    """
    from dpmf_cli.calibration import calibrated
    from dpmf_cli.config import load_config
    from dpmf_cli.datasets import cache_folder, data_folder
    from dpmf_cli.experiment import say
    from dpmf_cli.planning import describe, plan_without_parsing
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
) -> None:
    """The ε at which each private algorithm meets the item average (IA) and the global effects (GE).

    Example: dpmf crossings --format md
    """
    from dpmf_cli.evaluation.crossings import find_crossings, with_absent_datasets
    from dpmf_cli.experiment import collected_results, say
    from dpmf_cli.report.tables import crossings_table

    rows: list[Crossing] = []
    for collected in collected_results(of or [], results):
        found = find_crossings(collected.experiment)
        if any(crossing.status == "incomplete" for crossing in found):
            say(
                f"{collected.experiment.name}: some tasks have no result yet; `dpmf run` its config to complete it"
            )
        rows += found
    print(crossings_table(with_absent_datasets(rows) if printed else rows, form), end="")


@app.command()
def baselines(
    of: ResultsArgument = None,
    results: ResultsOption = Path("results"),
    form: FormatOption = "table",
) -> None:
    """The RMSE of the baselines (GA, IA, GE, clean MF) beside the papers' (Friedman et al. 2016, table 3).

    Example: dpmf baselines --format md
    """
    from dpmf_cli.experiment import collected_results
    from dpmf_cli.report.tables import baseline_rows, baselines_table

    experiments = [collected.experiment for collected in collected_results(of or [], results)]
    print(
        baselines_table([row for experiment in experiments for row in baseline_rows(experiment)], form),
        end="",
    )


@app.command()
def schema() -> None:
    """Print the JSON schema of a config, for editors.

    Example: dpmf schema > configs/schema.json
    """
    import json

    from dpmf_cli.config import ExperimentConfig

    print(json.dumps(ExperimentConfig.model_json_schema(), indent=2, ensure_ascii=False))
