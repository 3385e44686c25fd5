"""`dpmf frontier`: for each guarantee, the method with the lowest error at each ε."""

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
        typer.Option(
            "--figure",
            help="Also draw the frontier, one panel for each guarantee, to this .png, .svg or .pdf file.",
        ),
    ] = None,
    aims: Annotated[
        Path | None,
        typer.Option(help="Compare the results with the aims in this YAML file instead.", show_default=False),
    ] = None,
    leaders: Annotated[
        Path | None,
        typer.Option(
            help="Also write the methods that lead on all these data sets to this file, for `dpmf recommend`.",
            show_default=False,
        ),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Show the best method at each ε, of all that were run.

    Compares methods by provable ε, for each data set and each guarantee, with intervals and ties.

    Example: dpmf frontier configs/combined_ml100k.yaml --figure results/frontier.png
    """
    from dpmf_cli.cli.combined import gathered
    from dpmf_cli.report.aims import aims_table
    from dpmf_cli.report.figures.figure_file import figure_form, write_named
    from dpmf_cli.report.tables.layout import draw
    from dpmf_cli.report.tables.ranked import frontier_table
    from dpmf_cli.terminal import say

    experiments, notes, folders = gathered(of or [], results)
    table = frontier_table(experiments, notes=notes) if aims is None else aims_table(experiments, aims, notes)
    drawn = draw(table, form)
    for note in notes if form in ("csv", "json") else ():
        say(note)
    if figure is not None:
        from dpmf_cli.report.figures.frontier import frontier_figure

        write_named(figure, frontier_figure(experiments, figure_form(figure)))
    if leaders is not None:
        from dpmf_cli.report.leaders import leaders_text

        write_named(leaders, leaders_text(experiments, folders).encode())
    print(drawn, end="")
