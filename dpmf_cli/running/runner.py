"""The runner: has tasks executed here or elsewhere, stores each result as it comes, and reports progress."""

from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from dpmf_cli.results.store import Store
from dpmf_cli.results.task import Outcome, Task
from dpmf_cli.running.claims import Claims
from dpmf_cli.running.plan import Plan
from dpmf_cli.terminal import Progress, say


class Executor(Protocol):
    """Where batches of tasks are executed."""

    @property
    def processes(self) -> int:
        """The number of processes that execute tasks, as far as is known."""
        ...

    def outcomes(self, batches: Claims, cache: Path) -> Generator[list[Outcome]]:
        """The outcomes of each batch, in the order in which batches end. The data are in `cache` on this machine.

        Raises DpmfError for errors that a user can mend. When the caller stops iterating, unfinished batches are
        stopped.
        """
        ...


def run_plan(plan: Plan, store: Store, cache: Path, executor: Executor, progress: Progress) -> list[Outcome]:
    """Has the tasks that are left executed, stores their results, and returns their outcomes without the results.

    If a task raises, that is recorded and the other tasks go on. Tasks that another run finishes in the meantime are
    not computed. Raises DpmfError where results cannot be kept; finished tasks stay finished.
    """
    ended: list[Outcome] = []
    if not plan.batches:
        return ended

    def elsewhere(task: Task) -> None:
        progress.finished(task.algorithm.name, plan.cost_of(task))

    def waiting(tasks: int) -> None:
        say(f"another run computes the {tasks} tasks that are left: waiting for that run")

    with (
        progress,
        Claims(store, plan.batches, elsewhere, waiting) as claims,
        closing(executor.outcomes(claims, cache)) as found,
    ):
        for outcomes in found:
            for outcome in outcomes:
                if outcome.result is not None:
                    store.write(outcome.task, outcome.result)
                progress.finished(outcome.task.algorithm.name, plan.cost_of(outcome.task))
            claims.release(outcome.task for outcome in outcomes)
            # Results are in the store now, so a long run need not hold them in memory.
            ended += (replace(outcome, result=None) for outcome in outcomes)
    return ended
