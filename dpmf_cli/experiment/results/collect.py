"""Stored results collected into experiments, for tables and figures, and results folders compared."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.remembered import state
from dpmf_cli.core.terminal import say
from dpmf_cli.datasets.loading import expected
from dpmf_cli.datasets.spec import CsvSpec
from dpmf_cli.evaluation.curves import ERROR_CDF, REFERENCES, Experiment, Measured, Reference, Stage
from dpmf_cli.evaluation.metrics import GROUPED, RMSE
from dpmf_cli.evaluation.ranking import Comparison, compare, paired
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.folders import Collected, Ledger
from dpmf_cli.experiment.results.manifest import Ran, what_ran
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import NOISE_FREE_GRID, PER_EPSILON, TaskResult, tasks_of


def collect(ran: Ran, store: Store) -> Collected:
    """All results of what was run. If a config has `growth` but `ran` lists no portions, only the largest portion."""
    config, title, portions = ran.config, [ran.data.title], ran.portions
    one = config.model_copy(update={"held_out": 1, "runs": 1})  # its tasks are in the same folders
    made_from = state(
        {store.path(task).parent for entry in one.entries for task in tasks_of(one, entry, ran.data)}
    )
    if config.portions[-1] < 1:
        first = "first" if config.growth and config.growth.order == "timestamp" else "random"
        title.append(f"{first} {100 * config.portions[-1]:g} % of the ratings")
    if config.split == "recent":
        title.append("each user's latest held out")
    elif not isinstance(config.split, str):
        title.append(str(config.split))
    stages = [Stage(portion, *_stage(ran, store, portion.share)[:2]) for portion in portions[:-1]]
    curves, baselines, ledgers = _stage(ran, store, config.portions[-1])
    if portions:
        stages.append(Stage(portions[-1], curves, baselines))
    experiment = Experiment(
        name=config.name,
        dataset=ran.data.key,
        own=ran.data.own,
        counted=getattr(config.dataset, "minimum_ratings", None) is not None,
        title=", ".join(title),
        folds=config.folds_run,
        partition=config.folds,
        runs=config.runs,
        seed=config.seed,
        curves=tuple(each for each in curves if each.has(RMSE)),
        baselines=tuple(each for each in baselines if each.has(RMSE)),
        axis="epsilon" if config.thetas is None else "theta",
        references=tuple(
            Reference(f"{printed.title} {name}", rmse, config.split == name)
            for printed in map(REFERENCES.__getitem__, config.references)
            for name, rmse in printed.rmse.items()
        ),
        growth=tuple(stages),
        targets=tuple(config.crossings),
        refines=config.refines,
        metrics=config.metrics,
        aside=tuple(each for each in (*curves, *baselines) if not each.has(RMSE)),
        density=math.nan if isinstance(config.dataset, CsvSpec) else expected(config.dataset).density,
    )
    unchanged = not (config.plugins or store.damaged) and made_from == state(made_from)
    return Collected(experiment, ledgers, config.metric, made_from if unchanged else {})


def _stage(
    ran: Ran, store: Store, share: float
) -> tuple[tuple[Measured, ...], tuple[Measured, ...], dict[str, Ledger]]:
    """(curves, baselines, ledgers by label) of what was run on a share of the ratings."""
    curves, baselines, ledgers = [], list[Measured](), {}
    for entry in ran.config.entries:
        measured, ledger = _measured(ran, store, entry, share)
        if isinstance(entry, PrivateAlgorithm):
            curves.append(measured)
            ledgers[measured.label] = ledger
        else:
            alike = [each for each in ran.config.baselines if each.algorithm == entry.algorithm]
            both = len({getattr(each, "tuned", False) for each in alike}) > 1
            baselines.append(replace(measured, tuned=both and getattr(entry, "tuned", False)))
    return tuple(curves), tuple(baselines), ledgers


def _measured(ran: Ran, store: Store, entry: Algorithm, share: float) -> tuple[Measured, Ledger]:
    config, grid = ran.config, ran.config.grid(entry)

    def unknown(*shape: int) -> dict[str, NDArray[np.float64]]:
        """A cube without any value for everything that the config asks for."""
        asked = [each for each in config.metrics if not (entry.scores_only and each in GROUPED)]
        cubes = {metric.key: np.full(shape, np.nan) for metric in asked}
        distribution = np.full((*shape, len(config.limits)), np.nan)
        return cubes | ({ERROR_CDF: distribution} if config.limits else {})

    shape = config.folds_run, config.runs_of(entry), len(grid)
    with_noise_free = config.has_noise_free_run(entry)
    cubes, noise_free = unknown(*shape), unknown(config.folds_run, 1, 1)
    missing, last = 0, {}
    for task, known in store.read_each(tasks_of(config, entry, ran.data, portions=(share,))):
        missing += any(epsilon not in known for epsilon in task.epsilons)
        is_noise_free = with_noise_free and task.epsilons == NOISE_FREE_GRID
        for epsilon in (each for each in task.epsilons if each in known):
            result, place = (
                known[epsilon],
                (task.cut.fold, task.run, 0 if is_noise_free else grid.index(epsilon)),
            )
            for key, value in _values(config, result, result.epsilons.index(epsilon)):
                if not is_noise_free and key not in cubes:
                    cubes[key] = np.full(shape, np.nan)
                if key in (of := noise_free if is_noise_free else cubes):
                    of[key][place] = value
            if not is_noise_free:
                last[epsilon] = result
    thetas = config.thetas_of(entry)
    nothing = np.full(len(grid), np.inf)  # a baseline hides nothing, whether or not it keeps a ledger
    measured = Measured(
        algorithm=entry.algorithm,
        label=entry.name,
        line=entry.line,
        epsilons=np.array(grid),
        rmse=cubes.pop(RMSE.key),
        claimed=nothing,
        provable=nothing,
        missing=missing,
        joint=entry.joint,
        swept=None if entry.swept is None else (entry.swept, float(entry.swept_value)),
        thetas=None if thetas is None else np.array(thetas),
        noise_free=noise_free if with_noise_free else None,
        limits=config.limits,
        others=cubes,
        metric=config.metrics[1] if entry.scores_only else RMSE,
        scores_only=entry.scores_only,
    )
    if isinstance(entry, PrivateAlgorithm):
        measured = replace(
            measured,
            claimed=_at(grid, last, "claimed"),
            provable=_at(grid, last, "provable"),
            neighbours=entry.neighbours.value,
            mode=entry.mode.value,
            delta=entry.spends_delta,
            protects=entry.protects,
            source=str(entry.source),
        )
    return measured, _ledger(grid, last)


def _values(config: ExperimentConfig, result: TaskResult, at: int) -> Iterator[tuple[str, Any]]:
    """Everything that a task measured at one place of its grid, by name."""
    columns: dict[str, Any] = {RMSE.key: result.rmse, **result.others, ERROR_CDF: result.error_cdf}
    columns |= asdict(result.records) if result.records else {}
    yield from ((key, column[at]) for key, column in columns.items() if column)
    if config.ranking:
        yield from zip((metric.key for metric in config.ranking.metrics), result.ranking[at], strict=True)


def _at(grid: tuple[float, ...], results: dict[float, TaskResult], key: str) -> NDArray[np.float64]:
    """(E,) the field `key` of the result at each ε, NaN where there is no result."""
    return np.array(
        [getattr(results[e], key)[results[e].epsilons.index(e)] if e in results else np.nan for e in grid]
    )


def _ledger(grid: tuple[float, ...], results: dict[float, TaskResult]) -> Ledger:
    """The steps of an algorithm's ledger, with the values for each ε joined over the fits of the grid."""
    steps: dict[tuple[str, ...], dict[str, Any]] = {}
    for epsilon in (each for each in grid if each in results):
        result = results[epsilon]
        at = result.epsilons.index(epsilon)
        for entry in result.ledger:
            numbers = [key for key in PER_EPSILON if key in entry]
            empty = {**entry, "epsilons": [], **{key: [] for key in numbers}}
            step = steps.setdefault((entry["step"], *numbers), empty)
            step["epsilons"].append(epsilon)
            for key in numbers:
                step[key].append(float(entry[key][at]))
    return list(steps.values())


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
    """The comparison of two results folders. Raises DpmfError where none of their errors can be compared."""
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
    for key in ("split", "folds", "seed"):
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
    Entries are paired as their curves are. For an entry without a counterpart only its name is given."""
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
    """The leaves in which two pieces of plain data differ; a list counts as one leaf."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in dict.fromkeys((*a, *b)):
            yield from _different(f"{path}.{key}" if path else key, a.get(key), b.get(key))
    elif a != b:
        yield Setting(path, a, b)
