"""Commands that show results to a person: `dpmf report` and `dpmf plot`."""

from pathlib import Path
from typing import Annotated

import typer

from dpmf_cli.cli.options import ConfigsOption, DataOption, MetricOption, PluginOption, ResultsOption

_Of = Annotated[
    list[Path] | None,
    typer.Argument(help="Configs or results folders.", show_default=False),
]


def report(
    of: _Of = None,
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
    from dpmf_cli.core.errors import DpmfError
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
    of: _Of = None,
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
    from dpmf_cli.core.errors import DpmfError, did_you_mean
    from dpmf_cli.core.terminal import say
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
