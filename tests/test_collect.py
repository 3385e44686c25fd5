"""What is gathered from the store, and what a task measures."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from dpmf_cli.collect import collect
from dpmf_cli.config import ExperimentConfig
from dpmf_cli.plan import make_plan, tasks_of
from dpmf_cli.store import Store
from dpmf_cli.tasks import TaskResult, execute
from tests.conftest import make_ratings

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
        for task in tasks_of(CONFIG, entry, "ml-100k", "c"):
            if (task.fold, task.run) == leave_out:
                continue
            rmse = tuple(task.fold + 10 * task.run + 100 * epsilon for epsilon in task.epsilons)
            provable = tuple(2 * epsilon for epsilon in task.epsilons)
            step = {"step": "a", "claimed": task.epsilons, "provable": ["inf"] * len(task.epsilons)}
            store.write(task, TaskResult(task.epsilons, rmse, task.epsilons, provable, (step,)))


def gather(store: Store):  # type: ignore[no-untyped-def]
    return collect(CONFIG, dataset="ml-100k", title="MovieLens 100K", checksum="c", store=store)


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
        {"step": "a", "epsilons": [1.0, 2.0], "claimed": [1.0, 2.0], "provable": [float("inf")] * 2}
    ]


def test_a_plan_counts_what_is_done(tmp_path: Path) -> None:
    fill(Store(tmp_path), leave_out=(1, 0))
    plan = make_plan(
        CONFIG, dataset="ml-100k", checksum="c", users=943, items=1682, ratings=100_000, store=Store(tmp_path)
    )
    assert [(part.total, part.done) for part in plan.entries] == [(2, 1), (4, 3), (4, 3)]
    assert [(task.fold, task.run) for task in plan.left] == [(1, 0)] * 3
    assert plan.seconds(1) > sum(plan.cost_of(task) for task in plan.left) > 0
    assert plan.peak_bytes(2) > plan.peak_bytes(1) > 1e8


def test_clipping_is_what_the_entry_asks_for() -> None:
    ratings = make_ratings(2)
    plain, clipping = CONFIG.algorithms
    task = next(tasks_of(CONFIG, plain, "data", "c"))
    task = replace(task, epsilons=(0.01,))
    unclipped = execute(task, ratings, ratings).rmse[0]
    clipped = execute(replace(task, algorithm=clipping), ratings, ratings).rmse[0]
    assert clipped < unclipped


def test_the_resolved_config_of_a_manifest_is_read_back() -> None:
    assert ExperimentConfig.model_validate(json.loads(json.dumps(CONFIG.resolved()))) == CONFIG
