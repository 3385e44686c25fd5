"""Ids of users and items as text, whatever the format of their file."""

import numpy as np
from numpy.typing import NDArray


def labelled(ids: NDArray[np.object_]) -> tuple[NDArray[np.int32], list[str]]:
    """Returns (n,) positions in the list of distinct ids, and that list.

    (pandas' own categories would read "007" as 7.0.)
    """
    import pandas as pd

    codes, labels = pd.factorize(ids)
    return codes.astype(np.int32), labels.tolist()


def fault_of(label: str) -> str | None:
    """Says in words why a text is not an id; None if it is one."""
    if not label.strip():
        return "is empty"
    return "holds a line end" if "\n" in label or "\0" in label else None
