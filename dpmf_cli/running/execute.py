"""Fits the algorithms of tasks and measures their predictions."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.cost import Shape
from dpmf_cli.algorithms.shared.model import AccountsForRecords, Model
from dpmf_cli.datasets.stars import Stars
from dpmf_cli.evaluation.error_cdf import error_cdf
from dpmf_cli.evaluation.metrics import mean_errors
from dpmf_cli.evaluation.top_items import top_items
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.ratings import Ratings
from dpmf_cli.results.task import Task, TaskResult
from dpmf_cli.running.grid_parts import joined, parts, room
from dpmf_cli.streams import Streams


@dataclass(frozen=True)
class _Split:
    """Training and test ratings in the unit in which a fit uses them.

    unit    the size of that unit, in rating units
    rated   the test ratings in rating units
    """

    train: Ratings
    test: Ratings
    unit: float
    rated: Ratings


def execute(tasks: Sequence[Task], train: Ratings, test: Ratings) -> list[TaskResult]:
    """Fits the algorithms of a batch of tasks (see `together`) on training ratings; measures each on test ratings.

    A task's result does not depend on the other tasks of the batch, nor on whether its grid is fitted in parts.
    Ratings in another unit than stars are fitted and predicted in stars; errors are in rating units.
    """
    split = _Split(train, test, 1.0, test)
    if tasks[0].data.to_stars:
        stars = Stars(train.scale)
        split = _Split(stars.of(train), stars.of(test), stars.unit, test)
    return _execute(tasks, split, tasks[0].streams())


def _execute(tasks: Sequence[Task], split: _Split, streams: Streams) -> list[TaskResult]:
    train = split.train
    if len(tasks) == 1:
        task = tasks[0]
        shape = Shape(train.n_users, train.n_items, len(train))
        cut = parts(task.algorithm, shape, len(task.epsilons), room())
        if len(cut) > 1:
            pieces = (replace(task, epsilons=task.epsilons[part]) for part in cut)
            return [joined([_execute([each], split, streams)[0] for each in pieces])]
    fitted = _fit(tasks, train, streams)
    return [_measure(task, *each, split) for task, each in zip(tasks, fitted, strict=True)]


def _fit(tasks: Sequence[Task], train: Ratings, streams: Streams) -> list[tuple[Model, Ledger]]:
    """The model of each task, with the ledger that its fit has filled."""
    first = tasks[0]
    ledgers = [_ledger(task) for task in tasks]
    models = first.algorithm.fit_together(
        [task.algorithm for task in tasks],
        train,
        [ledger.limit for ledger in ledgers],
        streams=streams,
        curators=[Curator(ledger, streams) for ledger in ledgers],
    )
    return list(zip(models, ledgers, strict=True))


def _ledger(task: Task) -> Ledger:
    algorithm = task.algorithm
    mode = algorithm.mode if isinstance(algorithm, PrivateAlgorithm) else Mode.CORRECTED
    delta = algorithm.spends_delta if isinstance(algorithm, PrivateAlgorithm) else 0.0
    return Ledger(task.epsilons, mode, delta)


def _measure(task: Task, model: Model, ledger: Ledger, split: _Split) -> TaskResult:
    result = TaskResult(
        task.epsilons,
        (),
        tuple(ledger.claimed.tolist()),
        tuple(ledger.provable.tolist()),
        tuple(entry.record() for entry in ledger.entries),
        records=model.record_costs if isinstance(model, AccountsForRecords) else None,
        ranking=_ranking(task, model, split),
    )
    if task.algorithm.scores_only:
        return result
    test, unit = split.test, split.unit
    predictions = model.predict(test.users, test.items)
    if task.algorithm.clip_predictions:
        predictions = np.clip(predictions, test.scale.minimum, test.scale.maximum)
    rmse, mae = mean_errors(predictions, test.values)
    return replace(
        result,
        rmse=tuple((unit * rmse).tolist()),
        mae=tuple((unit * mae).tolist()),
        error_cdf=_distribution(predictions, test, tuple(limit / unit for limit in task.limits)),
    )


def _ranking(task: Task, model: Model, split: _Split) -> tuple[tuple[float, ...], ...]:
    """(E, 2) the ranking metrics of a model; empty where they were not asked for."""
    if task.ranking is None:
        return ()
    lanes = len(task.epsilons)
    return tuple(
        map(tuple, top_items(model.predict, split.train, split.rated, task.ranking, lanes=lanes).tolist())
    )


def _distribution(
    predictions: NDArray[np.floating], test: Ratings, limits: tuple[float, ...]
) -> tuple[tuple[float, ...], ...]:
    """(E, X) the distribution of errors; empty where it was not asked for."""
    if not limits:
        return ()
    return tuple(tuple(row) for row in error_cdf(predictions, test.values, limits).tolist())
