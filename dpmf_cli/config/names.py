"""Names of experiments: a config's own, and those of its reductions, `friedman_fig3a.ml-100k.held-out-1.runs-1`."""

MARK = "."
"""Separates an experiment's own name from the marks of what was changed. Names of shipped configs do not have it."""

HELD_OUT, RUNS = "held-out-", "runs-"
"""How the marks for fewer held-out folds and for fewer runs begin. The mark for another data set is its key."""


def whole_name(name: str) -> str:
    """Returns the name of the complete experiment, given that of a reduction or its own."""
    return name.partition(MARK)[0]


def is_reduction(name: str, whole: str) -> bool:
    """Whether the experiment of that name is a reduction of `whole`, which may be a reduction itself."""
    return name.startswith(f"{whole}{MARK}")


def is_on_own_data(name: str) -> bool:
    """Whether an experiment of that name uses its config's data set: no mark names another data set."""
    _, *marks = name.split(MARK)
    return all(mark.startswith((HELD_OUT, RUNS)) for mark in marks)
