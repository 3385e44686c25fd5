"""What an exploration of a paper has found, as plain data: the settings that were tried, and what held in each.

Verdicts are computed from it (`papers.verdicts`), and by nothing else.
"""

import json
from pathlib import Path

from pydantic import Field, ValidationError

from dpmf_cli.errors import DpmfError
from dpmf_cli.papers.space import Setting, Space
from dpmf_cli.strict_model import StrictModel

FOLDER = "explored"
"""Where records are: beside the pages of papers, and in a results folder."""

Halves = tuple[tuple[bool, ...], tuple[bool, ...]]
"""Whether each part of a claim holds: on the folds to choose by, and on those to test by."""


class Printed(StrictModel):
    """A printed cell, and how far from it a measured one may be: by a factor where it is a `ratio`."""

    printed: float
    tolerance: float
    ratio: bool


class Tried(StrictModel):
    """One setting. A claim or a cell without a result is not in it.

    cells   by their names, the measured ones on both halves of the folds; None where a crossing is not reached
    """

    setting: Setting
    claims: dict[str, Halves]
    cells: dict[str, tuple[float | None, float | None]] = Field(default_factory=dict)


class Explored(StrictModel):
    """What was found on one data set.

    checksum, partition, folds, runs, seed   of the data, and how they were cut: the first `folds` of `partition`
    configs    by their names, what was run
    open       by the name of each choice the names of its values, in the order of a setting's numbers
    sets       the digest of these choices and of what their values set
    printed    the printed cells of this data set, by their names
    measured   by claim the figures of the shipped setting; where parameters were chosen, of the chosen ones
    fixed      the claims whose figures are the same in every setting
    chosen     by claim its parts where for each ε the best setting of the choosing folds is taken, on the testing
               folds; None for a paper that did not choose so
    """

    title: str
    checksum: str
    partition: int
    folds: int
    runs: int
    seed: int
    configs: tuple[str, ...]
    open: dict[str, tuple[str, ...]]
    sets: str = ""
    printed: dict[str, Printed]
    tried: tuple[Tried, ...]
    measured: dict[str, str]
    fixed: tuple[str, ...] = ()
    chosen: dict[str, tuple[bool, ...]] | None = None

    def values(self, setting: Setting) -> dict[str, str]:
        """By the name of each choice that of its value."""
        return {name: values[at] for (name, values), at in zip(self.open.items(), setting, strict=True)}

    def is_of(self, space: Space) -> bool:
        """Whether it is of that space as it stands."""
        return self.sets == space.digest


class Proved(StrictModel):
    """What audits say of a theorem: whether no replay contradicts it, and whether the ledger proves it."""

    held: bool
    proved: bool
    measured: str


class Record(StrictModel):
    """All that was found of one paper.

    data       by the key of a data set
    theorems   by the claim's id
    """

    paper: str
    version: str
    data: dict[str, Explored] = Field(default_factory=dict)
    theorems: dict[str, Proved] = Field(default_factory=dict)


def path_of(folder: Path, key: str) -> Path:
    return folder / f"{key}.json"


def read_record(path: Path) -> Record | None:
    """A record; None where there is none. Raises DpmfError for a file that is none."""
    try:
        return Record.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise DpmfError(
            f"{path}: is no record of an exploration: {error}; delete it and explore again"
        ) from None


def text_of(record: Record) -> str:
    """A record as JSON, a setting a line, so that changes can be read."""
    data = record.model_dump(mode="json")
    tried = {key: [json.dumps(each) for each in found.pop("tried")] for key, found in data["data"].items()}
    for key, found in data["data"].items():
        found["tried"] = f"@{key}"
    text = json.dumps(data, indent=1, ensure_ascii=False)
    for key, rows in tried.items():
        text = text.replace(f'"@{key}"', "[\n" + ",\n".join(rows) + "\n]")
    return text + "\n"
