"""`dpmf explore`: tries what a paper leaves open, and judges its claims."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.cli.options import ConfigsOption, DataOption, ResultsOption
from dpmf_cli.cli.run import JobsOption
from dpmf_cli.errors import DpmfError, did_you_mean

if TYPE_CHECKING:
    from dpmf_cli.datasets import Folders
    from dpmf_cli.exploring.explore import Exploration
    from dpmf_cli.papers.record import Record


def explore(
    paper: Annotated[
        str | None, typer.Argument(help="Key of the paper, e.g. friedman2016.", show_default=False)
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Explore all papers, one after the other.")] = False,
    dataset: Annotated[str, typer.Option("--dataset", help="Key of the data set to explore on.")] = "ml-100k",
    settings: Annotated[
        int | None,
        typer.Option(
            "--settings", min=1, help="How many settings to run; default: as many as the paper's space says."
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option("--record", help="Folder of records; default: RESULTS/explored.", show_default=False),
    ] = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be run and how long it takes; run nothing.")
    ] = False,
    configs: ConfigsOption = None,
    results: ResultsOption = Path("results"),
    data: DataOption = None,
    jobs: JobsOption = None,
) -> None:
    """Try what a paper leaves open, and judge its claims.

    Runs many settings, and continues an interrupted exploration. Says in which share of the settings each claim and
    each printed cell holds, and which choices decide that.

    Example: dpmf explore friedman2016 --settings 32
    """
    from dpmf_cli.config.documents import FOLDER as SHIPPED
    from dpmf_cli.datasets import Folders
    from dpmf_cli.exploring.explore import exploration
    from dpmf_cli.papers.record import FOLDER
    from dpmf_cli.papers.space import explored, space

    if (paper is None) != every:
        raise DpmfError(f"name one paper, or --all of them: {', '.join(explored())}")
    configs = configs or SHIPPED
    folders = Folders.named(data, base=configs, results=results)
    keys = [key for key in explored() if dataset in space(key).data] if every else [paper or ""]
    if not keys:
        known = dict.fromkeys(data for key in explored() for data in space(key).data)
        raise DpmfError(f'no paper is explored on "{dataset}"{did_you_mean(dataset, known)}')
    for key in keys:
        wanted = exploration(key, dataset, configs, settings)
        if plan:
            _print_plan(wanted, folders, jobs)
        else:
            _explore(wanted, folders, record or results / FOLDER, jobs)


def _print_plan(wanted: "Exploration", folders: "Folders", jobs: int | None) -> None:
    from dpmf_cli.evaluation.numbers import duration
    from dpmf_cli.exploring.explore import plan_of
    from dpmf_cli.running.machine import available_cores

    made = plan_of(wanted, folders, parsing=False)
    about = duration(made.seconds(jobs or available_cores()))
    print(f"{wanted.key}: {len(wanted.settings)} settings on {wanted.data}, {made.summary}, about {about}")


def _explore(wanted: "Exploration", folders: "Folders", folder: Path, jobs: int | None) -> None:
    from dpmf_cli import __version__
    from dpmf_cli.exploring.explore import explore as explore_paper
    from dpmf_cli.exploring.explore import proved
    from dpmf_cli.papers.record import Record, path_of, read_record, text_of
    from dpmf_cli.report.figures.specification import specification_bytes
    from dpmf_cli.results.store import write_atomically
    from dpmf_cli.running.machine import available_cores
    from dpmf_cli.running.processes import LocalProcesses
    from dpmf_cli.terminal import say

    processes = jobs or available_cores()
    found = explore_paper(wanted, folders, LocalProcesses(processes))
    theorems = proved(wanted.key, folders.results, processes)
    path = path_of(folder, wanted.key)
    before = read_record(path)
    kept = {key: each for key, each in before.data.items() if each.is_of(wanted.space)} if before else {}
    record = Record(
        paper=wanted.key,
        version=__version__,
        data=dict(sorted({**kept, wanted.data: found}.items())),
        theorems=theorems,
    )
    write_atomically(path, text_of(record).encode())
    picture = folder / f"{wanted.key}-{wanted.data}.png"
    write_atomically(picture, specification_bytes(found, "png"))
    _print_tables(record, wanted)
    say(f"{path} and {picture}")


def _print_tables(record: "Record", wanted: "Exploration") -> None:
    from dpmf_cli.report.tables.explored import cells_text, claims_text
    from dpmf_cli.report.tables.layout import terminal

    print(terminal(claims_text(record, wanted.paper)))
    if (found := record.data[wanted.data]).printed:
        print(terminal(cells_text(found)))
