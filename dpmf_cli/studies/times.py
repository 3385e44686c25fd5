"""The time that a reproduction took, by experiment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dpmf_cli.evaluation.numbers import duration
from dpmf_cli.experiment.results.provenance import cpu
from dpmf_cli.experiment.results.task import Outcome
from dpmf_cli.experiment.running.plan import Plan
from dpmf_cli.report.tables.layout import Group, TextTable


@dataclass(frozen=True)
class Took:
    """The cost of one experiment: its number of tasks, and the CPU seconds of their fits, added up."""

    tasks: int = 0
    seconds: float = 0.0


def took(plan: Plan, ended: Iterable[Outcome]) -> dict[str, Took]:
    """Returns the cost of each experiment by name. A task that several experiments share counts for the first."""
    of = {task.key: entry.experiment for entry in plan.entries for task in entry.left}
    found = dict[str, Took]()
    for outcome in ended:
        name = of[outcome.task.key]
        before = found.get(name, Took())
        found[name] = Took(before.tasks + 1, before.seconds + outcome.seconds)
    return found


def times_text(times: Mapping[str, Took], seconds: float, processes: int) -> TextTable:
    """Makes a table with a row for each experiment, the longest first, and a row for all.

    seconds    time by the clock of the complete command
    processes  how many worked side by side
    """
    longest_first = sorted(times.items(), key=lambda each: -each[1].seconds)
    tasks, work = (sum(getattr(each, what) for each in times.values()) for what in ("tasks", "seconds"))
    rows = [(name, f"{each.tasks:,}", _minutes(each.seconds)) for name, each in longest_first]
    return TextTable(
        ("experiment", "tasks", "CPU minutes"),
        "lrr",
        (Group("What it took", (*rows, ("all", f"{tasks:,}", _minutes(work)))),),
        (
            f"{duration(seconds)} by the clock, in {processes} processes on {cpu()}",
            "a task that several experiments share counts for the first of them",
            "the table has only what this command computed, not results that were there before",
        ),
    )


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f}"
