"""Commands that answer with a table: crossings, levels, words on them, comparisons, baselines, the local model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.cli.options import (
    ConfigArgument,
    DataOption,
    FormatOption,
    MetricOption,
    PluginOption,
    ResultsArgument,
    ResultsOption,
)
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.terminal import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpmf_cli.evaluation.curves import Experiment
    from dpmf_cli.experiment.results.folders import Collected

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
    audited: Annotated[
        bool, typer.Option("--audited", help="Add what `dpmf audit` has found for the same configs.")
    ] = False,
    metric: MetricOption = None,
    plugin: PluginOption = None,
) -> str:
    """Show the ε at which private methods become as good as averages.

    The averages are IA (item averages) and GE (item and user averages together).

    Example: dpmf crossings configs/quickstart.yaml
    """
    from dpmf_cli.datasets import data_folder
    from dpmf_cli.datasets.located import present_keys
    from dpmf_cli.papers.printed_cells import beside_print, with_printed_cells
    from dpmf_cli.report.tables.crossings import crossings_table
    from dpmf_cli.report.tables.layout import draw

    found = list(_experiments(of or [], results, metric))
    rows, audits = [row for _, each in found for row in beside_print(each)], None
    if printed:
        rows = with_printed_cells(rows, present=present_keys(data_folder()))
    if audited:
        from dpmf_cli.audit.job import of_experiment

        audits = {experiment.name: of_experiment(folder) for folder, experiment in found}
        if not any(audits.values()):
            say("nothing was audited: `dpmf audit` a config, and ask again")
    return draw(crossings_table(rows, audits), form)


def explain(
    of: ResultsArgument = None, results: ResultsOption = Path("results"), plugin: PluginOption = None
) -> str:
    """Say in plain words what results recommend.

    Judges by RMSE, and says what the results leave open.

    Example: dpmf explain configs/quickstart.yaml
    """
    from dpmf_cli.evaluation.metrics import RMSE
    from dpmf_cli.papers.printed_cells import beside_print
    from dpmf_cli.report.advice import advice as advice_on

    experiments = [experiment for _, experiment in _experiments(of or [], results, RMSE.key)]
    return advice_on(experiments, [row for each in experiments for row in beside_print(each)])


def levels(
    of: ResultsArgument = None,
    at: Annotated[
        float, typer.Option("--at", help="The ε; between grid points, errors are interpolated.")
    ] = 1.0,
    results: ResultsOption = Path("results"),
    form: FormatOption = "table",
    metric: MetricOption = None,
    plugin: PluginOption = None,
) -> str:
    """Show the RMSE of every method at one ε.

    If no results are named, passes over those whose grids do not hold that ε, and says so.

    Example: dpmf levels configs/quickstart.yaml --at 2
    """
    from dpmf_cli.evaluation.crossings import levels_at
    from dpmf_cli.report.tables.crossings import levels_table
    from dpmf_cli.report.tables.layout import draw

    found = []
    for _, experiment in _experiments(of or [], results, metric):
        try:
            found += levels_at(experiment, at)
        except DpmfError as error:
            if of:
                raise
            say(f"passed over: {error}")
    if not found:
        raise DpmfError(f"no result has ε = {at:g} in its grid")
    if len({level.curve.metric for level in found}) > 1:
        raise DpmfError("these configs show different metrics; ask for one of them with --metric")
    return draw(levels_table(found, at), form)


def _experiments(of: list[Path], results: Path, metric: str | None) -> "Iterator[tuple[Path, Experiment]]":
    """Yields each experiment that was asked for, with its folder, by a metric or by that of its config.

    Of an interrupted run, yields only the finished folds, and says so.
    """
    from dpmf_cli.experiment.results.folders import results_of

    for folder, collected in results_of(of, results):
        experiment = shown(collected, metric, named=bool(of))
        if experiment is None:
            continue
        if any(each.missing for each in experiment.measured()):
            from dpmf_cli.experiment.results.manifest import read_manifest

            failed = read_manifest(folder).get("failures")
            partial = None if failed else experiment.of_finished_folds()
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
    try:
        return collected.experiment.showing(metric or collected.metric)
    except DpmfError as error:
        if named:
            raise
        say(f"passed over: {error}")
        return None


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
) -> str:
    """Show how experiments differ: in settings and in errors.

    Errors are paired over the folds and runs that both have.

    Example: dpmf compare mine.yaml other.yaml third.yaml --page compared.html
    """
    from dpmf_cli.experiment.results.collect import compare_folders
    from dpmf_cli.experiment.results.folders import results_folder
    from dpmf_cli.experiment.results.store import write_atomically
    from dpmf_cli.report.html.page import compare_page
    from dpmf_cli.report.tables.ranked import comparisons_text

    beside = results_folder(first, results)
    several = [compare_folders(beside, results_folder(other, results)) for other in others]
    if page is None:
        return comparisons_text(several, form)
    write_atomically(page, compare_page(several).encode(errors="backslashreplace"))
    return f"{page}\n"


def baselines(
    of: ResultsArgument = None,
    results: ResultsOption = Path("results"),
    form: FormatOption = "table",
    metric: MetricOption = None,
    plugin: PluginOption = None,
) -> str:
    """Show the errors of the baselines: GA, IA, GE, clean MF (ALS).

    If an experiment reproduces table 3 of Friedman et al. (2016), the printed errors stand beside them.

    Example: dpmf baselines --format md
    """
    from dpmf_cli.experiment.results.folders import results_of
    from dpmf_cli.report.tables.crossings import baseline_rows, baselines_table
    from dpmf_cli.report.tables.layout import draw

    every = (shown(collected, metric, named=bool(of)) for _, collected in results_of(of or [], results))
    return draw(baselines_table([row for each in every if each for row in baseline_rows(each)]), form)


local_app = typer.Typer(help="The local model: noise, messages, improvements.", no_args_is_help=True)


@local_app.command()
def noise(
    out: Annotated[Path, typer.Argument(help="The figure's file: .png, .svg or .pdf.")],
    dataset: Annotated[str, typer.Option(help="Key of a data set in the catalog.")] = "ml-100k",
    data: DataOption = None,
) -> None:
    """Draw the two kinds of noise: figure 2 of Neera and others.

    Histograms of Laplace and of bounded Laplace noise.

    Example: dpmf local noise results/neera_fig2.png
    """
    from dpmf_cli.report.figures.style import figure_form, write_named

    write_named(out, noise_of(dataset, data, figure_form(out)))


def noise_of(dataset: str, data: Path | None, form: str) -> bytes:
    """Returns the figure that `dpmf local noise` draws."""
    from dpmf_cli.datasets import Folders, load
    from dpmf_cli.datasets.catalog import entry
    from dpmf_cli.datasets.spec import CatalogSpec
    from dpmf_cli.report.figures.papers import noise_figure

    loaded = load(CatalogSpec(name=entry(dataset).key), Folders.named(data))
    return noise_figure(loaded.ratings, loaded.identity.title, form)


@local_app.command()
def traffic(
    config: ConfigArgument,
    data: DataOption = None,
    form: FormatOption = "table",
    plugin: PluginOption = None,
) -> str:
    """Count the bytes that users send and receive.

    Counts them for each algorithm of a config, as in table 1 of Neera et al. 2020.

    Example: dpmf local traffic configs/neera_fig3_ml100k.yaml
    """
    from dpmf_cli.datasets import Folders, load
    from dpmf_cli.experiment.config import load_config
    from dpmf_cli.report.tables import papers
    from dpmf_cli.report.tables.layout import draw

    loaded = load_config(config)
    dataset = load(loaded.dataset, Folders.named(data, base=config.parent))
    ratings, title = dataset.ratings, dataset.identity.title
    sent = papers.traffic(loaded.algorithms, ratings, title)
    return draw(papers.traffic_table(sent, ratings, title), form)


@local_app.command()
def improvements(
    of: ResultsArgument = None,
    results: ResultsOption = Path("results"),
    form: FormatOption = "table",
    plugin: PluginOption = None,
) -> str:
    """Show how far BLP-MoG-MF's error is below other curves'.

    The improvements over ISGD that Neera et al. 2020 print stand beside them.

    Example: dpmf local improvements configs/neera_fig4_ml100k.yaml
    """
    from dpmf_cli.experiment.results.folders import results_of
    from dpmf_cli.report.tables.layout import draw
    from dpmf_cli.report.tables.papers import improvements_table

    return draw(improvements_table([each.experiment for _, each in results_of(of or [], results)]), form)
