"""`dpmf reproduce`: reproduces a paper, or all papers, from nothing to tables, report and verdict."""

import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.cli.options import DataOption
from dpmf_cli.cli.run import JobsOption
from dpmf_cli.errors import DpmfError

if TYPE_CHECKING:
    from dpmf_cli.datasets import Folders
    from dpmf_cli.evaluation.curves import Experiment
    from dpmf_cli.reproducing.whole import Reproduction


def reproduce(
    what: Annotated[
        str, typer.Argument(help="Key of a paper, `combined`, `frontier`, or `all`.", show_default=False)
    ],
    small: Annotated[
        bool,
        typer.Option(
            "--small", help="Run one fold and one run of most experiments, on MovieLens 100K; takes minutes."
        ),
    ] = False,
    plan: Annotated[
        bool, typer.Option("--plan", help="Say what would be run and how long it takes; run nothing.")
    ] = False,
    expect: Annotated[
        bool, typer.Option("--expect", help="Save the figures found as the expected ones; for dpmf's makers.")
    ] = False,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            help="Folder of results; default: results, or results/small with --small.",
            show_default=False,
        ),
    ] = None,
    data: DataOption = None,
    jobs: JobsOption = None,
) -> None:
    """Reproduce a paper: run, write tables and report, judge.

    Resumes an interrupted reproduction. Names missing data once. It ends with a verdict: whether RMSE
    is as expected, for each curve at three ε. It may differ by two standard deviations over folds and runs, or by a
    thousandth of itself. The exit code is 1 if one differs by more, or if an experiment has no expected figures.

    Example: dpmf reproduce friedman2016 --small
    """
    from dpmf_cli.cli.answers import answer
    from dpmf_cli.config.documents import FOLDER
    from dpmf_cli.datasets import Folders
    from dpmf_cli.papers.claims import parts_named
    from dpmf_cli.report.html.page import overview_page
    from dpmf_cli.report.tables.layout import markdown
    from dpmf_cli.reproducing.times import times_text
    from dpmf_cli.reproducing.whole import Reproduction, run_all, write_outputs
    from dpmf_cli.results.store import write_atomically
    from dpmf_cli.running.machine import available_cores
    from dpmf_cli.terminal import say

    processes = jobs or available_cores()
    folders = Folders.named(data, base=FOLDER, results=results or Path("results", "small" if small else ""))
    of = Reproduction.of(parts_named(what), folders, small=small)
    if plan:
        _print_plan(of, folders, processes)
        return
    _tell_of_missing(of)
    if not of.configs:
        raise DpmfError(f"no data of {what} are here: nothing to run")
    began = time.perf_counter()
    found, times = run_all(of, folders, processes)
    for path in write_outputs(of, folders.results, partial(answer, data=data)):
        say(f"wrote {path}")
    page = folders.results / "report.html"
    write_atomically(page, overview_page(folders, FOLDER).encode(errors="backslashreplace"))
    say(f"wrote {page}")
    if times:
        took = folders.results / f"times_{what}.md"
        write_atomically(took, markdown(times_text(times, time.perf_counter() - began, processes)).encode())
        say(f"wrote {took}")
    _end(of, found, expect=expect)


def _print_plan(of: "Reproduction", folders: "Folders", processes: int) -> None:
    from dpmf_cli.evaluation.numbers import duration
    from dpmf_cli.reproducing.whole import processes_for

    for words, made in of.plans(folders, parsing=False):
        print(f"{words}, about {duration(made.seconds(processes_for(made, processes)))}")
    _tell_of_missing(of)


def _tell_of_missing(of: "Reproduction") -> None:
    from dpmf_cli.terminal import say

    for lacking, names in of.missing.items():
        say(f"not run: {', '.join(names)}: {lacking}")


def _end(of: "Reproduction", found: "list[Experiment]", *, expect: bool) -> None:
    """Prints which figures are not as expected. With `expect`, saves the figures as the expected ones instead."""
    from dpmf_cli.reproducing.expected import FOLDER, figures_of, figures_off, read_expected, text_of
    from dpmf_cli.results.store import write_atomically

    path = FOLDER / ("small.json" if of.small else "whole.json")
    expected = read_expected(path)
    now = {each.name: figures_of(each) for each in found}
    if expect:
        write_atomically(path, text_of({**expected, **now}).encode())
        print(f"{path}: {sum(map(len, now.values())):,} figures of {len(now)} experiments")
        return
    off = [each for name in now for each in figures_off(name, expected.get(name, {}), now[name])]
    unknown = [name for name in now if name not in expected]
    held = sum(len(expected.get(name, {})) for name in now) - len(off)
    print(f"{held:,} of {held + len(off):,} RMSE of {len(now) - len(unknown)} experiments are as expected")
    for name in unknown:
        print(f"{name}: dpmf ships no expected figures for it")
    for each in off:
        here = "none" if each.found is None else f"{each.found:.5g}"
        wanted = f"{each.expected.mean:.5g} ± {each.expected.deviation:.2g}"
        print(f"{each.experiment}: {each.figure}: {here}, expected {wanted}")
    if off or unknown:
        raise typer.Exit(1)
