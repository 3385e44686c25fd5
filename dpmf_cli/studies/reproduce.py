"""Parts of papers reproduced: their experiments run as one run, then their tables and figures written.

`expected_rmse/` has the figures that a reproduction is expected to find, with their spread: from a run of dpmf's
makers.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.terminal import duration, say
from dpmf_cli.datasets import Folders
from dpmf_cli.datasets.located import what_is_missing
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.experiment.config import ExperimentConfig, load_config
from dpmf_cli.experiment.config.documents import FOLDER
from dpmf_cli.experiment.config.loading import reduced
from dpmf_cli.experiment.results.manifest import MANIFEST, cpu
from dpmf_cli.experiment.results.store import write_atomically
from dpmf_cli.experiment.results.task import Outcome
from dpmf_cli.experiment.running.batches import MEMORY_SHARE, memory
from dpmf_cli.experiment.running.plan import Plan, refuse_failures, run_whole, whole_plan
from dpmf_cli.experiment.running.processes import each_of
from dpmf_cli.papers.claims import Output, Part, Table
from dpmf_cli.report.tables.layout import Group, TextTable
from dpmf_cli.studies.experiment import run

Maker = Callable[[Output, list[Path]], str | bytes]
"""Makes an output from the results folders of experiments. Raises DpmfError if they have nothing for it."""


@dataclass(frozen=True)
class Reproduction:
    """Parts to run: in full, or with each experiment `small`: one fold and one run, on MovieLens 100K.

    configs  experiments whose data are present, by the name of the config
    missing  data that are missing, each with the names of the configs that need them
    """

    parts: Sequence[Part]
    small: bool
    configs: dict[str, ExperimentConfig] = field(default_factory=dict)
    missing: dict[str, list[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Sequence[Part], folders: Folders, *, small: bool) -> "Reproduction":
        made = cls(parts, small)
        for name in dict.fromkeys(name for part in parts for name in (part.small if small else part.configs)):
            config = load_config(FOLDER / f"{name}.yaml")
            config = reduced(config, dataset="ml-100k", held_out=1, runs=1) if small else config
            if lacking := what_is_missing(config.dataset, folders):
                made.missing.setdefault(lacking, []).append(name)
            else:
                made.configs[name] = config
        return made

    def plans(self, folders: Folders, *, parsing: bool = True) -> Iterator[tuple[str, Plan]]:
        """Yields a plan for what is left of the experiments, then one for those on large data, whose tasks may not
        fit in memory side by side.

        Each plan comes with words that describe it. `parsing` is that of `whole_plan`.
        """
        large = {name for part in self.parts for name in part.large}
        for size, of_size in (("", False), (" on large data", True)):
            chosen = [config for name, config in self.configs.items() if (name in large) is of_size]
            if chosen:
                plan = whole_plan(chosen, folders, parsing=parsing)
                yield f"{len(chosen)} experiments{size}, {plan.summary}", plan


Took = tuple[int, float]
"""The cost of one experiment: its number of tasks, and the CPU seconds of their fits, added up."""


def run_all(of: Reproduction, folders: Folders, jobs: int) -> tuple[list[Experiment], dict[str, Took]]:
    """The experiments, of which it runs what is left and writes the results folders, and the cost of each that was
    run. Raises DpmfError if tasks fail."""
    ended, times = list[Outcome](), dict[str, Took]()
    for words, plan in of.plans(folders):
        say(words)
        outcomes = run_whole("reproduce", plan, folders, processes_for(plan, jobs))
        times |= took(plan, outcomes)
        ended += outcomes
    refuse_failures(ended)
    written = each_of(partial(_written, folders), of.configs.items(), min(jobs, len(of.configs)))
    experiments = {experiment.name: experiment for experiment in written}
    return [experiments[config.name] for config in of.configs.values()], times


def _written(folders: Folders, named: tuple[str, ExperimentConfig]) -> Experiment:
    """Writes the results folder of an experiment whose tasks are done, and returns it by the name of its config."""
    name, config = named
    finished = run(config, folders, command=f"dpmf run {name}")
    if finished.failures or finished.missing:
        raise DpmfError(
            f"{finished.missing} tasks of {name} have no result; the same command tries them again"
        )
    return finished.collected.experiment


def processes_for(plan: Plan, jobs: int) -> int:
    """How many processes to use: as many as asked for, or one if this machine lacks the memory for them."""
    return jobs if plan.peak_bytes(jobs) < MEMORY_SHARE * memory() else 1


def write_outputs(of: Reproduction, results: Path, makers: Mapping[Table, Maker]) -> Iterator[Path]:
    """Yields the files of those tables and figures of each part that have any content, once they are written."""
    for part in of.parts:
        for output in part.outputs:
            names = [name for name in output.configs or part.configs if name in of.configs]
            folders = [results / of.configs[name].name for name in names]
            given = [folder for folder in folders if (folder / MANIFEST).exists()]
            if not given and (output.configs or not output.data):
                continue
            file = results / output.file
            try:
                made = makers[output.table](output, given)
            except DpmfError as error:
                say(f"{file}: left as it was: {error}")
                continue
            write_atomically(file, made.encode() if isinstance(made, str) else made)
            yield file


def took(plan: Plan, ended: Iterable[Outcome]) -> dict[str, Took]:
    """The cost of each experiment by name; a task that several share counts for the first."""
    of = {task.key: entry.experiment for entry in plan.entries for task in entry.left}
    found = dict[str, Took]()
    for outcome in ended:
        tasks, seconds = found.get(of[outcome.task.key], (0, 0.0))
        found[of[outcome.task.key]] = tasks + 1, seconds + outcome.seconds
    return found


def times_text(times: Mapping[str, Took], seconds: float, processes: int) -> TextTable:
    """A table with a row for each experiment, the longest first, and a row for all.

    seconds    time by the clock of the complete command
    processes  how many worked side by side
    """
    longest_first = sorted(times.items(), key=lambda each: -each[1][1])
    rows = [(name, f"{tasks:,}", f"{work / 60:.1f}") for name, (tasks, work) in longest_first]
    tasks, work = map(sum, zip(*times.values(), strict=True))
    return TextTable(
        ("experiment", "tasks", "CPU minutes"),
        "lrr",
        (Group("What it took", (*rows, ("all", f"{tasks:,}", f"{work / 60:.1f}"))),),
        (
            f"{duration(seconds)} by the clock, in {processes} processes on {cpu()}",
            "a task that several experiments share counts for the first of them",
            "the table has only what this command computed, not results that were there before",
        ),
    )


EXPECTED = Path(__file__).parent / "expected_rmse"
DIGITS = 5
LEAST_PART = 1e-3
"""How much a figure may differ however small its spread is, as a fraction: arithmetic differs between processors."""

DEVIATIONS = 2.0
"""By how many standard deviations over folds and runs a figure may differ."""

POINTS = 3
"""How many ε of a curve have figures: its first, middle and last ε."""


@dataclass(frozen=True)
class Figure:
    """Mean and standard deviation of the RMSE over folds and runs, at one ε; 0 for a single RMSE."""

    mean: float
    deviation: float

    def admits(self, found: float) -> bool:
        """Whether another run's mean is within the spread."""
        return abs(found - self.mean) <= max(DEVIATIONS * self.deviation, LEAST_PART * abs(self.mean))


Figures = Mapping[str, Figure]
"""Figures by curve and ε."""


def figures_of(experiment: Experiment) -> dict[str, Figure]:
    """The figures of an experiment that can be expected: for each curve, and with growth for each portion of the
    ratings, those at a few ε."""
    found = {}
    parts = [
        (f" on {stage.portion.share:g}", (*stage.curves, *stage.baselines)) for stage in experiment.growth
    ]
    for part, curves in parts or [("", (*experiment.curves, *experiment.baselines))]:
        for each in curves:
            kind = "" if each.is_baseline else f", {each.neighbours}, {each.mode}"
            first, last = each.first, len(each.epsilons) - 1
            for at in sorted({first + round((last - first) * step / (POINTS - 1)) for step in range(POINTS)}):
                values = each.rmse[:, :, at].ravel()
                mean = float(values.mean())
                if math.isfinite(mean):
                    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
                    figure = Figure(round(mean, DIGITS), round(deviation, DIGITS))
                    found[f"{each.label}{kind}{part} at {each.epsilons[at]:g}"] = figure
    return found


def figures_off(expected: Figures, found: Figures) -> dict[str, float | None]:
    """The expected figures that an experiment found outside the spread, as found; None for those it lacks."""
    means = {figure: found[figure].mean if figure in found else None for figure in expected}
    return {
        figure: mean for figure, mean in means.items() if mean is None or not expected[figure].admits(mean)
    }


def path_of(*, small: bool) -> Path:
    """The file of expected figures, of the small or of the complete reproduction."""
    return EXPECTED / ("small.json" if small else "whole.json")


def read_expected(path: Path) -> dict[str, Figures]:
    """The expected figures of experiments, by name; an empty dictionary if there is no such file. Raises DpmfError
    for a file without expected figures."""
    try:
        held: dict[str, dict[str, list[float]]] = json.loads(path.read_text())
        return {name: {key: Figure(*pair) for key, pair in found.items()} for name, found in held.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise DpmfError(f"{path}: holds no expected figures: {error}; install dpmf again") from None
