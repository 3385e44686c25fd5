"""Commands that show results: as tables, in words, as figures and pages; of one experiment, or of several at once."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.cli import options
from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.terminal import say

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dpmf_cli.evaluation.curves import Experiment
    from dpmf_cli.experiment.results.folders import Collected

FigureOption = Annotated[
    Path | None,
    typer.Option(
        help="Also draw RMSE over ε, one panel for each guarantee, to this .png, .svg or .pdf file."
    ),
]


def crossings(
    of: options.ResultsArgument = None,
    results: options.ResultsOption = Path("results"),
    form: options.FormatOption = "table",
    printed: Annotated[
        bool,
        typer.Option(
            "--printed", help="Add the values of Friedman et al.'s tables 4 and 5 that have no result."
        ),
    ] = False,
    audited: Annotated[
        bool, typer.Option("--audited", help="Add what `dpmf audit` has found for the same configs.")
    ] = False,
    metric: options.MetricOption = None,
    plugin: options.PluginOption = None,
    as_json: options.JsonFormatOption = False,
) -> str:
    """Show the ε at which private methods become as good as averages.

    The averages are IA (item averages) and GE (item and user averages together).

    Example: dpmf crossings configs/quickstart.yaml
    """
    from dpmf_cli.datasets import data_folder
    from dpmf_cli.datasets.located import present_keys
    from dpmf_cli.papers.beside_print import beside_print, with_printed_values
    from dpmf_cli.report.tables.crossings import crossings_table
    from dpmf_cli.report.tables.layout import draw

    found = list(_experiments(of or [], results, metric))
    rows, audits = [row for _, each in found for row in beside_print(each)], None
    if printed:
        rows = with_printed_values(rows, present=present_keys(data_folder()))
    if audited:
        from dpmf_cli.audit.job import of_experiment

        audits = {each.name: of_experiment(folder) for folder, each in found}
        if not any(audits.values()):
            say("nothing was audited: `dpmf audit` a config, and ask again")
    return draw(crossings_table(rows, audits), form)


def explain(
    of: options.ResultsArgument = None,
    results: options.ResultsOption = Path("results"),
    as_json: options.JsonOption = False,
    plugin: options.PluginOption = None,
) -> str:
    """Say in plain words what results recommend.

    Judges by RMSE, and says what the results leave open.

    Example: dpmf explain configs/quickstart.yaml
    """
    from dpmf_cli.evaluation.metrics import RMSE
    from dpmf_cli.papers.beside_print import beside_print
    from dpmf_cli.report.advice import advice as advice_on
    from dpmf_cli.report.tables.crossings import crossings_table
    from dpmf_cli.report.tables.layout import as_objects, json_text

    experiments = [each for _, each in _experiments(of or [], results, RMSE.key)]
    rows = [row for each in experiments for row in beside_print(each)]
    text = advice_on(experiments, rows)
    return json_text({"text": text, "crossings": as_objects(crossings_table(rows))}) if as_json else text


def levels(
    of: options.ResultsArgument = None,
    at: Annotated[float, typer.Option(help="The ε; between grid points, errors are interpolated.")] = 1.0,
    results: options.ResultsOption = Path("results"),
    form: options.FormatOption = "table",
    metric: options.MetricOption = None,
    plugin: options.PluginOption = None,
    as_json: options.JsonFormatOption = False,
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
    """Yields the folder of each experiment that was asked for, and it, by a metric or by that of its config; of an
    interrupted run only the finished folds, and says so."""
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
    """An experiment by a metric, or by that of its config.

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
    first: Annotated[Path, typer.Argument(help="A config that was run, or its results folder.")],
    others: Annotated[
        list[Path], typer.Argument(help="Other configs or results folders, each compared with the first.")
    ],
    results: options.ResultsOption = Path("results"),
    form: Annotated[str, typer.Option("--format", help="table, csv, md or json.")] = "table",
    page: Annotated[
        Path | None, typer.Option(help="Write the comparison as one HTML page, with charts, instead.")
    ] = None,
    plugin: options.PluginOption = None,
    as_json: options.JsonFormatOption = False,
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
    of: options.ResultsArgument = None,
    results: options.ResultsOption = Path("results"),
    form: options.FormatOption = "table",
    metric: options.MetricOption = None,
    plugin: options.PluginOption = None,
    as_json: options.JsonFormatOption = False,
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
    data: options.DataOption = None,
) -> None:
    """Draw the two kinds of noise: figure 2 of Neera and others.

    Histograms of Laplace and of bounded Laplace noise.

    Example: dpmf local noise results/neera_fig2.png
    """
    from dpmf_cli.report.figures.style import write_figure

    write_figure(out, partial(noise_of, dataset, data))


def noise_of(dataset: str, data: Path | None, form: str) -> bytes:
    from dpmf_cli.datasets import Folders, load
    from dpmf_cli.datasets.catalog import entry
    from dpmf_cli.datasets.spec import CatalogSpec
    from dpmf_cli.report.figures.papers import noise_figure

    loaded = load(CatalogSpec(name=entry(dataset).key), Folders.named(data))
    return noise_figure(loaded.ratings, loaded.identity.title, form)


@local_app.command()
def traffic(
    config: options.ConfigArgument,
    data: options.DataOption = None,
    form: options.FormatOption = "table",
    plugin: options.PluginOption = None,
    as_json: options.JsonFormatOption = False,
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
    of: options.ResultsArgument = None,
    results: options.ResultsOption = Path("results"),
    form: options.FormatOption = "table",
    plugin: options.PluginOption = None,
    as_json: options.JsonFormatOption = False,
) -> str:
    """Show how far BLP-MoG-MF's error is below other curves'.

    The improvements over ISGD that Neera et al. 2020 print stand beside them.

    Example: dpmf local improvements configs/neera_fig4_ml100k.yaml
    """
    from dpmf_cli.experiment.results.folders import results_of
    from dpmf_cli.report.tables.layout import draw
    from dpmf_cli.report.tables.papers import improvements_table

    return draw(improvements_table([each.experiment for _, each in results_of(of or [], results)]), form)


def combined(
    of: options.ResultsArgument = None,
    results: options.ResultsOption = Path("results"),
    form: options.FormatOption = "table",
    bar: Annotated[
        str, typer.Option("--by", help="Rank by the crossing with this baseline: ia, ge, ia_tuned, ge_tuned.")
    ] = "ia",
    figure: FigureOption = None,
    plugin: options.PluginOption = None,
    as_json: options.JsonFormatOption = False,
) -> str:
    """Print one crossing table for several experiments.

    Groups all algorithms by what their ε hides and from whom, and ranks them only within each group.

    Example: dpmf combined configs/combined_ml100k.yaml configs/combined_ml1m.yaml
    """
    from dpmf_cli.evaluation.ranking import BARS
    from dpmf_cli.report.tables.layout import draw
    from dpmf_cli.report.tables.ranked import combined_table

    chosen = next((each for each in BARS if each == bar.lower()), None)
    if chosen is None:
        raise DpmfError(f'--by: unknown baseline "{bar}"{did_you_mean(bar, BARS)}')
    experiments, notes = gathered(of or [], results)
    table = draw(combined_table(experiments, bar=chosen, notes=notes), form)
    _say_notes(form, notes)
    if figure is not None:
        from dpmf_cli.report.figures.drawings import combined_figure
        from dpmf_cli.report.figures.style import write_figure

        write_figure(figure, partial(combined_figure, experiments))
    return table


def gathered(of: list[Path], results: Path) -> tuple[list["Experiment"], list[str]]:
    """(experiments, notes).

    experiments   those that `of` names, or all if it is empty, without reductions of another one among them
    notes         which reductions are left out, and what has no result yet, with the command that computes it

    Raises `DpmfError` if there is no result at all, and for a path that is neither a config nor a results folder.
    """
    from dpmf_cli.experiment.config import load_config
    from dpmf_cli.experiment.config.documents import means_a_config
    from dpmf_cli.experiment.results.folders import results_of
    from dpmf_cli.experiment.results.manifest import MANIFEST
    from dpmf_cli.report.tables.ranked import whole_first

    where = "" if results == Path("results") else f" --results {results}"
    present, notes, commands = [], [], {}
    for path in of:
        if means_a_config(path):
            name, command = load_config(path).name, f"`dpmf run {path}{where}`"
            if not (results / name / MANIFEST).exists():
                notes.append(f"{path} has no results yet: {command}")
                continue
            commands[name] = command
        present.append(path)
    if of and not present:
        raise DpmfError("; ".join(notes))
    experiments, left_out = whole_first([each.experiment for _, each in results_of(present, results)])
    notes += left_out
    for experiment in experiments:
        left = [each.label for each in experiment.measured() if each.missing]
        if left:
            command = commands.get(experiment.name, "`dpmf run` of its config")
            notes.append(f"{experiment.name}: incomplete: {'; '.join(left)}: {command} completes them")
    return experiments, notes


def frontier(
    of: options.ResultsArgument = None,
    results: options.ResultsOption = Path("results"),
    form: options.FormatOption = "table",
    figure: FigureOption = None,
    plugin: options.PluginOption = None,
    as_json: options.JsonFormatOption = False,
) -> str:
    """Show the best method at each ε, of all that were run.

    Compares methods by provable ε, for each data set and each guarantee, with intervals and ties.

    Example: dpmf frontier configs/combined_ml100k.yaml --figure results/frontier.png
    """
    from dpmf_cli.report.tables.layout import draw
    from dpmf_cli.report.tables.ranked import frontier_table

    experiments, notes = gathered(of or [], results)
    table = draw(frontier_table(experiments, notes=notes), form)
    _say_notes(form, notes)
    if figure is not None:
        from dpmf_cli.report.figures.drawings import frontier_figure
        from dpmf_cli.report.figures.style import write_figure

        write_figure(figure, partial(frontier_figure, experiments))
    return table


def _say_notes(form: str, notes: list[str]) -> None:
    """Says what a table for programs does not hold."""
    for note in notes if form in ("csv", "json") else ():
        say(note)


NamedArgument = Annotated[list[Path] | None, typer.Argument(help="Configs or results folders.")]


def report(
    of: NamedArgument = None,
    results: options.ResultsOption = Path("results"),
    everything: Annotated[
        bool,
        typer.Option("--all", help="Write one page of all results, paper by paper: results/report.html."),
    ] = False,
    data: options.DataOption = None,
    plugin: options.PluginOption = None,
) -> None:
    """Write results as an HTML page, report.html.

    Each results folder gets one. It opens from the disk, without a server.

    Example: dpmf report results/ml100k_bounded
    """
    from dpmf_cli.datasets import Folders
    from dpmf_cli.experiment.results.folders import folders_of
    from dpmf_cli.experiment.results.manifest import add_file
    from dpmf_cli.experiment.results.store import write_atomically
    from dpmf_cli.report.html.page import experiment_page, overview_page

    if everything == bool(of):
        raise DpmfError("name configs or results folders, or give --all for one page of all results")
    if everything:
        page = overview_page(Folders.named(data, results=results))
        write_atomically(results / "report.html", page.encode(errors="backslashreplace"))
        print(results / "report.html")
        return
    pages = {folder: experiment_page(folder) for folder in folders_of(of or [], results)}
    for folder, page in pages.items():
        add_file(folder / "report.html", page.encode(errors="backslashreplace"))
        print(folder / "report.html")


def plot(
    of: NamedArgument = None,
    results: options.ResultsOption = Path("results"),
    everything: Annotated[
        bool, typer.Option("--all", help="Draw all experiments in the folder of results.")
    ] = False,
    forms: Annotated[
        str, typer.Option("--format", help="png, svg, pdf, or several, separated by commas.")
    ] = "png,svg,pdf",
    out: Annotated[
        Path | None, typer.Option(help="Folder for the figures; default: each experiment's results folder.")
    ] = None,
    metric: options.MetricOption = None,
    plugin: options.PluginOption = None,
) -> None:
    """Draw the figures of results as PNG, SVG and PDF.

    Example: dpmf plot configs/ml100k_bounded.yaml --format pdf --out figures
    """
    from dpmf_cli.experiment.results.folders import results_of
    from dpmf_cli.experiment.results.manifest import add_file
    from dpmf_cli.experiment.results.store import write_atomically
    from dpmf_cli.report.figures.drawings import drawings
    from dpmf_cli.report.figures.style import FORMATS

    asked = list(dict.fromkeys(form.strip() for form in forms.split(",")))
    for form in asked:
        if form not in FORMATS:
            raise DpmfError(f'unknown figure format "{form}"{did_you_mean(form, FORMATS)}')
    if everything == bool(of):
        raise DpmfError("name configs or results folders, or give --all for all results")
    for folder, collected in results_of(of or [], results):
        experiment = shown(collected, metric, named=not everything)
        if experiment is None:
            continue
        found = drawings(experiment)
        if not found:
            fix = "`dpmf run` its config to complete it"
            others = [each.key for each in experiment.metrics if each != experiment.metric]
            if others and not experiment.curves:
                fix = f"its methods have others; add `--metric {others[0]}`"
            say(f"{experiment.name}: no complete curve of {experiment.metric.key} to plot; {fix}")
        if metric not in (None, collected.metric):  # beside the figures of the run
            found = {f"{name}-{metric}": draw for name, draw in found.items()}
        for name, draw in found.items():
            for form in asked:
                path = out / f"{experiment.name}-{name}.{form}" if out else folder / f"{name}.{form}"
                (write_atomically if out else add_file)(path, draw(form))
                print(path)
