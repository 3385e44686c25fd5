"""Gathers the stored results of a config into an experiment, from which tables and figures are made."""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.config import ExperimentConfig
from dpmf_cli.evaluation.curves import Experiment, Growth, Measured, Records, Reference, Stage
from dpmf_cli.evaluation.metrics import RMSE
from dpmf_cli.papers.printed import printed_reference
from dpmf_cli.results.manifest import Ran
from dpmf_cli.results.store import Store
from dpmf_cli.results.task import PER_EPSILON, TWIN_GRID, TaskResult, tasks_of

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
        for printed in map(printed_reference, config.references)
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
        rmse = np.full((config.folds_run, config.runs_of(entry), len(grid)), np.nan)
        mae = np.full_like(rmse, np.nan)
        twin = np.full(config.folds_run, np.nan) if config.twins and entry.private else None
        fractions = np.full((*rmse.shape, len(config.limits)), np.nan)
        clean = np.full((config.folds_run, len(config.limits)), np.nan)
        metrics = config.metrics[1:]
        ranked, twin_ranked = (
            {metric.key: np.full(shape, np.nan) for metric in metrics}
            for shape in (rmse.shape, config.folds_run)
        )
        missing, last = 0, {}
        costs: dict[float, list[dict[str, float]]] = {epsilon: [] for epsilon in grid}
        for task, known in self.store.read_each(tasks_of(config, entry, self.ran.data, portions=(share,))):
            missing += any(epsilon not in known for epsilon in task.epsilons)
            is_twin = twin is not None and task.epsilons == TWIN_GRID
            for epsilon in (each for each in task.epsilons if each in known):
                result = known[epsilon]
                at = result.epsilons.index(epsilon)
                for metric, value in zip(metrics, result.ranking[at] if metrics else (), strict=True):
                    if is_twin:
                        twin_ranked[metric.key][task.fold] = value
                    else:
                        ranked[metric.key][task.fold, task.run, grid.index(epsilon)] = value
                if twin is not None and is_twin:
                    twin[task.fold] = result.rmse[at]
                    clean[task.fold] = result.error_cdf[at] if config.limits else ()
                    continue
                place = task.fold, task.run, grid.index(epsilon)
                last[epsilon] = result
                if entry.scores_only:
                    continue
                rmse[place] = result.rmse[at]
                mae[place] = result.mae[at] if result.mae else np.nan
                fractions[place] = result.error_cdf[at] if config.limits else ()
                if result.records:
                    columns = asdict(result.records).items()
                    costs[epsilon].append({key: column[at] for key, column in columns})
        thetas = config.thetas_of(entry)
        measured = Measured(
            algorithm=entry.algorithm,
            label=entry.name,
            line=entry.line,
            epsilons=np.array(grid),
            rmse=rmse,
            claimed=_at(grid, last, "claimed"),
            provable=_at(grid, last, "provable"),
            missing=missing,
            joint=entry.joint,
            swept=None if entry.swept is None else (entry.swept, float(entry.swept_value)),
            thetas=None if thetas is None else np.array(thetas),
            twin=twin,
            limits=config.limits,
            error_cdf=fractions if config.limits else None,
            twin_cdf=clean if config.limits and twin is not None else None,
            records=_records(costs),
            mae=mae,
            ranked=ranked,
            twin_ranked={} if twin is None else twin_ranked,
            metric=metrics[0] if entry.scores_only else RMSE,
            scores_only=entry.scores_only,
        )
        if isinstance(entry, PrivateAlgorithm):
            measured = replace(
                measured,
                neighbours=entry.neighbours.value,
                mode=entry.mode.value,
                delta=entry.spends_delta,
                protects=entry.protects,
                source=entry.source,
            )
        else:  # a baseline hides nothing, whether or not it keeps a ledger
            nothing = np.full(len(grid), np.inf)
            measured = replace(measured, claimed=nothing, provable=nothing)
        return measured, _ledger(grid, last)


def _records(costs: dict[float, list[dict[str, float]]]) -> Records | None:
    """What personalised privacy cost the records at each ε, over folds and runs; None if no fit has such costs."""
    if not any(costs.values()):
        return None
    over: dict[str, Callable[[list[float]], Any]] = {
        "threshold": max,
        "kept": np.mean,
        "least": min,
        "median": np.median,
        "largest": max,
    }
    columns = {
        key: np.array([of([fit[key] for fit in fits]) if fits else np.nan for fits in costs.values()])
        for key, of in over.items()
    }
    return Records(**columns)


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
