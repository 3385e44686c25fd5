"""A suggested config for a file of ratings: every provable method for one kind of privacy."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from pydantic import ValidationError

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.cost import Shape
from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.terminal import duration
from dpmf_cli.privacy.neighbours import Mode, Neighbours

FOLDS, RUNS = 5, 2

FEWEST = 50
"""Fewest ratings for which a config is suggested: ten in each fold."""

GRID = (0.3, 1.0, 3.0, 10.0, 30.0)
"""The ε of a suggested grid, beside the one that the user asks for. Where curves cross, the run adds more."""

MOST_SECONDS, MOST_BYTES = 60.0, 2e9
"""Most time and memory of one fit for the complete grid. Methods that need more are left out, and named."""


def among(
    entries: Iterable[tuple[str, PrivateAlgorithm]], keys: str | None
) -> Iterable[tuple[str, PrivateAlgorithm]]:
    """The entries of these keys, which commas separate; all if it is None. Raises `DpmfError` for another."""
    known = dict(entries)
    asked = known if keys is None else dict.fromkeys(map(str.strip, keys.split(",")))
    for key in asked:
        if key not in known:
            raise DpmfError(f'--methods: "{key}" is no provable method here{did_you_mean(key, known)}')
    return [(key, known[key]) for key in asked]


@dataclass(frozen=True)
class Candidates:
    """The entries of a suggested config, and the methods that are left out, each with the reason."""

    taken: tuple[Any, ...]
    left_out: tuple[str, ...]


def fitting(
    entries: Iterable[tuple[Any, PrivateAlgorithm]], ratings: Ratings, epsilon: float, what: str
) -> Candidates:
    """The entries that this machine has the time and memory to fit on these ratings, at least one.

    entries   pairs: an entry as a config writes it, and the algorithm that it stands for

    Raises `DpmfError` if there is none, or if there are too few ratings. The message names the ratings by `what`.
    """
    if len(ratings) < FEWEST:
        raise DpmfError(
            f"{what}: {len(ratings)} ratings are too few to tell methods apart; give {FEWEST} or more"
        )
    shape = Shape(ratings.n_users, ratings.n_items, round((1 - 1 / FOLDS) * len(ratings)))
    taken, left_out = [], []
    for written, entry in entries:
        cost = entry.cost(shape, len(grid_with(epsilon)))
        takes = duration(cost.seconds) if cost.seconds > MOST_SECONDS else f"{cost.bytes / 1e9:.0f} GB"
        if cost.seconds > MOST_SECONDS or cost.bytes > MOST_BYTES:
            left_out.append(f"{entry.name} ({entry.algorithm}): one fit takes about {takes}")
        else:
            taken.append(written)
    if not taken:
        raise DpmfError(f"{what}: no method fits this machine: {'; '.join(left_out)}")
    return Candidates(tuple(taken), tuple(left_out))


PROTECTS = {"value": "bounded", "presence": "unbounded", "user": "user", "local": "local"}
"""The neighbours that each value of --protects stands for."""


def asked_for(protects: str, epsilon: float) -> Neighbours:
    """The neighbours that a value of --protects stands for.

    Raises `DpmfError` for an unknown value, and for an ε outside of 0.001 to 10000.
    """
    if protects not in PROTECTS:
        raise DpmfError(f"--protects {protects}: choose one of {', '.join(PROTECTS)}")
    if not 1e-3 <= epsilon <= 1e4:
        raise DpmfError(f"--epsilon {epsilon:g}: give one from 0.001 to 10000")
    return Neighbours(PROTECTS[protects])


def grid_with(epsilon: float) -> tuple[float, ...]:
    """(E,) the ε of a suggested config, ascending, with at least one below and one above `epsilon`."""
    wanted = {*GRID, epsilon} | ({epsilon / 3} if epsilon <= GRID[0] else set())
    return tuple(sorted(wanted | ({3 * epsilon} if epsilon >= GRID[-1] else set())))


def name_of(stem: str) -> str:
    """A name for a data set and its results, from a file's name, which no data set of the catalog has."""
    return f"own-{re.sub(r'[^A-Za-z0-9._-]+', '-', stem).strip('-._') or 'ratings'}"[:60]


GUESSED = (
    "# The scale is guessed from the file. An ε holds only for a public scale: write what your site allows, and\n"
    "# remove `guessed`. `dpmf release` refuses the config until then.\n"
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
    """The text of a config file, with comments on what a reader may want to change.

    keys   all keys but the grid and the methods: the data set, folds, runs and others
    note   lines of comment at the top
    why    a comment above the methods
    """
    left_out = "".join(f"# left out: {each}\n" for each in methods.left_out)
    by = f"# Written by `{' '.join(command.splitlines())}`. Change it as you like, and `dpmf run` it.\n"
    parts: list[tuple[str, dict[str, Any]]] = [
        (by + note, dict(keys)),
        ("# More ε are added where curves cross.\n", {"epsilons": list(grid_with(epsilon))}),
        ("", {"neighbours": neighbours.value, "mode": Mode.CORRECTED.value}),
        ("# What privacy costs is the distance to the same method without noise.\n", {"twins": True}),
        (f"# {why}\n{left_out}", {"algorithms": list(methods.taken)}),
    ]
    return "".join(
        comment + yaml.safe_dump(values, sort_keys=False, allow_unicode=True) for comment, values in parts
    )


def provable(neighbours: Neighbours) -> Iterator[tuple[str, PrivateAlgorithm]]:
    """Yields, with their keys, the methods of the registry whose every ε is provable for these neighbours.

    They are those with a corrected mode, with their defaults, except methods that need a parameter without a default,
    or a column of the data set.
    """
    for key, family in PRIVATE.items():
        if (neighbours, Mode.CORRECTED) not in family.variants:
            continue
        try:
            entry = family.model_validate(
                {"algorithm": key, "neighbours": neighbours, "mode": Mode.CORRECTED}
            )
        except ValidationError:
            continue  # a parameter has no default
        if not (entry.needs_epsilons or entry.scores_only):
            yield key, entry
