"""Gathers what the store knows of a config into an experiment: the way from results to figures."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.base import Algorithm, PrivateAlgorithm
from dpmf_cli.config import ExperimentConfig
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.plan import tasks_of
from dpmf_cli.store import Store
from dpmf_cli.tasks import TaskResult


@dataclass(frozen=True)
class Collected:
    """An experiment, and the ledger of each of its curves, by its label: steps as plain data."""

    experiment: Experiment
    ledgers: dict[str, list[dict[str, Any]]]


def collect(config: ExperimentConfig, *, dataset: str, title: str, checksum: str, store: Store) -> Collected:
    """All results of a config on the data set with that checksum."""
    curves, baselines, ledgers = [], [], {}
    for entry in config.entries:
        measured, ledger = _measured(config, entry, dataset, checksum, store)
        if isinstance(entry, PrivateAlgorithm):
            curves.append(measured)
            ledgers[measured.label] = ledger
        else:
            baselines.append(measured)
    experiment = Experiment(
        name=config.name,
        dataset=dataset,
        title=title,
        folds=config.folds_run,
        partition=config.folds,
        runs=config.runs,
        seed=config.seed,
        curves=tuple(curves),
        baselines=tuple(baselines),
    )
    return Collected(experiment, ledgers)


def _measured(
    config: ExperimentConfig, entry: Algorithm, dataset: str, checksum: str, store: Store
) -> tuple[Measured, list[dict[str, Any]]]:
    grid = config.grid(entry)
    rmse = np.full((config.folds_run, config.runs_of(entry), len(grid)), np.nan)
    missing, last = 0, {}
    for task in tasks_of(config, entry, dataset, checksum):
        known = store.read(task)
        missing += any(epsilon not in known for epsilon in grid)
        for index, epsilon in enumerate(grid):
            if epsilon in known:
                result = known[epsilon]
                rmse[task.fold, task.run, index] = result.rmse[result.epsilons.index(epsilon)]
                last[epsilon] = result
    variant = (
        (entry.neighbours.value, entry.mode.value) if isinstance(entry, PrivateAlgorithm) else ("none",) * 2
    )
    measured = Measured(
        algorithm=entry.algorithm,
        label=entry.name,
        epsilons=np.array(grid),
        rmse=rmse,
        claimed=_at(grid, last, "claimed"),
        provable=_at(grid, last, "provable"),
        neighbours=variant[0],
        mode=variant[1],
        missing=missing,
        joint=entry.joint,
        swept=None if entry.swept is None else (entry.swept, float(getattr(entry, entry.swept))),
    )
    return measured, _ledger(grid, last)


def _at(grid: tuple[float, ...], results: dict[float, TaskResult], key: str) -> NDArray[np.float64]:
    """(E,) a number of the results at each ε, NaN where there is none."""
    return np.array(
        [getattr(results[e], key)[results[e].epsilons.index(e)] if e in results else np.nan for e in grid]
    )


def _ledger(grid: tuple[float, ...], results: dict[float, TaskResult]) -> list[dict[str, Any]]:
    """The steps of an algorithm's ledger, their claimed and provable ε joined over the fits of the grid."""
    steps: dict[str, dict[str, Any]] = {}
    for epsilon in grid:
        result = results.get(epsilon)
        if result is None:
            continue
        at = result.epsilons.index(epsilon)
        for entry in result.ledger:
            step = steps.setdefault(entry["step"], {**entry, "epsilons": [], "claimed": [], "provable": []})
            step["epsilons"].append(epsilon)
            step["claimed"].append(float(entry["claimed"][at]))
            step["provable"].append(float(entry["provable"][at]))
    return list(steps.values())
