"""Tasks executed in this process: their ratings cut, those that share a fit fitted as one batch, and measured.

A grid of ε is fitted in parts if memory is short. Because a model does not depend on the other ε of the grid, and its
noise stream has its own name, fitting in parts gives the same bits.
"""

import contextlib
import errno
import os
import resource
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from dpmf_cli.algorithms.baselines.clean_averages import averages_by
from dpmf_cli.algorithms.shared.base import Algorithm, Model, PrivateAlgorithm, for_new_users
from dpmf_cli.algorithms.shared.budget import EffectsParameters
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.sample_fits import RecordCosts
from dpmf_cli.core.compiled.lane_groups import MAXIMUM_WIDTH
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import SECRET, Seed, UnaccountedNoiseError
from dpmf_cli.datasets import DataIdentity, open_cached
from dpmf_cli.datasets.canonical import Stars
from dpmf_cli.evaluation.metrics import GROUPED, RMSE, error_cdf, errors_by_group, errors_of, top_items
from dpmf_cli.experiment.results.task import Cut, Outcome, Task, TaskResult
from dpmf_cli.experiment.running.cutting import cut_ratings
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Mode

MEMORY_SHARE = 0.6
"""Fraction that one fit may hold of a core's equal part of the machine's memory."""
_LIMIT = Path("/sys/fs/cgroup/memory.max")


def memory() -> int:
    """Bytes of memory of this machine, or of the container that this process runs in."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # no such file, or "max" in it
        there = min(there, int(_LIMIT.read_text()))
    return there


def room() -> float:
    """Bytes that one fit may hold on this machine, without the ratings."""
    return MEMORY_SHARE * memory() / (os.cpu_count() or 1)


def parts(
    algorithm: Algorithm, shape: Shape, grid: int, within: float, *, apart: bool = False
) -> list[slice]:
    """The parts of a grid that each fit `within` bytes, but have at least one group of lanes; or its single ε."""
    if apart:
        return [slice(at, at + 1) for at in range(grid)]
    size = grid
    while size > MAXIMUM_WIDTH and algorithm.cost(shape, size).bytes > within:
        size = max(MAXIMUM_WIDTH, size // 2 // MAXIMUM_WIDTH * MAXIMUM_WIDTH)
    return [slice(start, min(start + size, grid)) for start in range(0, grid, size)]


def cost_in_parts(
    algorithm: Algorithm, shape: Shape, grid: int, within: float, *, apart: bool = False
) -> Cost:
    """The cost of fitting the `parts` of a grid one after the other, with only one part in memory."""
    each = parts(algorithm, shape, grid, within, apart=apart)
    costs = [algorithm.cost(shape, part.stop - part.start) for part in each]
    whole = sum(costs, Cost(0.0, 0.0))
    return Cost(whole.seconds, max((cost.bytes for cost in costs), default=0.0), whole.far)


def joined(results: Sequence[TaskResult]) -> TaskResult:
    """The result for a grid, from those for its parts, in order."""

    def strung(parts: Iterable[Iterable[Any]]) -> tuple[Any, ...]:
        return tuple(chain.from_iterable(parts))

    records = [asdict(result.records) for result in results if result.records]
    costs = {key: strung(each[key] for each in records) for key in (records[0] if records else ())}
    others = {key: strung(result.others[key] for result in results) for key in results[0].others}
    steps = tuple(
        {
            key: list(chain(*(step[key] for step in parts))) if isinstance(first, list) else first
            for key, first in parts[0].items()
        }
        for parts in zip(*(result.ledger for result in results), strict=True)
    )
    names = ("epsilons", "rmse", "claimed", "provable", "error_cdf", "ranking")
    columns = {name: strung(getattr(result, name) for result in results) for name in names}
    of_records = RecordCosts(**costs) if records else None
    return TaskResult(**columns, others=others, ledger=steps, records=of_records)


def execute(tasks: Sequence[Task], train: Ratings, test: Ratings) -> list[TaskResult]:
    """The results of a batch of tasks (see `plan.priced`), fitted on training ratings and measured on test ratings.

    A task's result does not depend on the other tasks of the batch, nor on whether memory is short, so that its grid
    is fitted in parts.
    Ratings in another unit than stars are fitted and predicted in stars; errors are in rating units.
    Ratings of new users are not fitted: fitted models predict from them, and each ε then has a fit of its own.
    """
    rated, unit, streams = test, 1.0, tasks[0].streams()
    if tasks[0].data.to_stars:
        stars = Stars(train.scale)
        train, test, unit = stars.of(train), stars.of(test), stars.unit
    fitted, own, cut = train, None, [slice(None)]
    apart = tasks[0].cut.of_new_users
    if apart:
        new = test.user_counts[train.users] > 0
        fitted, own = train.select(~new), train.select(new)
    if len(tasks) == 1:
        shape = Shape(train.n_users, train.n_items, len(train))
        cut = parts(tasks[0].algorithm, shape, len(tasks[0].epsilons), room(), apart=apart)

    def of_part(part: slice) -> list[TaskResult]:  # its models are freed before the next part is fitted
        pieces = [replace(task, epsilons=task.epsilons[part]) for task in tasks]
        ledgers = [
            Ledger(task.epsilons, task.algorithm.mode, task.algorithm.spends_delta)
            if isinstance(task.algorithm, PrivateAlgorithm)
            else Ledger(task.epsilons, Mode.CORRECTED)
            for task in pieces
        ]
        models = tasks[0].algorithm.fit_together(
            [task.algorithm for task in pieces],
            fitted,
            [ledger.limit for ledger in ledgers],
            streams=streams,
            curators=[Curator(ledger, streams) for ledger in ledgers],
        )
        if own is not None:
            models = [for_new_users(model, tasks[0].algorithm, own) for model in models]
        fits = zip(pieces, models, ledgers, strict=True)
        return [_measure(*each, train, test, rated, unit) for each in fits]

    found = list(map(of_part, cut))
    return found[0] if len(found) == 1 else [joined([result for (result,) in found])]


def _measure(
    task: Task, model: Model, ledger: Ledger, train: Ratings, test: Ratings, rated: Ratings, unit: float
) -> TaskResult:
    """What a task asks to be measured: the predictions' errors, (E, 2) ranking metrics, (E, X) their distribution.

    rated   the test ratings in rating units
    unit    the size of the unit of `train` and `test`, in rating units
    """
    ranking: tuple[tuple[float, ...], ...] = ()
    if task.ranking is not None:
        found = top_items(model.predict, train, rated, task.ranking, lanes=len(task.epsilons))
        ranking = tuple(map(tuple, found.tolist()))
    result = TaskResult(
        task.epsilons,
        (),
        tuple(ledger.claimed.tolist()),
        tuple(ledger.provable.tolist()),
        tuple(entry.record() for entry in ledger.entries),
        records=getattr(model, "record_costs", None),
        ranking=ranking,
    )
    if task.algorithm.scores_only:
        return result
    predictions = model.predict(test.users, test.items)
    if task.algorithm.clip_predictions:
        predictions = np.clip(predictions, test.scale.minimum, test.scale.maximum)
    errors = {key: tuple((unit * each).tolist()) for key, each in errors_of(predictions, test.values).items()}
    if task.groups:  # against `ia` with its defaults, computed anew so that no task needs another one
        items = averages_by("items", train, np.array([EffectsParameters().beta_m]))
        grouped = errors_by_group(predictions, items[test.items, 0], train, test)
        grouped[:-1] *= unit
        errors |= {metric.key: tuple(row) for metric, row in zip(GROUPED, grouped.tolist(), strict=True)}
    cdf: tuple[tuple[float, ...], ...] = ()
    if task.limits:
        limits = tuple(limit / unit for limit in task.limits)
        cdf = tuple(map(tuple, error_cdf(predictions, test.values, limits).tolist()))
    return replace(result, rmse=errors.pop(RMSE.key), others=errors, error_cdf=cdf)


Batch = tuple[Task, ...]
"""One task, or several that share a fit, executed together in one process."""

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)


def together(tasks: Iterable[Task]) -> list[Batch]:
    """Batches of tasks, ordered by their first task: those whose algorithms share a fit, up to the lanes of one pass
    or `settings_at_once`; others alone."""
    batches: list[list[Task]] = []
    last: dict[tuple[Any, ...], list[Task]] = {}
    for task in tasks:
        # For new users each ε has a fit of its own, and with a secret seed each task has noise of its own.
        apart = task.cut.of_new_users or task.seed == SECRET
        shared, most = None if apart else task.algorithm.shared_fit, task.algorithm.settings_at_once
        grid = task.epsilons if most else None
        key = (task.data, task.seed, task.cut, task.run, task.algorithm.algorithm, shared, grid)
        batch = last.get(key, []) if shared else []
        lanes = sum(len(each.epsilons) for each in (*batch, task))
        if batch and (len(batch) < most if most else lanes <= MAXIMUM_WIDTH):
            batch.append(task)
        else:
            last[key] = [task]
            batches.append(last[key])
    return [tuple(batch) for batch in batches]


def run_batch(tasks: Batch, cache: Path) -> list[Outcome]:
    """The outcomes of a batch, fitted and measured in the current process. Raises DpmfError for what a user has to
    mend first."""
    begin = time.thread_time()
    results: Sequence[TaskResult | None] = [None] * len(tasks)
    failure = None
    first = tasks[0]
    try:
        with _threads(len(sys.modules)).limit(limits=1):
            train, test = opened_split(first.data, first.seed, first.cut, cache)
            results = execute(tasks, train, test)
    except DpmfError:
        raise
    except UnaccountedNoiseError as error:
        raise DpmfError(f"{first.algorithm.name}: {error}") from None
    except OSError as error:
        if error.errno in _FULL:
            what = f"{error.filename or 'the disk'}: cannot be written: {error.strerror}"
            fix = "free some space and run the same command again. Finished tasks are kept"
            raise DpmfError(f"{what}; {fix}") from None
        failure = traceback.format_exc()
    except MemoryError:
        raise DpmfError(
            f"not enough memory for {first.algorithm.name} on {first.data.key}; use a smaller -j, or see "
            "`dpmf plan`. Finished tasks are kept"
        ) from None
    except Exception:
        failure = traceback.format_exc()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    seconds = (time.thread_time() - begin) / len(tasks)
    return [
        Outcome(task, result, seconds, os.getpid(), peak, failure)
        for task, result in zip(tasks, results, strict=True)
    ]


@lru_cache(maxsize=1)
def _threads(modules: int) -> ThreadpoolController:
    """The controller of the threads of the loaded libraries.

    Because looking for libraries takes as long as a small fit, and more can only be loaded if there are more
    `modules`, the number of modules is the key of the cache.
    """
    return ThreadpoolController()


@lru_cache(maxsize=1)
def opened_split(data: DataIdentity, seed: Seed, cut: Cut, cache: Path) -> tuple[Ratings, Ratings]:
    """(training ratings, test ratings), cached while a process works on tasks of one cut."""
    test = open_cached(data.test_checksum, cache) if data.test_checksum else None
    return cut_ratings(open_cached(data.checksum, cache), cut, dataset=data.stream, seed=seed, test=test)
