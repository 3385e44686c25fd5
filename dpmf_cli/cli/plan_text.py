"""Describes a plan: the output of `dpmf plan`."""

import json
from collections.abc import Sequence

from dpmf_cli.datasets import Sizes
from dpmf_cli.datasets.spec import SyntheticSpec
from dpmf_cli.evaluation.crossings import MOST_ROUNDS
from dpmf_cli.evaluation.numbers import duration
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.running.plan import Plan
from dpmf_cli.report.tables.layout import Group, TextTable, terminal

_MORE = (
    f"more may come: ε are added where curves cross a baseline (`refine`), in at most {MOST_ROUNDS} rounds, "
    "each of which takes at most as long as the private part"
)
"""A note on added ε. The plan cannot know how many there are, since that depends on results."""


def describe(
    config: ExperimentConfig, plan: Plan, size: Sizes, jobs: int, *, seen: Sequence[str] = (), as_json: bool
) -> str:
    """Returns a plan as a table or as JSON. `seen` has lines about the ratings, and warnings."""
    seconds, peak = plan.seconds(jobs), plan.peak_bytes(jobs)
    parts = [
        {
            "label": part.entry.name,
            "tasks": part.total,
            "done": part.done,
            "left": len(part.left),
            "epsilons_left": max((len(task.epsilons) for task in part.left), default=0),
            "seconds_left": round(part.seconds_left, 3),
        }
        for part in plan.entries
    ]
    if as_json:
        record = {
            "name": config.name,
            "dataset": config.dataset.key,
            "users": size.users,
            "items": size.items,
            "ratings": size.ratings,
            "sizes": size.basis,
            "seen": list(seen),
            "processes": jobs,
            "seconds": round(seconds, 3),
            "peak_bytes": int(peak),
            "seconds_to_make_data": round(plan.made.seconds, 3),
            "bytes_to_make_data": int(plan.made.bytes),
            "refines": config.refines,
            "algorithms": parts,
        }
        return json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    rows = [
        (*(str(value) for value in list(each.values())[:-1]), duration(part.seconds_left))
        for each, part in zip(parts, plan.entries, strict=True)
    ]
    if isinstance(config.dataset, SyntheticSpec):
        source = "made up, as many as the config asks for"
    else:
        source = "counted" if size.basis == "counted" else f"{size.basis}: the data are not read yet"
    title = f"{config.name}: {config.dataset.key}, {size.ratings:,} ratings by {size.users:,} users "
    return terminal(
        TextTable(
            header=("algorithm", "tasks", "done", "left", "ε left", "one core"),
            alignment="lrrrrr",
            groups=(Group(f"{title}of {size.items:,} items ({source})", tuple(rows)),),
            notes=(
                f"left: {len(plan.left)} of {plan.total} tasks, about {duration(seconds)} in {jobs} "
                f"process{'es' if jobs > 1 else ''}, up to {peak / 2**30:.2f} GiB of memory in all",
                *(
                    [f"{duration(plan.made.seconds)} of that is for making up the ratings first"]
                    if plan.made.seconds
                    else []
                ),
                *([_MORE] if config.refines else []),
                *config.left_to_defaults,
                "times are estimates, for this machine when it is idle and kernels are compiled",
                *seen,
            ),
        )
    )
