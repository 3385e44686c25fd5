"""Commands about the papers: `dpmf configs`."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.cli.options import DataOption
from dpmf_cli.errors import DpmfError

if TYPE_CHECKING:
    from dpmf_cli.report.tables.layout import TextTable


def configs(
    paper: Annotated[
        str | None,
        typer.Argument(
            help="Key of a paper, e.g. friedman2016: list only the names of its configs.", show_default=False
        ),
    ] = None,
    small: Annotated[
        bool, typer.Option("--small", help="List only the configs of `dpmf reproduce PAPER --small`.")
    ] = False,
    large: Annotated[
        bool | None,
        typer.Option(
            "--large/--no-large",
            help="List only the configs whose data have the size of ML-10M or Netflix, or only the others.",
            show_default=False,
        ),
    ] = None,
    data: DataOption = None,
) -> None:
    """List the shipped configs: paper, table, data, time.

    `dpmf run` takes their names in any folder. Given a paper, lists only the names of its configs, in the order in
    which they are run.

    Example: dpmf configs friedman2016 --small
    """
    from dpmf_cli.papers.claims import paper as findings_of
    from dpmf_cli.report.tables.layout import terminal

    if paper is None:
        if small or large is not None:
            raise DpmfError(
                "--small and --large need a paper; name it, e.g. `dpmf configs friedman2016 --small`"
            )
        print(terminal(_listed(data)), end="")
        return
    found = findings_of(paper)
    for name in found.small if small else found.configs:
        if large in (None, name in found.large):
            print(name)


def _listed(data: Path | None) -> "TextTable":
    """Returns all configs by paper, with the time that a run from nothing takes."""
    from dpmf_cli.papers.claims import all_papers
    from dpmf_cli.report.tables.layout import Group, TextTable

    groups, listed = [], set[str]()
    for key, findings in all_papers().items():
        of = {
            name: [each.name for each in findings.exhibits if name in each.configs]
            for name in findings.configs
        }
        rows = tuple(_rows({name: ", ".join(dict.fromkeys(names)) for name, names in of.items()}, data))
        groups.append(Group(f"{key}: {findings.title}", rows))
        listed |= of.keys()
    from dpmf_cli.config.documents import shipped_names

    others = {name: "" for name in shipped_names() if name not in listed}
    groups.append(Group("not from a single paper", tuple(_rows(others, data))))
    notes = (
        "time: of a run from nothing on all cores of this machine, as `dpmf plan` estimates it",
        "no: its data are not here; `dpmf datasets info KEY` says how to get them",
    )
    return TextTable(("config", "table or figure", "data set", "here", "time"), "llllr", tuple(groups), notes)


def _rows(of: dict[str, str], data: Path | None) -> Iterator[tuple[str, ...]]:
    """Yields a row for each config. `of` says what each config shows, by its name."""
    from dpmf_cli.config import load_config
    from dpmf_cli.config.documents import FOLDER
    from dpmf_cli.datasets import Folders
    from dpmf_cli.datasets.located import what_is_missing
    from dpmf_cli.evaluation.numbers import duration
    from dpmf_cli.running.calibration import calibrated
    from dpmf_cli.running.machine import available_cores
    from dpmf_cli.running.plan import plan_without_parsing
    from dpmf_cli.terminal import say

    folders = Folders.named(data, base=FOLDER, results=Path("no results"))
    cores = available_cores()
    machine = calibrated(folders.cache, cores, "dpmf_cli.experiment", say)
    for name, shows in of.items():
        config = load_config(FOLDER / f"{name}.yaml")
        made, _ = plan_without_parsing(config, folders, machine)
        here = "no" if what_is_missing(config.dataset, folders) else "yes"
        yield name, shows, config.dataset.key, here, duration(made.seconds(cores))
