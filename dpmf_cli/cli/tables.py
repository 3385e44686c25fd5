"""Commands that answer with a table: `dpmf crossings`, `dpmf compare` and `dpmf baselines`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.cli.options import FormatOption, MetricOption, PluginOption, ResultsArgument, ResultsOption

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpmf_cli.evaluation.crossings import Crossing
    from dpmf_cli.evaluation.curves import Experiment
    from dpmf_cli.results.collect import Collected

ComparedArgument = Annotated[Path, typer.Argument(help="A config that was run, or its results folder.")]


def crossings(
    of: ResultsArgument = None,
    results: ResultsOption = Path("results"),
    form: FormatOption = "table",
    printed: Annotated[
        bool,
        typer.Option(
            "--printed",
            help="Add the cells of Friedman et al.'s tables 4 and 5 that have no result.",
        ),
    ] = False,
    advise: Annotated[
        bool,
        typer.Option(
            "--advise", help="Say in plain words what the results recommend, and what they leave open."
        ),
    ] = False,
    audited: Annotated[
        bool, typer.Option("--audited", help="Add what `dpmf audit` has found for the same configs.")
    ] = False,
    at: Annotated[
        float | None,
        typer.Option(
            "--at", help="Print the RMSE of every curve at this ε instead, interpolated between grid points."
        ),
    ] = None,
    metric: MetricOption = None,
    plugin: PluginOption = None,
) -> None:
    """Show the ε at which private methods become as good as averages.

    The averages are IA (item averages) and GE (item and user averages together).

    Example: dpmf crossings configs/quickstart.yaml --advise
    """
    from dpmf_cli.audit.job import of_experiment
    from dpmf_cli.datasets import data_folder
    from dpmf_cli.datasets.presence import present_keys
    from dpmf_cli.errors import DpmfError
    from dpmf_cli.evaluation.crossings import find_crossings
    from dpmf_cli.evaluation.metrics import RMSE
    from dpmf_cli.papers.printed_cells import beside_print, with_printed_cells
    from dpmf_cli.report.advice import advice as advice_on
    from dpmf_cli.report.tables.crossings import crossings_table
    from dpmf_cli.terminal import say

    if advise and (printed or audited or metric or form != "table"):
        raise DpmfError(
            "--advise answers in words, and by RMSE; leave --format, --printed, --audited and --metric out"
        )
    if at is not None:
        if advise or printed or audited:
            raise DpmfError(
                "--at asks for RMSE, not for crossings; leave --advise, --printed and --audited out"
            )
        _print_levels(of, results, at, form, metric)
        return
    rows: list[Crossing] = []
    experiments, audits = [], {}
    for folder, experiment in _experiments(of, results, RMSE.key if advise else metric):
        audits[experiment.name] = of_experiment(folder)
        rows += beside_print(find_crossings(experiment))
        experiments.append(experiment)
    if advise:
        print(advice_on(experiments, rows), end="")
        return
    if printed:
        rows = with_printed_cells(rows, present=present_keys(data_folder()))
    if audited and not any(audits.values()):
        say("nothing was audited: `dpmf audit` a config, and ask again")
    print(crossings_table(rows, form, audits if audited else None), end="")


def _experiments(
    of: list[Path] | None, results: Path, metric: str | None
) -> "Iterator[tuple[Path, Experiment]]":
    """Yields each experiment that was asked for, with its folder, by a metric or by that of its config.

    Of an interrupted run, yields only the finished folds, and says so.
    """
    from dpmf_cli.evaluation.partial import of_finished_folds
    from dpmf_cli.results.folders import results_of
    from dpmf_cli.results.manifest import read_manifest
    from dpmf_cli.terminal import say

    for folder, collected in results_of(of or [], results):
        experiment = shown(collected, metric, named=bool(of))
        if experiment is None:
            continue
        if any(each.missing for each in experiment.measured()):
            failed = read_manifest(folder).get("failures")
            partial = None if failed else of_finished_folds(experiment)
            what = (
                f"only {partial.partial} are finished and shown"
                if partial
                else "some tasks have no result yet"
            )
            say(f"{experiment.name}: {what}; `dpmf run` its config to complete it")
            experiment = partial or experiment
        yield folder, experiment


def shown(collected: "Collected", metric: str | None, *, named: bool) -> "Experiment | None":
    """Returns an experiment by a metric, or by that of its config.

    If that metric was not measured, raises `DpmfError` for an experiment that the user `named`. For others, says so
    and returns None.
    """
    from dpmf_cli.errors import DpmfError
    from dpmf_cli.terminal import say

    try:
        return collected.experiment.showing(metric or collected.metric)
    except DpmfError as error:
        if named:
            raise
        say(f"passed over: {error}")
        return None


def _print_levels(
    of: list[Path] | None, results: Path, epsilon: float, form: str, metric: str | None
) -> None:
    """Prints RMSE, or another metric, at one ε.

    If all results are asked for, passes over those whose grids do not hold that ε, and says so.
    """
    from dpmf_cli.errors import DpmfError
    from dpmf_cli.evaluation.levels import levels_at
    from dpmf_cli.report.tables.levels import levels_table
    from dpmf_cli.terminal import say

    levels = []
    for _, experiment in _experiments(of, results, metric):
        try:
            levels += levels_at(experiment, epsilon)
        except DpmfError as error:
            if of:
                raise
            say(f"passed over: {error}")
    if not levels:
        raise DpmfError(f"no result has ε = {epsilon:g} in its grid")
    if len({level.metric for level in levels}) > 1:
        raise DpmfError("these configs show different metrics; ask for one of them with --metric")
    print(levels_table(levels, epsilon, form), end="")


def compare(
    first: ComparedArgument,
    others: Annotated[
        list[Path], typer.Argument(help="Other configs or results folders, each compared with the first.")
    ],
    results: ResultsOption = Path("results"),
    form: Annotated[str, typer.Option("--format", help="table, csv, md or json.")] = "table",
    page: Annotated[
        Path | None,
        typer.Option(help="Write the comparison as one HTML page, with charts, instead.", show_default=False),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Show how experiments differ: in settings and in errors.

    Errors are paired over the folds and runs that both have.

    Example: dpmf compare mine.yaml other.yaml third.yaml --page compared.html
    """
    from dpmf_cli.report.html.page import compare_page
    from dpmf_cli.report.tables.compare import comparisons_text
    from dpmf_cli.results.compare_folders import compare_folders
    from dpmf_cli.results.folders import results_folder
    from dpmf_cli.results.store import write_atomically

    beside = results_folder(first, results)
    several = [compare_folders(beside, results_folder(other, results)) for other in others]
    if page is None:
        print(comparisons_text(several, form), end="")
        return
    write_atomically(page, compare_page(several).encode(errors="backslashreplace"))
    print(page)


def baselines(
    of: ResultsArgument = None,
    results: ResultsOption = Path("results"),
    form: FormatOption = "table",
    metric: MetricOption = None,
    plugin: PluginOption = None,
) -> None:
    """Show the errors of the baselines: GA, IA, GE, clean MF (ALS).

    If an experiment reproduces table 3 of Friedman et al. (2016), the printed errors stand beside them.

    Example: dpmf baselines --format md
    """
    from dpmf_cli.report.tables.baselines import baseline_rows, baselines_table
    from dpmf_cli.results.folders import collected_results

    experiments = [
        experiment
        for collected in collected_results(of or [], results)
        if (experiment := shown(collected, metric, named=bool(of))) is not None
    ]
    print(
        baselines_table([row for experiment in experiments for row in baseline_rows(experiment)], form),
        end="",
    )
