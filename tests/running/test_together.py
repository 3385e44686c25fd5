"""A sweep of personalised privacy is one fit: its lanes carry the swept values, and results do not depend on that."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from dpmf_cli.algorithms.baselines import sampled
from dpmf_cli.algorithms.shared import sample_fits
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.model import Model
from dpmf_cli.algorithms.shared.probabilistic import Kept
from dpmf_cli.algorithms.zhang2018 import personalized
from dpmf_cli.algorithms.zhang2018.personalized import Personalized
from dpmf_cli.config import ExperimentConfig, load_config
from dpmf_cli.datasets import DataIdentity, Folders, Sizes
from dpmf_cli.experiment import Finished, run
from dpmf_cli.lane_groups import MAXIMUM_WIDTH
from dpmf_cli.ratings import Ratings
from dpmf_cli.results.store import Store
from dpmf_cli.results.task import tasks_of
from dpmf_cli.running.batches import together
from dpmf_cli.running.estimates import PREDICTION_SECONDS, TASK_SECONDS, in_order
from dpmf_cli.running.plan import make_plan
from dpmf_cli.running.processes import LocalProcesses

CONFIG = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 60, items: 40, ratings: 900}
folds: 3
held_out: 2
runs: 2
neighbours: unbounded
epsilons: [0.1, 0.4, 1]
error_cdf: [1, 2]
baselines:
  - ga
  - algorithm: sampled
    base: &pmf {algorithm: pmf, factors: 3, epochs: 6, batch_size: 150, learning_rate: 5, momentum: 0.5}
    sweep: {conservative: [0.1, 0.3, 0.5]}
  - {algorithm: sampled, label: other, base: {algorithm: pmf, factors: 2}, conservative: 0.5}
algorithms:
  - algorithm: personalized
    label: swept
    base: &base {algorithm: dp_pmf, factors: 3, epochs: 6, noisy_epochs: 4, batch_size: 150, learning_rate: 5}
    moderate: 0.1
    sweep: {conservative: [0.1, 0.3, 0.5, 0.6, 0.7, 0.9]}
  - {algorithm: personalized, label: users, base: *base, per: user, threshold: max, clip_predictions: true}
  - {algorithm: personalized, label: factors, base: {algorithm: dp_pmf, factors: 2}}
  - {algorithm: personalized, label: cells, base: {algorithm: isgd, factors: 2, epochs: 2}, sweep: {conservative: [0.1, 0.5]}}
  - {algorithm: personalized, label: exact, base: &exact {algorithm: dp_pmf, factors: 3}, mode: corrected}
  - {algorithm: personalized, label: exact 2, base: *exact, mode: corrected, threshold: 0.3}
"""

DATA = DataIdentity("d", "", "c")


def execute(folder: Path, results: str, jobs: int = 1) -> Finished:
    path = folder / "x.yaml"
    path.write_text(CONFIG)
    config, cache = load_config(path), folder / "cache"
    return run(config, Folders(folder, cache, folder, folder / results), LocalProcesses(jobs))


def files(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path for path in folder.glob("**/*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if "manifest" not in name}


@pytest.fixture(scope="module")
def one_by_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of a run in which every task has its own fit."""
    folder = tmp_path_factory.mktemp("together")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample_fits, "shared_fit_of", lambda base: None)
        assert not execute(folder, "alone").failures
    return folder


def test_every_file_is_the_same_to_the_byte(one_by_one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    of = sample_fits.fit_samples

    def counting(base: Algorithm, train: Ratings, kept: Kept, *rest: Any, **more: Any) -> Model:
        sizes.append(kept.shape[1])
        return of(base, train, kept, *rest, **more)

    for module in (personalized, sampled):
        monkeypatch.setattr(module, "fit_samples", counting)
    finished = execute(one_by_one, "batches")
    assert not finished.failures
    assert files(one_by_one / "alone") == files(one_by_one / "batches")
    # For each of 2 folds and runs: seven entries of three ε in lanes of 16 and 6, two on all cells, three
    # samples, and the others alone.
    assert sorted(sizes) == sorted([15, 6, 6, 3, 1, 3, 3, 3] * 4)


@pytest.mark.slow
def test_what_is_left_of_a_run_is_the_same_too(one_by_one: Path) -> None:
    execute(one_by_one, "resumed")
    tasks = sorted((one_by_one / "resumed").glob("tasks/**/*.json"))
    for path in tasks[::3]:
        path.unlink()
    assert execute(one_by_one, "resumed", jobs=2).computed == len(tasks[::3])
    assert files(one_by_one / "resumed") == files(one_by_one / "alone")


def config() -> ExperimentConfig:
    return ExperimentConfig.model_validate({"name": "x", **yaml.safe_load(CONFIG)})


def test_what_goes_together_has_one_cut_run_and_base_and_fits_the_lanes(tmp_path: Path) -> None:
    plan = make_plan(config(), DATA, Sizes(60, 40, 900, "counted"), Store(tmp_path))
    assert sorted(task.key for batch in plan.batches for task in batch) == sorted(t.key for t in plan.left)
    for batch in plan.batches:
        assert len({(task.cut, task.run, task.algorithm.algorithm) for task in batch}) == 1
        bases = {str(getattr(task.algorithm, "base", None)) for task in batch}
        assert len(bases) == 1
        assert sum(len(task.epsilons) for task in batch) <= MAXIMUM_WIDTH
        if isinstance(batch[0].algorithm, Personalized) and batch[0].algorithm.mode == "corrected":
            assert len(batch) == 1
    assert max(map(len, plan.batches)) == 5


def test_tasks_of_one_cut_follow_each_other_the_longest_first(tmp_path: Path) -> None:
    plan = make_plan(config(), DATA, Sizes(60, 40, 900, "counted"), Store(tmp_path))
    cuts = [batch[0].cut for batch in plan.batches]
    assert len(set(cuts)) == 2 == 1 + sum(one != next_ for one, next_ in pairwise(cuts))
    for cut in set(cuts):
        seconds = [sum(map(plan.cost_of, batch)) for batch in plan.batches if batch[0].cut == cut]
        assert seconds == sorted(seconds, reverse=True)
        assert seconds[0] > 2 * seconds[-1]
    # Of experiments with different folds on the same data too, each split is made once.
    asked = (ExperimentConfig.model_validate({**config().resolved(), "folds": folds}) for folds in (3, 4))
    tasks = [task for each in asked for entry in each.entries for task in tasks_of(each, entry, DATA)]
    cuts = [task.cut for task in in_order(tasks)]
    assert len(set(cuts)) == 4 == 1 + sum(one != next_ for one, next_ in pairwise(cuts))


def test_a_shared_fit_is_cheaper_in_a_plan_and_what_is_not_shared_is_not(tmp_path: Path) -> None:
    plan = make_plan(config(), DATA, Sizes(6000, 4000, 900_000, "counted"), Store(tmp_path))
    five = next(batch for batch in plan.batches if len(batch) == 5)
    alone = five[0].algorithm.cost(plan.shapes[1.0], 3).seconds
    assert plan.cost_of(five[0]) < 0.6 * alone
    other = next(t for t in plan.left if re.match("factors", t.algorithm.name))
    measured = TASK_SECONDS + PREDICTION_SECONDS * 3 * 900_000 / config().folds
    fit = other.algorithm.cost(plan.shapes[1.0], 3).seconds
    assert plan.cost_of(other) == pytest.approx(fit + measured)


def test_runs_and_folds_are_apart() -> None:
    entry = config().algorithms[0]
    (task, *rest) = tasks_of(config(), entry, DATA)
    assert [len(batch) for batch in together([task, *rest])] == [1] * 4
    again = replace(task, epsilons=(2.0,))
    assert together([task, again]) == [(task, again)]
