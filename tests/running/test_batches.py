"""The measurements of a task; a grid that does not fit in memory, in parts; and tasks that share a fit, such as a sweep
of personalised privacy, whose lanes carry the swept values. No result depends on either."""

import re
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from numpy.typing import NDArray
from threadpoolctl import threadpool_info

from dpmf_cli.algorithms.friedman2016.matrix_factorization import PrivateGlobalEffects
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared import sample_fits
from dpmf_cli.algorithms.shared.base import Algorithm, Model
from dpmf_cli.algorithms.shared.cost import Shape
from dpmf_cli.algorithms.shared.factorization import Kept
from dpmf_cli.algorithms.shared.item_covariance import CovarianceAlgorithm, ReleasedProducts
from dpmf_cli.algorithms.shared.sample_fits import RecordCosts
from dpmf_cli.algorithms.zhang2018.private_pmf import Personalized
from dpmf_cli.core.compiled.lane_groups import MAXIMUM_WIDTH
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import SECRET
from dpmf_cli.datasets import DataIdentity, Folders, Sizes, load
from dpmf_cli.datasets.spec import SyntheticSpec
from dpmf_cli.experiment.config import ExperimentConfig, load_config
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import Cut, Task, TaskResult, tasks_of
from dpmf_cli.experiment.running import batches
from dpmf_cli.experiment.running.batches import Batch, execute, joined, together
from dpmf_cli.experiment.running.calibration import REFERENCE
from dpmf_cli.experiment.running.cutting import cut_ratings
from dpmf_cli.experiment.running.plan import (
    PREDICTION_SECONDS,
    TASK_SECONDS,
    Plan,
    in_order,
    make_plan,
    priced,
)
from dpmf_cli.kernels import covariance, sgd
from dpmf_cli.studies.experiment import Finished, run
from tests.conftest import make_ratings
from tests.results.test_collect import CONFIG, DATA


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any ratings are at hand."""
    monkeypatch.setattr(batches, "open_cached", lambda checksum, cache: make_ratings())


@pytest.mark.usefixtures("opened")
def test_blas_keeps_to_one_thread_wherever_it_was_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def watching(tasks: Any, *folds: Any) -> list[TaskResult]:
        seen.extend(pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas")
        return [TaskResult(task.epsilons, (1.0,), (1.0,), (1.0,), ()) for task in tasks]

    monkeypatch.setattr(batches, "execute", watching)
    for _ in range(2):
        (outcome,) = batches.run_batch((first_task(),), tmp_path)
        assert outcome.failure is None, outcome.failure
        monkeypatch.setitem(sys.modules, "a module that is loaded now", sys)
    assert set(seen) == {1}


@pytest.mark.usefixtures("opened")
def test_a_fit_without_memory_is_a_message_and_not_a_failed_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PrivateGlobalEffects, "fit", lambda *_, **__: np.empty(1 << 60, np.int8))
    message = r"not enough memory for .* on ml-100k; use a smaller -j, or see `dpmf plan`"
    with pytest.raises(DpmfError, match=message):
        batches.run_batch((first_task(),), tmp_path)


COSTS = RecordCosts((1.0, 2.0), (0.5, 0.6), (0.1, 0.2), (0.3, 0.4), (1.0, 2.0))


def first_task() -> Task:
    return next(tasks_of(CONFIG, CONFIG.algorithms[0], DATA))


def test_clipping_is_what_the_entry_asks_for() -> None:
    ratings = make_ratings(2)
    task = replace(first_task(), data=replace(DATA, key="data"), epsilons=(0.01,))
    tasks = (task, replace(task, algorithm=CONFIG.algorithms[1]))
    unclipped, clipped = (execute([each], ratings, ratings)[0].rmse[0] for each in tasks)
    assert clipped < unclipped


class Accounting:
    """A model of no particular algorithm that reports what it cost the ratings."""

    record_costs = COSTS

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.floating]:
        return np.ones((len(users), 2))


def test_what_any_model_tells_of_its_records_is_kept_and_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = make_ratings(2)
    assert execute([first_task()], ratings, ratings)[0].records is None
    monkeypatch.setattr(PrivateGlobalEffects, "fit", lambda self, train, epsilons, **rest: Accounting())
    assert execute([first_task()], ratings, ratings)[0].records == COSTS
    parts = [
        TaskResult(
            (1.0 + at,),
            (0.9,),
            (1.0,),
            (2.0,),
            ({"step": "a", "claimed": [at]},),
            records=RecordCosts(*((column[at],) for column in COSTS.__dict__.values())),
        )
        for at in (0, 1)
    ]
    whole = joined(parts)
    assert whole.records == COSTS
    assert (whole.epsilons, whole.ledger) == ((1.0, 2.0), ({"step": "a", "claimed": [0, 1]},))


GRID = tuple(0.5 + 0.25 * e for e in range(40))
SHAPE = Shape(1000, 1000, 100_000)
PSGD = PRIVATE["psgd"].model_validate({"algorithm": "psgd", "factors": 2, "epochs": 2})


def cuts(within: float, grid: int = 40) -> list[int]:
    return [part.stop - part.start for part in batches.parts(PSGD, SHAPE, grid, within)]


def test_a_grid_is_cut_only_as_far_as_it_must_and_into_whole_groups() -> None:
    assert cuts(1e12) == [40]
    assert cuts(0) == [MAXIMUM_WIDTH, MAXIMUM_WIDTH, 8]
    assert cuts(PSGD.cost(SHAPE, 32).bytes, 64) == [32, 32]
    assert cuts(0, 3) == [3]

    whole, apart = (batches.cost_in_parts(PSGD, SHAPE, 32, within) for within in (1e12, 0))
    part = PSGD.cost(SHAPE, 16)
    assert whole == PSGD.cost(SHAPE, 32)
    assert (apart.seconds, apart.bytes) == (2 * part.seconds, part.bytes)
    assert apart.bytes < whole.bytes


def test_there_is_room_within_the_machine_and_its_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(batches, "_LIMIT", limit)
    machine = batches.room()
    assert machine > 1e8
    limit.write_text("max\n")
    assert batches.room() == machine
    limit.write_text("1000000\n")
    assert batches.room() < 1e6


ENTRIES: dict[str, dict[str, object]] = {
    "pge": {},
    "isgd": {"epochs": 2},
    "psgd": {"epochs": 2},
    "pals": {"iterations": 1},
    "mm_svd": {"k": 2, "neighbours": "unbounded", "mode": "corrected", "delta": 1e-6},
}


@pytest.mark.parametrize("name", ENTRIES)
def test_a_grid_in_parts_has_the_same_bytes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SyntheticSpec(kind="synthetic", like="ml-100k", users=60, items=40, ratings=900)
    data = load(spec, Folders(tmp_path, tmp_path, tmp_path))
    fields = PRIVATE[name].model_fields
    entry: Algorithm = PRIVATE[name].model_validate(
        {"algorithm": name, **ENTRIES[name], **({"factors": 2} if "factors" in fields else {})}
    )
    task = Task(data.identity, 1, Cut(5, 0), 0, entry, GRID, (0.5, 1.0))
    train, test = cut_ratings(data.ratings, task.cut, dataset=data.identity.key, seed=1)
    fits = []
    fit = type(entry).fit

    def counting(self: Algorithm, *arguments: Any, **named: Any) -> Model:
        fits.append(self)
        return fit(self, *arguments, **named)

    monkeypatch.setattr(type(entry), "fit", counting)
    files = []
    for memory in (1e12, 0.0):
        monkeypatch.setattr(batches, "room", lambda memory=memory: memory)
        (result,) = batches.execute([task], train, test)
        store = Store(tmp_path / f"{memory}")
        store.write(task, result)
        files.append(store.path(task).read_bytes())
    assert files[0] == files[1]
    assert len(fits) == 1 + 3


@pytest.mark.parametrize("epochs", [1, 3])
def test_kept_ratings_are_planned_where_they_are_kept(epochs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = PRIVATE["isgd"].model_validate({"algorithm": "isgd", "epochs": epochs})
    kept = entry.cost(SHAPE, 16).bytes
    monkeypatch.setattr(sgd, "MOST_KEPT", 0)
    assert kept - entry.cost(SHAPE, 16).bytes == (64 * SHAPE.ratings if epochs > 1 else 0)


TOGETHER = """\
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

OF_TOGETHER = DataIdentity("d", "", "c")


def ran(folder: Path, results: str, jobs: int = 1) -> Finished:
    path = folder / "x.yaml"
    path.write_text(TOGETHER)
    config, cache = load_config(path), folder / "cache"
    return run(config, Folders(folder, cache, folder, folder / results), jobs)


def files(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path for path in folder.glob("**/*") if path.is_file()}
    return {name: path.read_bytes() for name, path in found.items() if "manifest" not in name}


@pytest.fixture(scope="module")
def one_by_one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the results of a run in which every task has its own fit."""
    folder = tmp_path_factory.mktemp("together")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sample_fits.AroundABase, "shared_fit", None)
        assert not ran(folder, "alone").failures
    return folder


def test_every_file_is_the_same_to_the_byte(one_by_one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    of = sample_fits.fit_samples

    def counting(base: Algorithm, train: Ratings, kept: Kept, *rest: Any, **more: Any) -> Model:
        sizes.append(kept.shape[1])
        return of(base, train, kept, *rest, **more)

    monkeypatch.setattr(sample_fits, "fit_samples", counting)
    finished = ran(one_by_one, "batches")
    assert not finished.failures
    assert files(one_by_one / "alone") == files(one_by_one / "batches")
    # For each of 2 folds and runs: seven entries of three ε in lanes of 16 and 6, two on all cells, three
    # samples, and the others alone.
    assert sorted(sizes) == sorted([15, 6, 6, 3, 1, 3, 3, 3] * 4)


@pytest.mark.slow
def test_what_is_left_of_a_run_is_the_same_too(one_by_one: Path) -> None:
    ran(one_by_one, "resumed")
    tasks = sorted((one_by_one / "resumed").glob("tasks/**/*.json"))
    for path in tasks[::3]:
        path.unlink()
    assert ran(one_by_one, "resumed", jobs=2).computed == len(tasks[::3])
    assert files(one_by_one / "resumed") == files(one_by_one / "alone")


def config() -> ExperimentConfig:
    return ExperimentConfig.model_validate({"name": "x", **yaml.safe_load(TOGETHER)})


def planned(size: tuple[int, int, int] = (60, 40, 900)) -> Plan:
    return make_plan([(config(), OF_TOGETHER, (Sizes(*size, "counted"), None))], Store(Path("/nowhere")))


def test_what_goes_together_has_one_cut_run_and_base_and_fits_the_lanes() -> None:
    plan = planned()
    assert sorted(task.key for batch in plan.batches for task in batch) == sorted(t.key for t in plan.left)
    for batch in plan.batches:
        assert len({(task.cut, task.run, task.algorithm.algorithm) for task in batch}) == 1
        bases = {str(getattr(task.algorithm, "base", None)) for task in batch}
        assert len(bases) == 1
        assert sum(len(task.epsilons) for task in batch) <= MAXIMUM_WIDTH
        if isinstance(batch[0].algorithm, Personalized) and batch[0].algorithm.mode == "corrected":
            assert len(batch) == 1
    assert max(map(len, plan.batches)) == 5


def test_tasks_of_one_cut_follow_each_other_the_longest_first() -> None:
    plan = planned()
    cuts = [batch[0].cut for batch in plan.batches]
    assert len(set(cuts)) == 2 == 1 + sum(one != next_ for one, next_ in pairwise(cuts))
    for cut in set(cuts):
        seconds = [sum(map(plan.cost_of, batch)) for batch in plan.batches if batch[0].cut == cut]
        assert seconds == sorted(seconds, reverse=True)
        assert seconds[0] > 2 * seconds[-1]

    # Of experiments with different folds on the same data too, each split is made once.
    asked = (ExperimentConfig.model_validate({**config().resolved(), "folds": folds}) for folds in (3, 4))
    tasks = [task for each in asked for entry in each.entries for task in tasks_of(each, entry, OF_TOGETHER)]
    cuts = [task.cut for task in in_order(tasks)]
    assert len(set(cuts)) == 4 == 1 + sum(one != next_ for one, next_ in pairwise(cuts))


def test_a_shared_fit_is_cheaper_in_a_plan_and_what_is_not_shared_is_not() -> None:
    plan, shape = planned((6000, 4000, 900_000)), Shape(6000, 4000, round(900_000 * (1 - 1 / config().folds)))
    five = next(batch for batch in plan.batches if len(batch) == 5)
    alone = five[0].algorithm.cost(shape, 3).seconds
    assert plan.cost_of(five[0]) < 0.6 * alone
    other = next(t for t in plan.left if re.match("factors", t.algorithm.name))
    measured = TASK_SECONDS + PREDICTION_SECONDS * 3 * 900_000 / config().folds
    fit = other.algorithm.cost(shape, 3).seconds
    assert plan.cost_of(other) == pytest.approx(fit + measured)


AFTER_RELEASE = {
    "ridge": 0.7,
    "shrinkage": 30,
    "noise_shrinkage": 7,
    "diagonal_noise_shrinkage": 9,
    "variance_limits": [0, 1],
    "covariance_limits": [0, 1],
    "k": 3,
    "cleaning": False,
    "flat_ridge": True,
    "clip_predictions": True,
}
"""Other values of the parameters that no release of a covariance depends on."""


def covariance_tasks(key: str, neighbours: str) -> list[Task]:
    """A task of a method on a covariance, and one for each parameter that its releases do not depend on."""
    at = PRIVATE[key]
    changes = [{}, *({name: value} for name, value in AFTER_RELEASE.items() if name in at.model_fields)]
    listed = [{"algorithm": key, "label": f"m{n}", **change} for n, change in enumerate(changes)]
    asked = {"name": "x", **yaml.safe_load(TOGETHER), "neighbours": neighbours, "algorithms": listed}
    of = ExperimentConfig.model_validate(
        {
            **asked,
            "held_out": 1,
            "runs": 1,
            "epsilons": [1, 30, 1000],
            "baselines": [],
            "ranking": {"threshold": 4},
        }
    )
    return [task for entry in of.algorithms for task in tasks_of(of, entry, OF_TOGETHER)]


def test_the_parameters_after_a_release_are_listed() -> None:
    assert AFTER_RELEASE.keys() == CovarianceAlgorithm.after_release


@pytest.mark.parametrize("most", [1 << 31, 0], ids=["kept", "measured anew"])
@pytest.mark.parametrize(
    ("key", "neighbours"),
    [("pknn", "bounded"), ("pknn", "unbounded"), ("mm_knn", "unbounded"), ("mm_svd", "user")],
)
def test_one_release_of_a_covariance_serves_four_settings(
    key: str, neighbours: str, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks, reads = covariance_tasks(key, neighbours), list[ReleasedProducts]()
    folds = make_ratings(30, 20, 300), make_ratings(30, 20, 60)
    alone = [execute([task], *folds) for task in tasks]
    measure = ReleasedProducts.__iter__

    def counting(of: ReleasedProducts) -> Any:
        reads.append(of)
        return measure(of)

    monkeypatch.setattr(ReleasedProducts, "__iter__", counting)
    monkeypatch.setattr(covariance, "BYTES_AT_ONCE", most)
    found, _ = priced(tasks, (Sizes(30, 20, 360, "counted"), None), REFERENCE, 1e12)
    whole, rest = divmod(len(tasks), 4)
    assert [len(batch) for batch in found] == (
        [4] * whole + [rest] * (rest > 0) if most else [1] * len(tasks)
    )
    assert [[result] for batch in found for result in execute(batch, *folds)] == alone
    # Each model predicts twice: for errors, and for ordered items.
    assert len(reads) == sum(1 if len(batch) > 1 else 2 for batch in found)
    assert len({result.rmse for (result,) in alone}) > len(tasks) / 2


def test_settings_with_other_noise_or_too_little_memory_are_apart() -> None:
    one, *_ = together(covariance_tasks("pknn", "bounded"))
    assert [len(batch) for batch in together([replace(task, seed=SECRET) for task in one])] == [1] * 4
    grids = [replace(task, epsilons=(float(n + 1),)) for n, task in enumerate(one)]
    assert [len(batch) for batch in together(grids)] == [1] * 4

    def found(items: int, within: float) -> tuple[list[Batch], list[float]]:
        of, costs = priced(one, (Sizes(6000, items, 900_000, "counted"), None), REFERENCE, within)
        return of, [costs[task.key].seconds for task in one]

    enough, alone = 10 * 3 * covariance.bytes_of_both(4000), [(task,) for task in one]
    kept, shared = found(4000, enough)
    split, apart = found(4000, enough / 10)
    assert kept == [one]
    assert split == found(20_000, 1e15)[0] == alone
    assert all(less < more for less, more in zip(shared, apart, strict=True))


def test_settings_of_a_covariance_are_planned_with_one_release() -> None:
    first, other, *_ = (task.algorithm for task in covariance_tasks("mm_knn", "unbounded"))
    shape = Shape(6000, 4000, 900_000)
    alone, more = first.cost(shape, 3), other.cost(shape, 3)
    both = first.cost_together([first, other], shape, [3, 3])
    assert alone.seconds < both.seconds < alone.seconds + more.seconds
    assert both.bytes > alone.bytes + 3 * covariance.bytes_of_both(shape.items)


def test_runs_and_folds_are_apart() -> None:
    entry = config().algorithms[0]
    (task, *rest) = tasks_of(config(), entry, OF_TOGETHER)
    assert [len(batch) for batch in together([task, *rest])] == [1] * 4
    again = replace(task, epsilons=(2.0,))
    assert together([task, again]) == [(task, again)]
