"""Commands of the local model: `dpmf local`."""

from pathlib import Path
from typing import Annotated

import typer

from dpmf_cli.cli.options import (
    ConfigArgument,
    DataOption,
    FormatOption,
    PluginOption,
    ResultsArgument,
    ResultsOption,
)

app = typer.Typer(help="The local model: noise, messages, improvements.", no_args_is_help=True)


@app.command()
def noise(
    out: Annotated[Path, typer.Argument(help="The figure's file: .png, .svg or .pdf.")],
    dataset: Annotated[str, typer.Option(help="Key of a data set in the catalog.")] = "ml-100k",
    data: DataOption = None,
) -> None:
    """Draw the two kinds of noise: figure 2 of Neera and others.

    Histograms of Laplace and of bounded Laplace noise.

    Example: dpmf local noise results/neera_fig2.png
    """
    from dpmf_cli.datasets import Folders, load
    from dpmf_cli.datasets.catalog import entry
    from dpmf_cli.datasets.spec import CatalogSpec
    from dpmf_cli.report.figures.figure_file import figure_form, write_named
    from dpmf_cli.report.figures.local_noise import noise_figure

    form = figure_form(out)
    spec = CatalogSpec(name=entry(dataset).key)
    loaded = load(spec, Folders.named(data))
    write_named(out, noise_figure(loaded.ratings, loaded.identity.title, form))


@app.command()
def traffic(
    config: ConfigArgument,
    data: DataOption = None,
    form: FormatOption = "table",
    plugin: PluginOption = None,
) -> None:
    """Count the bytes that users send and receive.

    Counts them for each algorithm of a config, as in table 1 of Neera et al. 2020.

    Example: dpmf local traffic configs/neera_fig3_ml100k.yaml
    """
    from dpmf_cli.config import load_config
    from dpmf_cli.datasets import Folders, load
    from dpmf_cli.report.tables.layout import draw
    from dpmf_cli.report.tables.local import traffic as traffic_of
    from dpmf_cli.report.tables.local import traffic_table

    loaded = load_config(config)
    dataset = load(loaded.dataset, Folders.named(data, base=config.parent))
    ratings, title = dataset.ratings, dataset.identity.title
    sent = traffic_of(loaded.algorithms, ratings, title)
    print(draw(traffic_table(sent, ratings, title), form), end="")


@app.command()
def improvements(
    of: ResultsArgument = None,
    results: ResultsOption = Path("results"),
    form: FormatOption = "table",
    plugin: PluginOption = None,
) -> None:
    """Show how far BLP-MoG-MF's error is below other curves'.

    The improvements over ISGD that Neera et al. 2020 print stand beside them.

    Example: dpmf local improvements configs/neera_fig4_ml100k.yaml
    """
    from dpmf_cli.report.tables.layout import draw
    from dpmf_cli.report.tables.local import improvements_table
    from dpmf_cli.results.folders import results_of

    experiments = [collected.experiment for _, collected in results_of(of or [], results)]
    print(draw(improvements_table(experiments), form), end="")
