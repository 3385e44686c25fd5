"""Experiments gathered from the store."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf_cli.algorithms.shared.sample_fits import RecordCosts
from dpmf_cli.datasets import DataIdentity
from dpmf_cli.datasets.loading import expected
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.collect import collect
from dpmf_cli.experiment.results.folders import Collected
from dpmf_cli.experiment.results.manifest import Ran
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import NOISE_FREE_GRID, Task, TaskResult, tasks_of
from dpmf_cli.report.tables.layout import draw
from dpmf_cli.report.tables.ledgers import records_table
from tests.results.test_store import STEP

DATA = DataIdentity("ml-100k", "MovieLens 100K", "c")
CONFIG = ExperimentConfig(
    name="x",
    dataset="ml-100k",
    folds=2,
    runs=2,
    epsilons=[1.0, 2.0],
    baselines=["ia"],
    algorithms=[{"algorithm": "pge"}, {"algorithm": "pge", "label": "again", "clip_predictions": True}],
)


def fill(store: Store, leave_out: tuple[int, int] | None = None) -> None:
    for entry in CONFIG.entries:
        for task in tasks_of(CONFIG, entry, DATA):
            if (task.cut.fold, task.run) == leave_out:
                continue
            rmse = tuple(task.cut.fold + 10 * task.run + 100 * epsilon for epsilon in task.epsilons)
            provable = tuple(2 * epsilon for epsilon in task.epsilons)
            step = {**STEP, "claimed": task.epsilons, "provable": ["inf"] * len(task.epsilons)}
            store.write(task, TaskResult(task.epsilons, rmse, task.epsilons, provable, (step,)))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def write(store: Store, task: Task, epsilons: tuple[float, ...], rmse: float = 0.9, **more: Any) -> None:
    """Writes a task's result on a grid."""
    whole = TaskResult(epsilons, (rmse,) * len(epsilons), epsilons, epsilons, (), **more)
    store.write(replace(task, epsilons=epsilons), whole)


def gather(store: Store, config: ExperimentConfig = CONFIG) -> Collected:
    return collect(Ran(config, DATA), store)


TASKS = list(tasks_of(CONFIG, CONFIG.algorithms[0], DATA))


def test_every_number_is_in_its_place(store: Store) -> None:
    fill(store)
    found = gather(store)
    assert [curve.label for curve in found.experiment.curves] == ["PGE", "again"]
    assert found.experiment.density == expected(CONFIG.dataset).density  # type: ignore[arg-type]
    curve = found.experiment.curves[0]
    assert curve.rmse.tolist() == [[[100, 200], [110, 210]], [[101, 201], [111, 211]]]
    assert (curve.claimed.tolist(), curve.provable.tolist()) == ([1, 2], [2, 4])
    assert (curve.neighbours, curve.mode, curve.missing) == ("bounded", "published", 0)
    (baseline,) = found.experiment.baselines
    assert baseline.rmse.shape == (2, 1, 1)
    assert baseline.is_baseline
    numbers = {"epsilons": [1.0, 2.0], "claimed": [1.0, 2.0], "provable": [float("inf")] * 2}
    assert found.ledgers["PGE"] == [{**STEP, **numbers}]


def test_what_is_missing_is_counted_and_never_a_number(store: Store) -> None:
    fill(store, leave_out=(1, 0))
    experiment = gather(store).experiment
    assert [curve.missing for curve in (*experiment.curves, *experiment.baselines)] == [1, 1, 1]
    assert np.isnan(experiment.curves[0].mean()).all()


def test_numbers_of_refined_grids_are_joined_step_by_step(store: Store) -> None:
    for epsilon in (2.0, 1.0):
        step = {**STEP, "claimed": [epsilon], "provable": [epsilon], "mu": [epsilon / 2]}
        for task in TASKS:
            whole = TaskResult((epsilon,), (0.9,), (epsilon,), (epsilon,), (step,))
            store.write(replace(task, epsilons=(epsilon,)), whole)
    (joined,) = gather(store).ledgers["PGE"]
    assert (joined["epsilons"], joined["provable"], joined["mu"]) == ([1.0, 2.0], [1.0, 2.0], [0.5, 1.0])


def test_a_fit_without_noise_is_the_noise_free_run_and_no_point_of_the_curve(store: Store) -> None:
    config = CONFIG.model_copy(update={"twins": True})
    fill(store)
    tasks = [task for entry in config.algorithms for task in tasks_of(config, entry, DATA)]
    clean = [task for task in tasks if task.epsilons == NOISE_FREE_GRID]
    assert [(task.cut.fold, task.run) for task in clean] == [(0, 0), (1, 0)] * 2
    for task in clean[:3]:
        write(store, task, NOISE_FREE_GRID, task.cut.fold / 10)
    found = gather(store, config).experiment
    whole, missing = found.curves
    assert whole.noise_free is not None
    assert missing.noise_free is not None
    assert whole.noise_free["rmse"].ravel().tolist() == [0.0, 0.1]
    assert (whole.missing, whole.epsilons.tolist()) == (0, [1.0, 2.0])
    assert (missing.missing, np.isnan(missing.noise_free["rmse"]).ravel().tolist()) == (1, [False, True])
    assert found.baselines[0].noise_free is None


def test_what_records_spent_is_the_worst_of_all_fits_and_what_was_kept_the_mean(store: Store) -> None:
    for task in TASKS:
        if (task.cut.fold, task.run) != (1, 1):
            n = task.cut.fold + 2 * task.run  # 0, 1 and 2
            columns = [(n + shift, n + shift + 10.0) for shift in (5.0, 0.0, 1.0, 2.0, 3.0)]
            write(store, task, (1.0, 2.0), records=RecordCosts(*columns))
    first, second = gather(store).experiment.curves
    assert not second.records
    found = {key: values.tolist() for key, values in first.records.items()}
    names = ("threshold", "kept", "least", "median", "largest")
    assert found == dict(zip(names, ([7, 17], [1, 11], [1, 11], [3, 13], [5, 15]), strict=True))


def test_records_of_results_that_are_not_there_are_left_open(store: Store) -> None:
    for task in TASKS:
        write(store, task, (2.0,), records=RecordCosts((2.0,), (0.5,), (0.1,), (0.2,), (math.inf,)))
    table = records_table(gather(store).experiment.curves)
    assert draw(table, "csv").splitlines()[1:] == ["PGE,1.0,,,,,", "PGE,2.0,2.0,0.5,0.1,0.2,inf"]
    ((absent, found),) = (group.rows for group in table.groups)
    assert absent == ("1.00", "–", "–", "–", "–", "–")
    assert found == ("2.00", "2.00", "50.0 %", "0.100", "0.200", "∞")


@pytest.mark.parametrize(("grid", "axis"), [({"epsilons": [1.0]}, "epsilon"), ({"thetas": [0.5]}, "theta")])
def test_an_experiment_has_the_axis_of_its_grid(tmp_path: Path, grid: dict[str, Any], axis: str) -> None:
    given = {"name": "x", "dataset": "ml-100k", "baselines": ["ia"], "algorithms": [{"algorithm": "mm_knn"}]}
    config = ExperimentConfig.model_validate({**given, **grid})
    assert collect(Ran(config, DATA, ()), Store(tmp_path, warn=print)).experiment.axis == axis
