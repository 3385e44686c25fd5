"""Commands that answer with a table: `dpmf crossings`, `dpmf compare` and `dpmf baselines`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.cli.options import FormatOption, PluginOption, ResultsArgument, ResultsOption

if TYPE_CHECKING:
    from dpmf_cli.evaluation.crossings import Crossing

ComparedArgument = Annotated[Path, typer.Argument(help="A config that was run, or its results folder.")]


def crossings(
    of: ResultsArgument = None,
    results: ResultsOption = Path("results"),
    form: FormatOption = "table",
    printed: Annotated[
        bool,
        typer.Option(
            "--printed",
            help="Add the cells of Friedman et al.'s tables 4 and 5 without a result.",
        ),
    ] = False,
    advise: Annotated[
        bool,
        typer.Option("--advise", help="Say in plain words what results recommend and leave open."),
    ] = False,
    audited: Annotated[
        bool, typer.Option("--audited", help="Add what `dpmf audit` of the same configs has shown.")
    ] = False,
    plugin: PluginOption = None,
) -> None:
    """The ε at which private algorithms become as good as averages.

    As good as the item average (IA), and as item and user averages together, the global effects (GE).

    Example: dpmf crossings configs/quickstart.yaml --advise
    """
    from dpmf_cli.audit.kept import of_experiment
    from dpmf_cli.datasets import data_folder
    from dpmf_cli.datasets.presence import present_keys
    from dpmf_cli.errors import DpmfError
    from dpmf_cli.evaluation.crossings import find_crossings
    from dpmf_cli.papers.printed_cells import beside_print, with_printed_cells
    from dpmf_cli.report.advice import advice as advice_on
    from dpmf_cli.report.tables.crossings import crossings_table
    from dpmf_cli.results.folders import results_of
    from dpmf_cli.terminal import say

    if advise and (printed or audited or form != "table"):
        raise DpmfError("--advise answers in words; leave --format, --printed and --audited out")
    rows: list[Crossing] = []
    experiments, audits = [], {}
    for folder, collected in results_of(of or [], results):
        audits[collected.experiment.name] = of_experiment(folder)
        found = beside_print(find_crossings(collected.experiment))
        if any(crossing.status == "incomplete" for crossing in found):
            say(
                f"{collected.experiment.name}: some tasks have no result yet; `dpmf run` its config to complete it"
            )
        rows += found
        experiments.append(collected.experiment)
    if advise:
        print(advice_on(experiments, rows), end="")
        return
    if printed:
        rows = with_printed_cells(rows, present=present_keys(data_folder()))
    if audited and not any(audits.values()):
        say("nothing was audited: `dpmf audit` a config, and ask again")
    print(crossings_table(rows, form, audits if audited else None), end="")


def compare(
    first: ComparedArgument,
    others: Annotated[list[Path], typer.Argument(help="The others, each held against the first.")],
    results: ResultsOption = Path("results"),
    form: Annotated[str, typer.Option("--format", help="table, csv, md or json.")] = "table",
    page: Annotated[
        Path | None,
        typer.Option(help="Write all of it as one HTML page, with charts, instead.", show_default=False),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Say in what experiments differ: settings, and errors.

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
    plugin: PluginOption = None,
) -> None:
    """The errors of the baselines: GA, IA, GE, clean MF.

    Beside those that Friedman et al. (2016) print in table 3, where an experiment reproduces it.

    Example: dpmf baselines --format md
    """
    from dpmf_cli.report.tables.baselines import baseline_rows, baselines_table
    from dpmf_cli.results.folders import collected_results

    experiments = [collected.experiment for collected in collected_results(of or [], results)]
    print(
        baselines_table([row for experiment in experiments for row in baseline_rows(experiment)], form),
        end="",
    )
