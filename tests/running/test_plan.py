"""The counts and costs of a plan, and the time, memory and disk space that a run takes beside them."""

import json
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from docs.makers.sizes import REFERENCE_CORES, disk_bytes, reference_plan
from dpmf_cli.cli.run import describe
from dpmf_cli.datasets import Folders, Sizes, load
from dpmf_cli.experiment.config import ExperimentConfig, load_config
from dpmf_cli.experiment.config.documents import FOLDER
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import TaskResult, tasks_of
from dpmf_cli.experiment.running.calibration import REFERENCE
from dpmf_cli.experiment.running.plan import make_plan, plan_for, plan_without_parsing, training_set
from tests.benchmarks.scale import DPMF, run
from tests.command import dpmf
from tests.results.test_collect import CONFIG, DATA, fill

SIZE = Sizes(943, 1682, 100_000, "expected")
RESULT = TaskResult((1.0, 2.0), (0.9, 0.8), (1.0, 2.0), (1.0, 2.0), ())


def test_a_plan_counts_what_is_done(tmp_path: Path) -> None:
    fill(Store(tmp_path), leave_out=(1, 0))
    plan = make_plan([(CONFIG, DATA, (SIZE, None))], Store(tmp_path))
    assert [(part.total, len(part.left)) for part in plan.entries] == [(2, 1), (4, 1), (4, 1)]
    assert [(task.cut.fold, task.run) for task in plan.left] == [(1, 0)] * 3
    assert plan.seconds(1) > sum(plan.cost_of(task) for task in plan.left) > 0
    assert plan.peak_bytes(2) > plan.peak_bytes(1) > 1e8


def test_a_plan_of_growth_costs_what_its_portions_cost(tmp_path: Path) -> None:
    growth = ExperimentConfig.model_validate(
        {**CONFIG.resolved(), "twins": True, "growth": {"portions": [0.1, 1], "order": "random"}}
    )
    plan = make_plan([(growth, DATA, (SIZE, 3e7))], Store(tmp_path))
    assert [part.total for part in plan.entries] == [4, 12, 12]
    assert [task.cut.portion for task in plan.left] == [0.1] * 14 + [1.0] * 14
    small, whole = plan.left[1], plan.left[15]
    assert (small.algorithm, small.epsilons) == (whole.algorithm, whole.epsilons)
    assert plan.cost_of(small) < plan.cost_of(whole)
    squares = [training_set(task.cut, SIZE, 3e7)[0].squares for task in (small, whole)]
    assert squares == pytest.approx([3e5 * 0.25, 3e7 * 0.25])
    costs = sum(map(plan.seconds_of, plan.entries))
    assert costs == pytest.approx(sum(plan.cost_of(task) for task in plan.left))


def test_scoring_all_items_costs_time_and_bounded_memory(tmp_path: Path) -> None:
    keys = {"baselines": ["ia"], "algorithms": ["pge", "pknn"]}
    plain = ExperimentConfig.model_validate({**CONFIG.resolved(), **keys})
    asked = ExperimentConfig.model_validate({**plain.resolved(), "ranking": {"threshold": 4}})
    large = Sizes(6040, 3706, 1_000_209, "expected")
    plans = [
        make_plan([(config, DATA, (size, None))], Store(tmp_path))
        for config in (plain, asked)
        for size in (SIZE, large)
    ]
    seconds = [[plan.cost_of(part.left[0]) for part in plan.entries] for plan in plans]
    more = np.array(seconds[2:]) - seconds[:2]
    assert (more > 0).all()
    assert more[0, 2] > 30 * more[0, 1]  # pknn solves a system for each pair, pge adds two numbers
    assert more[1, 1] == pytest.approx(more[0, 1] * 6040 * 3706 / (943 * 1682), rel=0.01)
    assert plans[3].peak_bytes(1) - plans[1].peak_bytes(1) < 2.5e8


def test_data_that_were_never_read_leave_all_to_do_until_they_are(tmp_path: Path) -> None:
    spec = {"kind": "synthetic", "like": "ml-100k", "users": 60, "items": 40, "ratings": 900}
    config = ExperimentConfig.model_validate({**CONFIG.resolved(), "dataset": spec})
    folders = Folders(tmp_path, tmp_path / "cache", results=tmp_path / "results")
    before, size = plan_without_parsing(config, folders, REFERENCE)
    assert (len(before.left), before.total, size.basis) == (10, 10, "expected")
    assert before.made.seconds > 0
    dataset, store = load(config.dataset, folders), Store(folders.results)
    for entry in config.algorithms:
        store.write(next(tasks_of(config, entry, dataset.identity)), RESULT)
    said = describe(config, before, size, 1, as_json=False)
    assert "40 items (made up, as many as the config asks for)" in said
    after, again = plan_without_parsing(config, folders, REFERENCE)
    assert (len(after.left), after.made.seconds, again) == (8, 0, replace(size, basis="counted"))
    assert after == plan_for(config, dataset, store)
    squares = float(sum(int(count) ** 2 for count in np.bincount(dataset.ratings.users)))
    assert after == make_plan([(config, dataset.identity, (size, squares))], store)


def taken(folder: Path) -> int:
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def test_what_a_run_leaves_is_near_the_estimate(tmp_path: Path) -> None:
    dpmf(tmp_path, tmp_path / "cache", "run", "quickstart", "-j", "1")
    config = load_config(FOLDER / "quickstart.yaml")
    plan = reference_plan(config)
    estimate = disk_bytes(plan.left, plan.ratings, timestamps=config.dataset.has_timestamps)
    found = taken(tmp_path / "results") + taken(tmp_path / "cache" / "ratings")
    assert 0.7 < estimate / found < 1.4


def test_a_plan_on_the_reference_machine_does_not_look_at_this_one(tmp_path: Path) -> None:
    """Netflix needs the grid in parts with that machine's memory. Sizes are those of the catalog, whether the
    data are present or not."""
    config = load_config(FOLDER / "netflix_bounded.yaml")
    plan = reference_plan(config)
    assert plan.ratings == 100_480_507
    assert len(plan.left) == plan.total > 0
    assert plan.peak_bytes(1) < 8 << 30 < plan.peak_bytes(REFERENCE_CORES)


LARGE = """\
dataset: {{kind: synthetic, like: ml-1m, seed: 3}}
folds: 10
held_out: 1
runs: 1
seed: {seed}
epsilons: {{first: 0.1, last: 20, count: 16}}
baselines: []
algorithms: [{{algorithm: {algorithm}, neighbours: {neighbours}}}]
"""


TRIES = 4


@pytest.mark.slow
@pytest.mark.parametrize(("algorithm", "neighbours"), [("psgd", "bounded"), ("pge", "unbounded")])
def test_a_plan_holds(tmp_path: Path, algorithm: str, neighbours: str) -> None:
    """The first run generates the ratings, and may compile kernels. Then each plan, with the machine measured
    anew, is followed by the planned run: other work on the machine in just one of these seconds is not a fault
    of the plan."""
    environment = {**os.environ, "DPMF_CACHE": str(tmp_path / "cache")}
    met = []
    for seed in range(1 + TRIES):
        path = tmp_path / f"{algorithm}{seed}.yaml"
        path.write_text(LARGE.format(seed=seed, algorithm=algorithm, neighbours=neighbours))
        options = (str(path), "--results", str(tmp_path / "results"), "-j", "1")
        if seed > 0:
            shutil.rmtree(tmp_path / "cache" / "calibration", ignore_errors=True)
            told = subprocess.check_output((*DPMF, "plan", *options, "--json"), env=environment)
            plan = json.loads(told)
        used, _ = run((*DPMF, "run", *options), environment)
        if seed == 0:
            continue
        met.append((used.cpu / plan["seconds"], used.peak_bytes / plan["peak_bytes"]))
        assert 0.75 < met[-1][1] < 1.25, (used, plan)
        if 0.5 < met[-1][0] < 2:
            return
    pytest.fail(f"time and memory over their plan, in all {TRIES} tries: {met}")
