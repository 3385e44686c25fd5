"""A config for a file of ratings that nobody has written one for: every provable method for one kind of privacy."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import ValidationError

from dpmf_cli.algorithms.costs.cost import Shape
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.evaluation.numbers import duration
from dpmf_cli.privacy.neighbours import Mode, Neighbours

FOLDS, RUNS = 5, 2

FEWEST = 50
"""Ratings that a config is suggested for: ten in each fold."""

GRID = (0.3, 1.0, 3.0, 10.0, 30.0)
"""ε beside the one that is asked for. Where curves cross, the run adds more."""

MOST_SECONDS, MOST_BYTES = 60.0, 2e9
"""What one fit for the whole grid may take; methods that take more are left out, and named."""


@dataclass(frozen=True)
class Candidates:
    """Which entries a suggested config has, and which methods not, each with the reason."""

    taken: tuple[Any, ...]
    left_out: tuple[str, ...]


def candidates(entries: Iterable[tuple[Any, PrivateAlgorithm]], shape: Shape, grid: int) -> Candidates:
    """Of entries, each as a config writes it and as what that stands for, those that a training set of that size
    leaves time and memory for."""
    taken, left_out = [], []
    for written, entry in entries:
        cost = entry.cost(shape, grid)
        if cost.seconds > MOST_SECONDS:
            left_out.append(f"{entry.name} ({entry.algorithm}): one fit takes about {duration(cost.seconds)}")
        elif cost.bytes > MOST_BYTES:
            left_out.append(
                f"{entry.name} ({entry.algorithm}): one fit takes about {cost.bytes / 1e9:.0f} GB"
            )
        else:
            taken.append(written)
    return Candidates(tuple(taken), tuple(left_out))


def grid_with(epsilon: float) -> tuple[float, ...]:
    """(E,) the ε of a suggested config, ascending: one at least below and above the one that is asked for."""
    wanted = {*GRID, epsilon} | ({epsilon / 3} if epsilon <= GRID[0] else set())
    return tuple(sorted(wanted | ({3 * epsilon} if epsilon >= GRID[-1] else set())))


def name_of(stem: str) -> str:
    """A name for a data set and for results, from the name of a file; never that of a set of the catalog."""
    return f"own-{re.sub(r'[^A-Za-z0-9._-]+', '-', stem).strip('-._') or 'ratings'}"[:60]


GUESSED = (
    "# The scale is what occurs in the file. An ε holds for a public scale: write what your site allows before you\n"
    "# release a model.\n"
)


def config_text(
    keys: Mapping[str, Any],
    neighbours: Neighbours,
    epsilon: float,
    methods: Candidates,
    command: str,
    *,
    note: str = "",
    why: str = "Every method whose ε can be proved.",
) -> str:
    """The config as a file has it, with a comment for what a reader may want to change.

    keys   of the data set, of folds and runs, and what else the config has beside the grid and the methods
    note   lines of comment above all of it; `why` is one above the methods
    """
    left_out = "".join(f"# left out: {each}\n" for each in methods.left_out)
    above = (
        f"# Written by `{' '.join(command.splitlines())}`. Change it as you like, and `dpmf run` it.\n{note}"
    )
    parts: list[tuple[str, dict[str, Any]]] = [
        (above, dict(keys)),
        ("# More ε are added where curves cross.\n", {"epsilons": list(grid_with(epsilon))}),
        ("", {"neighbours": neighbours.value, "mode": Mode.CORRECTED.value}),
        (f"# {why}\n{left_out}", {"algorithms": list(methods.taken)}),
    ]
    return "".join(
        comment + yaml.safe_dump(values, sort_keys=False, allow_unicode=True) for comment, values in parts
    )


def provable(neighbours: Neighbours) -> Iterator[tuple[str, PrivateAlgorithm]]:
    """By their keys, the methods of the registry whose every ε is provable for these neighbours: those with a
    corrected mode, with their defaults; none that asks for more."""
    for key, family in PRIVATE.items():
        if (neighbours, Mode.CORRECTED) not in family.variants:
            continue
        try:
            entry = family.model_validate(
                {"algorithm": key, "neighbours": neighbours, "mode": Mode.CORRECTED}
            )
        except ValidationError:
            continue  # it has a parameter without a default
        if entry.needs_column is None:
            yield key, entry
