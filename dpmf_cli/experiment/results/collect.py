"""Gathers the stored results of a config into an experiment, from which tables and figures are made."""

from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.evaluation.curves import ERROR_CDF, Experiment, Growth, Measured, Reference, Stage
from dpmf_cli.evaluation.metrics import RMSE
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.config.keys import REFERENCES
from dpmf_cli.experiment.results.collected import Collected as Collected
from dpmf_cli.experiment.results.collected import Ledger
from dpmf_cli.experiment.results.manifest import Ran
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import PER_EPSILON, TWIN_GRID, TaskResult, tasks_of


def collect(ran: Ran, store: Store) -> Collected:
    """All results of what was run. If a config has `growth` but `ran` lists no portions, only the largest portion."""
    config, title, portions = ran.config, ran.data.title, ran.portions
    stages = [Stage(portion, *_stage(ran, store, portion.share)[:2]) for portion in portions[:-1]]
    curves, baselines, ledgers = _stage(ran, store, config.portions[-1])
    if portions:
        stages.append(Stage(portions[-1], curves, baselines))
    experiment = Experiment(
        name=config.name,
        dataset=ran.data.key,
        own=ran.data.own,
        title=", ".join([title, *_cut_in_words(config)]),
        folds=config.folds_run,
        partition=config.folds,
        runs=config.runs,
        seed=config.seed,
        curves=curves,
        baselines=tuple(each for each in baselines if each.has(RMSE)),
        axis=config.axis,
        references=tuple(
            Reference(f"{printed.title} {name}", rmse, config.test == name)
            for printed in map(REFERENCES.__getitem__, config.references)
            for name, rmse in printed.rmse.items()
        ),
        growth=Growth(config.growth.order, tuple(stages)) if config.growth and portions else None,
        targets=tuple(config.crossings),
        refines=config.refines,
        metrics=config.metrics,
        aside=tuple(each for each in baselines if not each.has(RMSE)),
    )
    return Collected(experiment, ledgers, config.metric)


def _cut_in_words(config: ExperimentConfig) -> Iterator[str]:
    """Words for the title where not all ratings are used, or not all are held out in turn."""
    if config.portions[-1] < 1:
        first = "first" if config.growth and config.growth.order == "timestamp" else "random"
        yield f"{first} {100 * config.portions[-1]:g} % of the ratings"
    if config.test == "recent":
        yield "each user's latest held out"


def _stage(
    ran: Ran, store: Store, share: float
) -> tuple[tuple[Measured, ...], tuple[Measured, ...], dict[str, Ledger]]:
    """(curves, baselines, ledgers by label) of what was run on a share of the ratings."""
    curves, baselines, ledgers = [], [], {}
    for entry in ran.config.entries:
        measured, ledger = _measured(ran, store, entry, share)
        if isinstance(entry, PrivateAlgorithm):
            curves.append(measured)
            ledgers[measured.label] = ledger
        else:
            baselines.append(measured)
    return tuple(curves), tuple(baselines), ledgers


def _measured(ran: Ran, store: Store, entry: Algorithm, share: float) -> tuple[Measured, Ledger]:
    config, grid = ran.config, ran.config.grid(entry)

    def unknown(*shape: int) -> dict[str, NDArray[np.float64]]:
        """A cube without any value for everything that the config asks for."""
        cubes = {metric.key: np.full(shape, np.nan) for metric in config.metrics}
        distribution = np.full((*shape, len(config.limits)), np.nan)
        return cubes | ({ERROR_CDF: distribution} if config.limits else {})

    shape = config.folds_run, config.runs_of(entry), len(grid)
    with_twin = config.twins and entry.private
    cubes, twin = unknown(*shape), unknown(config.folds_run, 1, 1)
    missing, last = 0, {}
    for task, known in store.read_each(tasks_of(config, entry, ran.data, portions=(share,))):
        missing += any(epsilon not in known for epsilon in task.epsilons)
        is_twin = with_twin and task.epsilons == TWIN_GRID
        for epsilon in (each for each in task.epsilons if each in known):
            result, place = known[epsilon], (task.fold, task.run, 0 if is_twin else grid.index(epsilon))
            for key, value in _values(config, result, result.epsilons.index(epsilon)):
                if not is_twin and key not in cubes:
                    cubes[key] = np.full(shape, np.nan)
                if key in (of := twin if is_twin else cubes):
                    of[key][place] = value
            if not is_twin:
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
        twin=twin if with_twin else None,
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
    if result.ranking:
        yield from zip((metric.key for metric in config.metrics[1:]), result.ranking[at], strict=True)


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
