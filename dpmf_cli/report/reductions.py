"""Leaves out experiments that are reductions of others, so that no table shows the same thing twice."""

from collections.abc import Sequence

from dpmf_cli.config.loading import is_reduction
from dpmf_cli.evaluation.curves import Experiment


def whole_first(experiments: Sequence[Experiment]) -> tuple[list[Experiment], list[str]]:
    """Returns the experiments without reductions of another one here on the same data, and a note on each reduction.

    A reduction would put every algorithm into the table a second time, measured on fewer folds or runs.
    """
    kept, notes = [], []
    for each in experiments:
        whole = next((other.name for other in experiments if _is_reduction(each, other)), None)
        if whole is None:
            kept.append(each)
        else:
            notes.append(f"{each.name}: left out, because it is a reduction of {whole}, which is here")
    return kept, notes


def _is_reduction(each: Experiment, other: Experiment) -> bool:
    return each.title == other.title and is_reduction(each.name, other.name)
