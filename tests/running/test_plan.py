"""The counts and costs of a plan."""

from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.cli.plan_text import describe
from dpmf_cli.config import ExperimentConfig
from dpmf_cli.datasets import Folders, Sizes, load
from dpmf_cli.results.store import Store
from dpmf_cli.results.task import TaskResult, tasks_of
from dpmf_cli.running.machine import REFERENCE
from dpmf_cli.running.plan import make_plan, plan_for, plan_without_parsing, sum_of_squares
from tests.conftest import make_ratings
from tests.results.test_collect import CONFIG, DATA, fill

SIZE = Sizes(943, 1682, 100_000, "expected")
RESULT = TaskResult((1.0, 2.0), (0.9, 0.8), (1.0, 2.0), (1.0, 2.0), ())


def test_a_plan_counts_what_is_done(tmp_path: Path) -> None:
    fill(Store(tmp_path), leave_out=(1, 0))
    plan = make_plan(CONFIG, DATA, SIZE, Store(tmp_path))
    assert [(part.total, part.done) for part in plan.entries] == [(2, 1), (4, 3), (4, 3)]
    assert [(task.fold, task.run) for task in plan.left] == [(1, 0)] * 3
    assert plan.seconds(1) > sum(plan.cost_of(task) for task in plan.left) > 0
    assert plan.peak_bytes(2) > plan.peak_bytes(1) > 1e8


def test_a_plan_of_growth_costs_what_its_portions_cost(tmp_path: Path) -> None:
    growth = ExperimentConfig.model_validate(
        {**CONFIG.resolved(), "twins": True, "growth": {"portions": [0.1, 1], "order": "random"}}
    )
    plan = make_plan(growth, DATA, SIZE, Store(tmp_path), squares=3e7)
    assert [part.total for part in plan.entries] == [4, 12, 12]
    assert [task.cut.portion for task in plan.left] == [0.1] * 14 + [1.0] * 14
    small, whole = plan.left[1], plan.left[15]
    assert (small.algorithm, small.epsilons) == (whole.algorithm, whole.epsilons)
    assert plan.cost_of(small) < plan.cost_of(whole)
    assert plan.shapes[1.0].squares == 3e7 * 0.25
    assert plan.shapes[0.1].squares == pytest.approx(3e5 * 0.25)
    costs = sum(part.seconds_left for part in plan.entries)
    assert costs == pytest.approx(sum(plan.cost_of(task) for task in plan.left))


def test_scoring_all_items_costs_time_and_bounded_memory(tmp_path: Path) -> None:
    keys = {"baselines": ["ia"], "algorithms": ["pge", "pknn"]}
    plain = ExperimentConfig.model_validate({**CONFIG.resolved(), **keys})
    asked = ExperimentConfig.model_validate({**plain.resolved(), "ranking": {"threshold": 4}})
    large = Sizes(6040, 3706, 1_000_209, "expected")
    plans = [
        make_plan(config, DATA, size, Store(tmp_path)) for config in (plain, asked) for size in (SIZE, large)
    ]
    seconds = [[part.costs[0].seconds for part in plan.entries] for plan in plans]
    more = np.array(seconds[2:]) - seconds[:2]
    assert (more > 0).all()
    assert more[0, 2] > 30 * more[0, 1]  # pknn solves a system for each pair, pge adds two numbers
    assert more[1, 1] == pytest.approx(more[0, 1] * 6040 * 3706 / (943 * 1682), rel=0.01)
    assert plans[3].peak_bytes(1) - plans[1].peak_bytes(1) < 2.5e8


def test_squares_are_counted_by_user() -> None:
    ratings = make_ratings(2)
    counts = np.bincount(ratings.users)
    assert sum_of_squares(ratings) == sum(int(count) ** 2 for count in counts)


def test_data_that_were_never_read_leave_all_to_do_until_they_are(tmp_path: Path) -> None:
    spec = {"kind": "synthetic", "like": "ml-100k", "users": 60, "items": 40, "ratings": 900}
    config = ExperimentConfig.model_validate({**CONFIG.resolved(), "dataset": spec})
    folders = Folders(tmp_path, tmp_path / "cache", results=tmp_path / "results")
    before, size = plan_without_parsing(config, folders, REFERENCE)
    assert (len(before.left), before.total, size.basis) == (10, 10, "expected")
    assert before.made.seconds > 0
    dataset, store = load(config.dataset, folders), Store(folders.results)
    (first, *_), (second, *_) = (
        list(tasks_of(config, entry, dataset.identity)) for entry in config.algorithms
    )
    for task in (first, second):
        store.write(task, RESULT)
    said = describe(config, before, size, 1, as_json=False)
    assert "40 items (made up, as many as the config asks for)" in said
    after, again = plan_without_parsing(config, folders, REFERENCE)
    assert (len(after.left), after.made.seconds, again) == (8, 0, size)
    assert after == plan_for(config, dataset, store)
