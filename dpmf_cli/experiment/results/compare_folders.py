"""Compares two results folders: whether they can be compared at all, how their configs differ, and their errors."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.terminal import say
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.ranking import Comparison, compare, paired
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.collect import collect
from dpmf_cli.experiment.results.manifest import Ran, what_ran
from dpmf_cli.experiment.results.store import Store


@dataclass(frozen=True)
class Setting:
    """A setting in which two configs differ, with its value in each; None where a config does not have it."""

    setting: str
    a: Any
    b: Any


@dataclass(frozen=True)
class Compared:
    """Two experiments: their names and title, the settings in which they differ, and the differences of errors."""

    names: tuple[str, str]
    title: str
    settings: tuple[Setting, ...]
    comparison: Comparison
    experiments: tuple[Experiment, Experiment]


def compare_folders(folder_a: Path, folder_b: Path) -> Compared:
    """Compares two results folders. Raises DpmfError where none of their errors can be compared."""
    if folder_a.resolve() == folder_b.resolve():
        why = "a config that is changed and run again replaces its tables"
        raise DpmfError(f"both are {folder_a}/; {why}: give the new config a `name` of its own and run both")
    a, b = (what_ran(folder) for folder in (folder_a, folder_b))
    if reasons := "".join(f"  {reason}\n" for reason in _incomparable(a, b)):
        which = f"{folder_a} (A) and {folder_b} (B)"
        what = "do not train and test on the same ratings, so nothing in them can be compared"
        raise DpmfError(f"{which} {what}:\n{reasons}give both configs the same values, and run them")
    first, second = (
        collect(ran, Store(folder.parent, say)).experiment for ran, folder in ((a, folder_a), (b, folder_b))
    )
    names, settings = (a.config.name, b.config.name), tuple(different_settings(a.config, b.config))
    return Compared(names, first.title, settings, compare(first, second), (first, second))


def _incomparable(a: Ran, b: Ran) -> Iterator[str]:
    """The reasons why two experiments have different training and test ratings."""
    if a.data.key != b.data.key:
        yield f"dataset: {a.data.key} (A), {b.data.key} (B)"
    elif a.data.checksums != b.data.checksums:
        yield f"dataset: both are called {a.data.key}, but their ratings differ"
    for key in ("test", "folds", "seed"):
        ours, theirs = getattr(a.config, key), getattr(b.config, key)
        if ours != theirs:
            yield f"{key}: {ours} (A), {theirs} (B)"
    shares = [
        (config.growth.order, config.portions[-1]) if config.growth and config.portions[-1] < 1 else None
        for config in (a.config, b.config)
    ]
    if shares[0] != shares[1]:
        yield "growth: their largest portions of the ratings differ"


def different_settings(a: ExperimentConfig, b: ExperimentConfig) -> Iterator[Setting]:
    """The settings in which two resolved configs differ, defaults included: `algorithms[PGE].budget.item_averages`.

    Entries are paired as their curves are. For an entry without a counterpart only its name is given.
    """
    plain = a.resolved(), b.resolved()
    for data in plain:
        for key in ("name", "baselines", "algorithms"):
            del data[key]
    yield from _different("", *plain)
    for key in ("baselines", "algorithms"):
        ours: list[Algorithm] = getattr(a, key)
        theirs: list[Algorithm] = getattr(b, key)
        pairs = paired(*([(entry.name, entry.algorithm) for entry in each] for each in (ours, theirs)))
        for at_a, at_b in pairs:
            one, other = ours[at_a], theirs[at_b]
            yield from _different(f"{key}[{one.name}]", one.parameters(), other.parameters())
        for side, entries, there in ((0, ours, ("there", None)), (1, theirs, (None, "there"))):
            common = {pair[side] for pair in pairs}
            alone = (entry for at, entry in enumerate(entries) if at not in common)
            yield from (Setting(f"{key}[{entry.name}]", *there) for entry in alone)


def _different(path: str, a: Any, b: Any) -> Iterator[Setting]:
    """The leaves in which two pieces of plain data differ. A list counts as one leaf."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys((*a, *b)):
            yield from _different(f"{path}.{key}" if path else key, a.get(key), b.get(key))
    elif a != b:
        yield Setting(path, a, b)
