"""Experiments gathered from the store."""

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpmf_cli.algorithms.shared.model import RecordCosts
from dpmf_cli.datasets import DataIdentity
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.collect import collect
from dpmf_cli.experiment.results.manifest import Ran
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import TWIN_GRID, TaskResult, tasks_of
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
            if (task.fold, task.run) == leave_out:
                continue
            rmse = tuple(task.fold + 10 * task.run + 100 * epsilon for epsilon in task.epsilons)
            provable = tuple(2 * epsilon for epsilon in task.epsilons)
            step = {**STEP, "claimed": task.epsilons, "provable": ["inf"] * len(task.epsilons)}
            store.write(task, TaskResult(task.epsilons, rmse, task.epsilons, provable, (step,)))


def gather(store: Store):  # type: ignore[no-untyped-def]
    return collect(Ran(CONFIG, DATA), store)


def test_every_number_is_in_its_place(tmp_path: Path) -> None:
    fill(Store(tmp_path))
    experiment = gather(Store(tmp_path)).experiment
    assert [curve.label for curve in experiment.curves] == ["PGE", "again"]
    curve = experiment.curves[0]
    assert curve.rmse.tolist() == [[[100, 200], [110, 210]], [[101, 201], [111, 211]]]
    assert curve.claimed.tolist() == [1, 2]
    assert curve.provable.tolist() == [2, 4]
    assert (curve.neighbours, curve.mode, curve.missing) == ("bounded", "published", 0)
    (baseline,) = experiment.baselines
    assert baseline.rmse.shape == (2, 1, 1)
    assert baseline.is_baseline


def test_what_is_missing_is_counted_and_never_a_number(tmp_path: Path) -> None:
    fill(Store(tmp_path), leave_out=(1, 0))
    experiment = gather(Store(tmp_path)).experiment
    assert [curve.missing for curve in (*experiment.curves, *experiment.baselines)] == [1, 1, 1]
    assert np.isnan(experiment.curves[0].mean()).all()


def test_ledgers_keep_claimed_and_provable_apart(tmp_path: Path) -> None:
    fill(Store(tmp_path))
    assert gather(Store(tmp_path)).ledgers["PGE"] == [
        {**STEP, "epsilons": [1.0, 2.0], "claimed": [1.0, 2.0], "provable": [float("inf")] * 2}
    ]


def test_numbers_of_refined_grids_are_joined_step_by_step(tmp_path: Path) -> None:
    store, entry = Store(tmp_path), CONFIG.algorithms[0]
    for epsilons in ((2.0,), (1.0,)):
        for task in tasks_of(CONFIG, entry, DATA):
            numbers = {key: list(epsilons) for key in ("claimed", "provable")}
            step = {**STEP, **numbers, "mu": [epsilon / 2 for epsilon in epsilons]}
            rmse = (0.9,) * len(epsilons)
            store.write(
                replace(task, epsilons=epsilons), TaskResult(epsilons, rmse, epsilons, epsilons, (step,))
            )
    (step,) = gather(store).ledgers["PGE"]
    assert (step["epsilons"], step["provable"], step["mu"]) == ([1.0, 2.0], [1.0, 2.0], [0.5, 1.0])


def test_a_fit_without_noise_is_the_twin_and_no_point_of_the_curve(tmp_path: Path) -> None:
    config = CONFIG.model_copy(update={"twins": True})
    store = Store(tmp_path)
    fill(store)
    tasks = [task for entry in config.algorithms for task in tasks_of(config, entry, DATA)]
    twins = [task for task in tasks if task.epsilons == TWIN_GRID]
    assert [(task.fold, task.run) for task in twins] == [(0, 0), (1, 0)] * 2
    infinite = (np.inf,)
    for task in twins[:3]:
        store.write(task, TaskResult(infinite, (task.fold / 10,), infinite, infinite, ()))
    found = collect(Ran(config, DATA), store).experiment
    whole, missing = found.curves
    assert whole.twin is not None
    assert missing.twin is not None
    assert (whole.twin["rmse"].ravel().tolist(), whole.missing, whole.epsilons.tolist()) == (
        [0.0, 0.1],
        0,
        [1.0, 2.0],
    )
    assert (missing.missing, np.isnan(missing.twin["rmse"]).ravel().tolist()) == (1, [False, True])
    assert found.baselines[0].twin is None


def test_the_resolved_config_of_a_manifest_is_read_back() -> None:
    assert ExperimentConfig.model_validate(json.loads(json.dumps(CONFIG.resolved()))) == CONFIG


def test_what_records_spent_is_the_worst_of_all_fits_and_what_was_kept_the_mean(tmp_path: Path) -> None:
    store, entry = Store(tmp_path), CONFIG.algorithms[0]
    for task in tasks_of(CONFIG, entry, DATA):
        if (task.fold, task.run) != (1, 1):
            n = task.fold + 2 * task.run  # 0, 1 and 2
            columns = [(n + shift, n + shift + 10.0) for shift in (5.0, 0.0, 1.0, 2.0, 3.0)]
            store.write(
                task, TaskResult((1.0, 2.0), (1, 1), (1, 2), (1, 2), (), records=RecordCosts(*columns))
            )
    first, second = gather(store).experiment.curves
    assert not second.records
    assert {key: values.tolist() for key, values in first.records.items()} == {
        "threshold": [7, 17],
        "kept": [1, 11],
        "least": [1, 11],
        "median": [3, 13],
        "largest": [5, 15],
    }


def test_records_of_results_that_are_not_there_are_left_open(tmp_path: Path) -> None:
    store, entry = Store(tmp_path), CONFIG.algorithms[0]
    for task in tasks_of(CONFIG, entry, DATA):
        costs = RecordCosts((2.0,), (0.5,), (0.1,), (0.2,), (math.inf,))
        store.write(replace(task, epsilons=(2.0,)), TaskResult((2.0,), (1,), (2,), (2,), (), records=costs))
    curves = gather(store).experiment.curves
    assert draw(records_table(curves), "csv").splitlines()[1:] == [
        "PGE,1.0,,,,,",
        "PGE,2.0,2.0,0.5,0.1,0.2,inf",
    ]
    ((absent, found),) = (group.rows for group in records_table(curves).groups)
    assert absent == ("1.00", "–", "–", "–", "–", "–")
    assert found == ("2.00", "2.00", "50.0 %", "0.100", "0.200", "∞")
