"""Gathers the stored results of a config into an experiment, from which tables and figures are made."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.evaluation.curves import ERROR_CDF, Experiment, Growth, Measured, Reference, Stage
from dpmf_cli.evaluation.metrics import RMSE
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.config.keys import REFERENCES
from dpmf_cli.experiment.results.manifest import Ran
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import PER_EPSILON, TWIN_GRID, TaskResult, tasks_of

Ledger = list[dict[str, Any]]
"""The steps of a ledger as plain data."""


@dataclass(frozen=True)
class Collected:
    """An experiment, and the ledger of each of its curves by label, with steps as plain data."""

    experiment: Experiment
    ledgers: dict[str, Ledger]
    metric: str = RMSE.key

    @property
    def shown(self) -> Experiment:
        """The experiment, showing the metric that its config selects. `experiment` itself shows RMSE."""
        return self.experiment.showing(self.metric)


def collect(ran: Ran, store: Store) -> Collected:
    """All results of what was run. If a config has `growth` but `ran` lists no portions, only the largest portion."""
    config, title, portions = ran.config, ran.data.title, ran.portions
    source = _Source(ran, store)
    stages = [Stage(portion, *source.stage(portion.share)[:2]) for portion in portions[:-1]]
    largest = config.portions[-1]
    curves, baselines, ledgers = source.stage(largest)
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
        references=_references(config),
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


def _references(config: ExperimentConfig) -> tuple[Reference, ...]:
    """The printed errors that a config asks for, one for each test set."""
    return tuple(
        Reference(f"{printed.title} {name}", rmse, config.test == name)
        for printed in map(REFERENCES.__getitem__, config.references)
        for name, rmse in printed.rmse.items()
    )


@dataclass(frozen=True)
class _Source:
    """Reads the results of what was run from a store."""

    ran: Ran
    store: Store

    def stage(self, share: float) -> tuple[tuple[Measured, ...], tuple[Measured, ...], dict[str, Ledger]]:
        """(curves, baselines, ledgers by label) on a share of the ratings."""
        curves, baselines, ledgers = [], [], {}
        for entry in self.ran.config.entries:
            measured, ledger = self._measured(entry, share)
            if isinstance(entry, PrivateAlgorithm):
                curves.append(measured)
                ledgers[measured.label] = ledger
            else:
                baselines.append(measured)
        return tuple(curves), tuple(baselines), ledgers

    def _measured(self, entry: Algorithm, share: float) -> tuple[Measured, Ledger]:
        config, grid = self.ran.config, self.ran.config.grid(entry)
        shape = config.folds_run, config.runs_of(entry), len(grid)
        with_twin = config.twins and entry.private
        cubes, twin = self._unknown(shape), self._unknown((config.folds_run, 1, 1))
        missing, last = 0, {}
        for task, known in self.store.read_each(tasks_of(config, entry, self.ran.data, portions=(share,))):
            missing += any(epsilon not in known for epsilon in task.epsilons)
            is_twin = with_twin and task.epsilons == TWIN_GRID
            for epsilon in (each for each in task.epsilons if each in known):
                result, place = known[epsilon], (task.fold, task.run, 0 if is_twin else grid.index(epsilon))
                for key, value in self._values(result, result.epsilons.index(epsilon)):
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
                source=entry.source,
            )
        return measured, _ledger(grid, last)

    def _unknown(self, shape: tuple[int, ...]) -> dict[str, NDArray[np.float64]]:
        """A cube without any value for everything that the config asks for."""
        limits = self.ran.config.limits
        cubes = {metric.key: np.full(shape, np.nan) for metric in self.ran.config.metrics}
        return cubes | ({ERROR_CDF: np.full((*shape, len(limits)), np.nan)} if limits else {})

    def _values(self, result: TaskResult, at: int) -> Iterator[tuple[str, Any]]:
        """Everything that a task measured at one place of its grid, by name."""
        columns: dict[str, Sequence[Any]] = {
            RMSE.key: result.rmse,
            **result.others,
            ERROR_CDF: result.error_cdf,
        }
        yield from ((key, column[at]) for key, column in columns.items() if column)
        if result.ranking:
            keys = (metric.key for metric in self.ran.config.metrics[1:])
            yield from zip(keys, result.ranking[at], strict=True)
        if result.records:
            yield from ((key, column[at]) for key, column in asdict(result.records).items())


def _at(grid: tuple[float, ...], results: dict[float, TaskResult], key: str) -> NDArray[np.float64]:
    """(E,) the field `key` of the result at each ε, NaN where there is no result."""
    return np.array(
        [getattr(results[e], key)[results[e].epsilons.index(e)] if e in results else np.nan for e in grid]
    )


def _ledger(grid: tuple[float, ...], results: dict[float, TaskResult]) -> Ledger:
    """The steps of an algorithm's ledger, with the values for each ε joined over the fits of the grid."""
    steps: dict[tuple[str, ...], dict[str, Any]] = {}
    for epsilon in grid:
        result = results.get(epsilon)
        if result is None:
            continue
        at = result.epsilons.index(epsilon)
        for entry in result.ledger:
            numbers = [key for key in PER_EPSILON if key in entry]
            step = steps.setdefault(
                (entry["step"], *numbers), {**entry, "epsilons": [], **{key: [] for key in numbers}}
            )
            step["epsilons"].append(epsilon)
            for key in numbers:
                step[key].append(float(entry[key][at]))
    return list(steps.values())
