"""A task: one algorithm on one fold and run of one data set, for a grid of ε. The unit of work and resuming."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import Algorithm, Model, PrivateAlgorithm, Shape
from dpmf_cli.algorithms.zhang2018.personalized import PersonalModel
from dpmf_cli.datasets.spec import TestSet
from dpmf_cli.evaluation.error_cdf import error_cdf
from dpmf_cli.evaluation.folds import assign_folds, split, without_pairs
from dpmf_cli.evaluation.metrics import root_mean_squared_errors
from dpmf_cli.evaluation.portions import Order, first_share, ranked
from dpmf_cli.kernels.lanes import MAXIMUM_WIDTH
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.ratings import Ratings
from dpmf_cli.running.grid_parts import joined_record, parts, room, strung
from dpmf_cli.streams import Streams, named_generator


@dataclass(frozen=True)
class Cut:
    """How the ratings of a task are cut into training and test ratings.

    portion, order   only the first ratings in that order are used, in training and in testing
    test, test_checksum   what is predicted: folds, or a fixed test set, with the checksum of its ratings
    """

    folds: int
    fold: int
    portion: float = 1.0
    order: Order = "timestamp"
    test: TestSet = "folds"
    test_checksum: str = ""

    @property
    def settings(self) -> dict[str, Any]:
        """What the results of all folds have in common. What leaves the cut as it is has no part in it: the whole of
        the ratings is the same in any order."""
        growth = {"portion": self.portion, "order": self.order} if self.portion < 1 else {}
        fixed = {"test": self.test, "test_checksum": self.test_checksum} if self.test != "folds" else {}
        return {"folds": self.folds, **growth, **fixed}


@dataclass(frozen=True)
class Task:
    """What a result depends on. `checksum` is that of the data set's ratings, `dataset` its key, `limits` the x of
    the distribution of errors, where that is measured."""

    dataset: str
    checksum: str
    seed: int
    cut: Cut
    run: int
    algorithm: Algorithm
    epsilons: tuple[float, ...]
    limits: tuple[float, ...] = ()

    @property
    def fold(self) -> int:
        return self.cut.fold

    @property
    def checksums(self) -> tuple[str, ...]:
        """Those of all ratings that it needs."""
        return (self.checksum, self.cut.test_checksum) if self.cut.test_checksum else (self.checksum,)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What the results of all folds, runs and ε of this algorithm have in common."""
        return {
            "dataset": self.dataset,
            "checksum": self.checksum,
            "seed": self.seed,
            "algorithm": self.algorithm.parameters(),
            **self.cut.settings,
            **({"error_cdf": list(self.limits)} if self.limits else {}),
        }

    @cached_property
    def settings_hash(self) -> str:
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()

    @cached_property
    def key(self) -> tuple[str, int, int, tuple[float, ...]]:
        """What distinguishes its results from those of other tasks."""
        return self.settings_hash, self.fold, self.run, self.epsilons

    @property
    def streams(self) -> Streams:
        return Streams(self.seed, self.dataset, self.algorithm.algorithm, self.fold, self.run)


@dataclass(frozen=True)
class RecordCosts:
    """For each ε of the grid: the threshold t, the part of the training ratings that was sampled, and the least, the
    median and the largest ε that can be proved for a training rating."""

    threshold: tuple[float, ...]
    kept: tuple[float, ...]
    least: tuple[float, ...]
    median: tuple[float, ...]
    largest: tuple[float, ...]


@dataclass(frozen=True)
class TaskResult:
    """What a task found: for each ε its error and the ledger's two sums, and the ledger itself.

    error_cdf   (E, X): for each ε the fraction of absolute errors up to each of the task's limits; empty without
    records     what personalised privacy cost the records; None where privacy is the same for all
    """

    epsilons: tuple[float, ...]
    rmse: tuple[float, ...]
    claimed: tuple[float, ...]
    provable: tuple[float, ...]
    ledger: tuple[dict[str, Any], ...]
    error_cdf: tuple[tuple[float, ...], ...] = ()
    records: RecordCosts | None = None


def training_shape(
    users: int,
    items: int,
    ratings: int,
    folds: int,
    *,
    squares: float | None = None,
    portion: float = 1.0,
    order: Order = "timestamp",
) -> Shape:
    """The size of a training set: all but one of the folds, of a portion of the ratings.

    `squares` is Σ c_u² over all ratings, or None where it is not counted. It falls with the square of the share kept
    of each user's ratings; in the order of time whole users are kept or not, and it falls in proportion.
    """
    part = 1 - 1 / folds if folds > 1 else 1.0
    size = Shape(users, items, round(part * portion * ratings))
    if squares is None:
        return size
    kept = portion if order == "timestamp" else portion**2
    return replace(size, squares=squares * part**2 * kept)


def arrivals(ratings: Ratings, order: Order, *, dataset: str, seed: int) -> NDArray[np.intp]:
    """(n_ratings,) the positions of the ratings as they come; of the random orders, that of a data set and a seed."""
    return ranked(ratings, order, rng=named_generator(seed, dataset, "growth"))


def cut_ratings(
    ratings: Ratings, cut: Cut, *, dataset: str, seed: int, test: Ratings | None = None
) -> tuple[Ratings, Ratings]:
    """(training ratings, test ratings); `test` is the fixed test set where the cut has one."""
    if test is not None:
        return without_pairs(ratings, test), test
    assignment = fold_assignment(dataset, seed, cut.folds, len(ratings))
    if cut.portion < 1:
        first = first_share(arrivals(ratings, cut.order, dataset=dataset, seed=seed), cut.portion)
        used = np.full(len(ratings), -1, dtype=np.int16)
        used[first] = assignment[first]
        assignment = used
    return split(ratings, assignment, cut.fold)


def fold_assignment(dataset: str, seed: int, folds: int, n_ratings: int) -> NDArray[np.int16]:
    """The folds of a data set under a seed: the same for every algorithm and run."""
    return assign_folds(n_ratings, folds, named_generator(seed, dataset, folds, "folds"))


def together(tasks: Iterable[Task]) -> list[tuple[Task, ...]]:
    """Tasks whose algorithms share a fit, and the lanes of one pass of it, side by side; others alone.

    In the order of the first of each, of tasks of one experiment.
    """
    batches: list[list[Task]] = []
    last: dict[tuple[Any, ...], list[Task]] = {}
    for task in tasks:
        shared = task.algorithm.shared_fit
        key = (task.cut, task.run, task.algorithm.algorithm, shared)
        batch = last.get(key, []) if shared else []
        if batch and sum(len(each.epsilons) for each in (*batch, task)) <= MAXIMUM_WIDTH:
            batch.append(task)
        else:
            last[key] = [task]
            batches.append(last[key])
    return [tuple(batch) for batch in batches]


def execute(tasks: Sequence[Task], train: Ratings, test: Ratings) -> list[TaskResult]:
    """Fits the algorithms of tasks that go `together` on the training ratings and measures each on the test ratings.

    What a task finds does not depend on those that it is fitted with, nor on whether its grid was fitted in parts.
    """
    if len(tasks) == 1:
        task = tasks[0]
        shape = Shape(train.n_users, train.n_items, len(train))
        cut = parts(task.algorithm, shape, len(task.epsilons), room())
        if len(cut) > 1:
            found = [execute([replace(task, epsilons=task.epsilons[part])], train, test)[0] for part in cut]
            return [_joined(found)]
    ledgers = [_ledger(task) for task in tasks]
    first = tasks[0]
    models = first.algorithm.fit_together(
        [task.algorithm for task in tasks], train, streams=first.streams, ledgers=ledgers
    )
    return [_measure(*each, train, test) for each in zip(tasks, models, ledgers, strict=True)]


def _joined(found: Sequence[TaskResult]) -> TaskResult:
    """The result for a grid from those for its parts, one after the other."""
    by_epsilon = ("epsilons", "rmse", "claimed", "provable", "error_cdf")
    steps = zip(*(result.ledger for result in found), strict=True)
    records = [result.records for result in found if result.records]
    return TaskResult(
        **strung(found, by_epsilon),
        ledger=tuple(joined_record(step) for step in steps),
        records=RecordCosts(**strung(records, [field.name for field in fields(RecordCosts)]))
        if records
        else None,
    )


def _ledger(task: Task) -> Ledger:
    algorithm = task.algorithm
    mode = algorithm.mode if isinstance(algorithm, PrivateAlgorithm) else Mode.CORRECTED
    delta = algorithm.spends_delta if isinstance(algorithm, PrivateAlgorithm) else 0.0
    return Ledger(task.epsilons, mode, delta)


def _measure(task: Task, model: Model, ledger: Ledger, train: Ratings, test: Ratings) -> TaskResult:
    predictions = model.predict(test.users, test.items)
    if task.algorithm.clip_predictions:
        predictions = np.clip(predictions, train.scale.minimum, train.scale.maximum)
    return TaskResult(
        task.epsilons,
        tuple(root_mean_squared_errors(predictions, test.values).tolist()),
        tuple(ledger.claimed.tolist()),
        tuple(ledger.provable.tolist()),
        tuple(entry.record() for entry in ledger.entries),
        _distribution(predictions, test, task.limits),
        _record_costs(model) if isinstance(model, PersonalModel) else None,
    )


def _record_costs(model: PersonalModel) -> RecordCosts:
    records = model.records
    columns = (model.thresholds, model.kept, records.least, records.median, records.largest)
    return RecordCosts(*(tuple(column.tolist()) for column in columns))


def _distribution(
    predictions: NDArray[np.floating], test: Ratings, limits: tuple[float, ...]
) -> tuple[tuple[float, ...], ...]:
    """(E, X) the distribution of errors, empty where it was not asked for."""
    if not limits:
        return ()
    return tuple(tuple(row) for row in error_cdf(predictions, test.values, limits).tolist())
