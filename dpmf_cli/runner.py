"""The runner: executes tasks in this process or in several, stores each result as it comes, and tells."""

import os
import resource
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from threadpoolctl import threadpool_limits

from dpmf_cli.datasets import open_cached
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.folds import split
from dpmf_cli.plan import Plan
from dpmf_cli.progress import Progress
from dpmf_cli.ratings import Ratings
from dpmf_cli.store import Store
from dpmf_cli.tasks import Task, execute, fold_assignment


@dataclass(frozen=True)
class Outcome:
    """How a task ended. `failure` is its traceback, `refusal` the message of a DpmfError: no more tasks."""

    task: Task
    seconds: float
    process: int
    peak_bytes: int
    failure: str | None = None
    refusal: str | None = None


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_plan(plan: Plan, store: Store, cache: Path, jobs: int, progress: Progress) -> list[Outcome]:
    """Executes the tasks that are left, stores their results, and returns how each ended.

    A task that raises is recorded and the others go on. Raises DpmfError where results cannot be kept, and
    KeyboardInterrupt on Ctrl-C: what was finished stays finished either way.
    """
    outcomes = []
    tasks = plan.left
    with progress:
        for outcome in _outcomes(tasks, store, cache, min(jobs, len(tasks))):
            if outcome.refusal is not None:
                raise DpmfError(outcome.refusal)
            progress.finished(outcome.task.algorithm.name, plan.cost_of(outcome.task))
            outcomes.append(outcome)
    return outcomes


def _outcomes(tasks: list[Task], store: Store, cache: Path, jobs: int) -> Iterator[Outcome]:
    """Outcomes in the order in which tasks finish."""
    if jobs <= 1:
        yield from (_run_one(task, store.root, cache) for task in tasks)
        return
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1, pre_dispatch="3*n_jobs")
    try:
        yield from parallel(delayed(_run_one)(task, store.root, cache) for task in tasks)
    except TerminatedWorkerError:
        raise DpmfError(
            "a worker process was killed (out of memory, or by hand); finished tasks are kept: run the same "
            "command again, with a smaller -j if memory was short"
        ) from None


@lru_cache(maxsize=1)
def _fold(
    dataset: str, checksum: str, seed: int, folds: int, fold: int, cache: Path
) -> tuple[Ratings, Ratings]:
    """(training ratings, test ratings), kept while a process works on tasks of one fold."""
    ratings = open_cached(checksum, cache)
    return split(ratings, fold_assignment(dataset, seed, folds, len(ratings)), fold)


def _run_one(task: Task, results: Path, cache: Path) -> Outcome:
    """One task, in whichever process: fit, measure, store."""
    begin = time.perf_counter()
    failure = refusal = None
    try:
        with threadpool_limits(1):
            train, test = _fold(task.dataset, task.checksum, task.seed, task.folds, task.fold, cache)
            result = execute(task, train, test)
        Store(results).write(task, result)
    except DpmfError as error:
        refusal = str(error)
    except Exception:
        failure = traceback.format_exc()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Outcome(task, time.perf_counter() - begin, os.getpid(), peak, failure, refusal)
