"""Runs audits in processes, and resumes where an earlier command stopped."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from dpmf_cli.audit.job import Audited, Job
from dpmf_cli.audit.kept import audited_and_kept, known
from dpmf_cli.results.store import Store
from dpmf_cli.running.processes import each_of
from dpmf_cli.terminal import Progress, say


def outcomes_of(jobs: Sequence[Job], title: str, results: Path, processes: int) -> dict[str, Audited]:
    """The outcome of each job, by its name. Jobs whose outcome is in the results folder are not run again."""
    Store(results).prepare()
    left = [job for job in jobs if known(results, job) is None]
    say(f"{title}: {len(jobs)} algorithms to audit, {len(jobs) - len(left)} done before")
    with Progress(title, len(left), float(len(left))) as progress:
        for done in each_of(partial(audited_and_kept, results=results), left, min(processes, len(left))):
            progress.finished(done.label, 1.0)
    return {job.name: outcome for job in jobs if (outcome := known(results, job)) is not None}
