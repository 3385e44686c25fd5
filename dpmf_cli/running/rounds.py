"""Runs what is left of an experiment, then adds and runs the ε that refine its crossings, round by round."""

from pathlib import Path

from dpmf_cli.datasets import Dataset
from dpmf_cli.evaluation.crossings import MOST_ROUNDS, epsilons_to_add
from dpmf_cli.results.collect import Collected, collect
from dpmf_cli.results.manifest import Ran
from dpmf_cli.results.store import Store
from dpmf_cli.results.task import Outcome
from dpmf_cli.running.machine import Machine
from dpmf_cli.running.plan import plan_for
from dpmf_cli.running.runner import Executor, run_plan
from dpmf_cli.terminal import Progress, say


def run_rounds(
    ran: Ran, dataset: Dataset, store: Store, cache: Path, executor: Executor, machine: Machine
) -> tuple[Ran, Collected, list[Outcome]]:
    """Returns what was run, with the added ε; the collected results; and the outcome of each task without its result.

    The ε that a round adds depend only on the results of earlier rounds. So a run that continues after an interrupt,
    or in other processes, adds the same ε. Raises DpmfError as `run_plan` does.
    """
    name, outcomes = ran.config.name, list[Outcome]()
    for number in range(MOST_ROUNDS + 1):
        plan = plan_for(ran.config, dataset, store, machine)
        if plan.left or not number:
            say(f"{name}: {'refining crossings' if number else ran.data.title}, {plan.summary}")
        progress = Progress(name, len(plan.left), sum(map(plan.cost_of, plan.left)))
        outcomes += run_plan(plan, store, cache, executor, progress)
        collected = collect(ran, store)
        if not ran.config.refines or number == MOST_ROUNDS or any(each.failure for each in outcomes):
            break
        added = epsilons_to_add(collected.shown)
        if not added:
            break
        ran = ran.with_added(added)
    return ran, collected, outcomes
