"""Names of experiments: a config's own, and those of its reductions, `friedman_fig3a.ml-100k.held-out-1.runs-1`."""

MARK = "."
"""What separates an experiment's own name from what was changed; names of shipped configs have none."""

HELD_OUT, RUNS = "held-out-", "runs-"
"""How the marks begin of fewer folds held out and of fewer runs; the mark of another data set is its key."""


def whole_name(name: str) -> str:
    """The name of the experiment that one of this name is a reduction of; its own where it is none."""
    return name.partition(MARK)[0]


def is_reduction(name: str, whole: str) -> bool:
    """Whether the experiment of that name is one of `whole` made smaller; `whole` may be a reduction, too."""
    return name.startswith(f"{whole}{MARK}")


def is_on_own_data(name: str) -> bool:
    """Whether an experiment of that name has the data set of its config: no mark names another one."""
    _, *marks = name.split(MARK)
    return all(mark.startswith((HELD_OUT, RUNS)) for mark in marks)
