"""Commands that show several results at once: `dpmf combined`, `dpmf frontier`, `dpmf report` and `dpmf plot`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.cli.options import (
    ConfigsOption,
    DataOption,
    FormatOption,
    MetricOption,
    PluginOption,
    ResultsArgument,
    ResultsOption,
)
from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.terminal import say

if TYPE_CHECKING:
    from dpmf_cli.evaluation.curves import Experiment


def combined(
    of: ResultsArgument = None,
    results: ResultsOption = Path("results"),
    form: FormatOption = "table",
    bar: Annotated[
        str, typer.Option("--by", help="Rank by the crossing with this baseline: ia or ge.")
    ] = "ia",
    rank: Annotated[
        str,
        typer.Option(
            "--rank",
            help="within: rank inside each group, in which every ε hides the same from the same people; across: "
            "rank all together, which is refused unless they form one group on the same data.",
        ),
    ] = "within",
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            help="Also draw RMSE over ε, one panel for each group, to this .png, .svg or .pdf file.",
        ),
    ] = None,
    plugin: PluginOption = None,
) -> str:
    """Print one crossing table for several experiments.

    Groups all algorithms by what their ε hides and from whom. By default, ranks them only within each group.

    Example: dpmf combined configs/combined_ml100k.yaml configs/combined_ml1m.yaml
    """
    from dpmf_cli.evaluation.ranking import BARS
    from dpmf_cli.report.tables.layout import draw
    from dpmf_cli.report.tables.ranked import combined_table

    ways = ("within", "across")
    if rank not in ways:
        raise DpmfError(f'--rank: unknown "{rank}"{did_you_mean(rank, ways)}')
    chosen = next((each for each in BARS if each == bar.lower()), None)
    if chosen is None:
        raise DpmfError(f'--by: unknown baseline "{bar}"{did_you_mean(bar, BARS)}')
    experiments, notes, _ = gathered(of or [], results)
    table = draw(combined_table(experiments, bar=chosen, across=rank == "across", notes=notes), form)
    _say_notes(form, notes)
    if figure is not None:
        from dpmf_cli.report.figures.drawings import combined_figure
        from dpmf_cli.report.figures.style import figure_form, write_named

        write_named(figure, combined_figure(experiments, figure_form(figure)))
    return table


def gathered(of: list[Path], results: Path) -> tuple[list["Experiment"], list[str], dict[str, Path]]:
    """Returns (experiments, notes, folders).

    experiments   those that `of` names, or all if it is empty, without reductions of another one among them
    notes         which reductions are left out, and what has no result yet, with the command that computes it
    folders       the results folders of all experiments, reductions too, by the experiments' names

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
    found = {folder: collected.experiment for folder, collected in results_of(present, results)}
    experiments, left_out = whole_first(list(found.values()))
    notes += left_out
    for experiment in experiments:
        left = [each.label for each in experiment.measured() if each.missing]
        if left:
            command = commands.get(experiment.name, "`dpmf run` of its config")
            notes.append(f"{experiment.name}: incomplete: {'; '.join(left)}: {command} completes them")
    return experiments, notes, {experiment.name: folder for folder, experiment in found.items()}


def frontier(
    of: ResultsArgument = None,
    results: ResultsOption = Path("results"),
    form: FormatOption = "table",
    figure: Annotated[
        Path | None,
        typer.Option(
            "--figure",
            help="Also draw the frontier, one panel for each guarantee, to this .png, .svg or .pdf file.",
        ),
    ] = None,
    leaders: Annotated[
        Path | None,
        typer.Option(
            help="Also write the methods that lead on all these data sets to this file, for `dpmf recommend`.",
            show_default=False,
        ),
    ] = None,
    plugin: PluginOption = None,
) -> str:
    """Show the best method at each ε, of all that were run.

    Compares methods by provable ε, for each data set and each guarantee, with intervals and ties.

    Example: dpmf frontier configs/combined_ml100k.yaml --figure results/frontier.png
    """
    from dpmf_cli.report.figures.style import figure_form, write_named
    from dpmf_cli.report.tables.layout import draw
    from dpmf_cli.report.tables.ranked import frontier_table

    experiments, notes, folders = gathered(of or [], results)
    table = draw(frontier_table(experiments, notes=notes), form)
    _say_notes(form, notes)
    if figure is not None:
        from dpmf_cli.report.figures.drawings import frontier_figure

        write_named(figure, frontier_figure(experiments, figure_form(figure)))
    if leaders is not None:
        from dpmf_cli.report.leaders import leaders_text

        write_named(leaders, leaders_text(experiments, folders).encode())
    return table


def _say_notes(form: str, notes: list[str]) -> None:
    """Says what a table for programs does not hold."""
    for note in notes if form in ("csv", "json") else ():
        say(note)


NamedArgument = Annotated[
    list[Path] | None, typer.Argument(help="Configs or results folders.", show_default=False)
]


def report(
    of: NamedArgument = None,
    results: ResultsOption = Path("results"),
    everything: Annotated[
        bool,
        typer.Option("--all", help="Write one page of all results, paper by paper: results/report.html."),
    ] = False,
    configs: ConfigsOption = None,
    data: DataOption = None,
    plugin: PluginOption = None,
) -> None:
    """Write results as an HTML page, report.html.

    Each results folder gets one. It opens from the disk, without a server.

    Example: dpmf report results/ml100k_bounded
    """
    from dpmf_cli.datasets import Folders
    from dpmf_cli.experiment.config.documents import FOLDER
    from dpmf_cli.experiment.results.folders import folders_of
    from dpmf_cli.experiment.results.manifest import add_file
    from dpmf_cli.experiment.results.store import write_atomically
    from dpmf_cli.report.html.page import experiment_page, overview_page

    if everything == bool(of):
        raise DpmfError("name configs or results folders, or give --all for one page of all results")
    if everything:
        page = overview_page(Folders.named(data, results=results), configs or FOLDER)
        write_atomically(results / "report.html", page.encode(errors="backslashreplace"))
        print(results / "report.html")
        return
    pages = {folder: experiment_page(folder) for folder in folders_of(of or [], results)}
    for folder, page in pages.items():
        add_file(folder / "report.html", page.encode(errors="backslashreplace"))
        print(folder / "report.html")


def plot(
    of: NamedArgument = None,
    results: ResultsOption = Path("results"),
    everything: Annotated[
        bool, typer.Option("--all", help="Draw all experiments in the folder of results.")
    ] = False,
    forms: Annotated[
        str, typer.Option("--format", help="png, svg, pdf, or several, separated by commas.")
    ] = "png,svg,pdf",
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for the figures; default: each experiment's results folder.", show_default=False
        ),
    ] = None,
    metric: MetricOption = None,
    plugin: PluginOption = None,
) -> None:
    """Draw the figures of results as PNG, SVG and PDF.

    Example: dpmf plot configs/ml100k_bounded.yaml --format pdf --out figures
    """
    from dpmf_cli.cli.tables import shown
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
            say(f"{experiment.name}: no complete curve to plot; `dpmf run` its config to complete it")
        if metric not in (None, collected.metric):  # beside the figures of the run
            found = {f"{name}-{metric}": draw for name, draw in found.items()}
        for name, draw in found.items():
            for form in asked:
                path = out / f"{experiment.name}-{name}.{form}" if out else folder / f"{name}.{form}"
                (write_atomically if out else add_file)(path, draw(form))
                print(path)
