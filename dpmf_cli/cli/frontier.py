"""`dpmf frontier`: at each ε the method with the lowest error, of all that keep one guarantee."""

from pathlib import Path
from typing import Annotated

import typer

from dpmf_cli.cli.options import FormatOption, PluginOption, ResultsArgument, ResultsOption


def frontier(
    of: ResultsArgument = None,
    results: ResultsOption = Path("results"),
    form: FormatOption = "table",
    figure: Annotated[
        Path | None,
        typer.Option("--figure", help="Draw it too, a panel a guarantee, to this .png, .svg or .pdf file."),
    ] = None,
    aims: Annotated[
        Path | None,
        typer.Option(help="Hold the results against the aims of this YAML file instead.", show_default=False),
    ] = None,
    leaders: Annotated[
        Path | None,
        typer.Option(
            help="Write what leads on all these data sets, for `dpmf recommend`, to this file, too.",
            show_default=False,
        ),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """At each ε the best of all methods that were run.

    For each data set and each guarantee, by provable ε, with intervals and ties.

    Example: dpmf frontier configs/combined_ml100k.yaml --figure results/frontier.png
    """
    from dpmf_cli.cli.combined import gathered
    from dpmf_cli.report.aims import aims_table
    from dpmf_cli.report.figures.figure_file import figure_form, write_named
    from dpmf_cli.report.tables.frontier import frontier_table
    from dpmf_cli.terminal import say

    experiments, notes, folders = gathered(of or [], results)
    table = (
        frontier_table(experiments, form, notes=notes)
        if aims is None
        else aims_table(experiments, aims, form, notes=notes)
    )
    for note in notes if form in ("csv", "json") else ():
        say(note)
    if figure is not None:
        from dpmf_cli.report.figures.frontier import frontier_figure

        write_named(figure, frontier_figure(experiments, figure_form(figure)))
    if leaders is not None:
        from dpmf_cli.report.leaders import leaders_text

        write_named(leaders, leaders_text(experiments, folders).encode())
    print(table, end="")
