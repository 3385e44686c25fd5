"""Names of experiments: a config's own, and those of its reductions, `friedman_fig3a.ml-100k.held-out-1.runs-1`."""

MARK = "."
"""What separates an experiment's own name from what was changed; names of shipped configs have none."""


def whole_name(name: str) -> str:
    """The name of the experiment that one of this name is a reduction of; its own where it is none."""
    return name.partition(MARK)[0]


def is_reduction(name: str, whole: str) -> bool:
    """Whether the experiment of that name is one of `whole` made smaller; `whole` may be a reduction, too."""
    return name.startswith(f"{whole}{MARK}")
