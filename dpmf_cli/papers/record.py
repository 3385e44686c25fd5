"""The record of a paper's exploration, as plain data: the settings that were tried, and what held in each.

Verdicts are computed from the record alone (`papers.verdicts`).
"""

import json
from pathlib import Path

from pydantic import Field, ValidationError

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.papers.space import Setting, Space

FOLDER = "explored"
"""The folder of records, beside the pages of papers and in a results folder."""

Halves = tuple[tuple[bool, ...], tuple[bool, ...]]
"""Whether each part of a claim holds: on the folds to choose by, and on the folds to test by."""


class Printed(StrictModel):
    """A printed cell, and how far from it a measured one may be: by a factor if `ratio`, else by a difference."""

    printed: float
    tolerance: float
    ratio: bool


class Tried(StrictModel):
    """One setting that was tried. A claim or a cell without a result is left out.

    cells   by name, the measured values on both halves of the folds; None for a crossing that is not reached
    """

    setting: Setting
    claims: dict[str, Halves]
    cells: dict[str, tuple[float | None, float | None]] = Field(default_factory=dict)


class Explored(StrictModel):
    """The findings on one data set.

    checksum, partition, folds, runs, seed   the data's checksum, and how they were split: the first `folds` of
               `partition` folds were held out
    configs    the names of the configs that were run
    open       by the name of each choice, the names of its values, in the order of a setting's numbers
    sets       the digest of these choices and of what their values set
    printed    the printed cells of this data set, by name
    measured   by claim, the figures with the shipped setting or, if parameters were chosen, with the chosen ones
    fixed      the claims whose figures are the same in every setting
    chosen     by claim, which parts hold on the testing folds if each ε has the best setting of the choosing folds;
               None for a paper that did not choose parameters for each ε
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
        """Returns by the name of each choice the name of its value."""
        return {name: values[at] for (name, values), at in zip(self.open.items(), setting, strict=True)}

    def is_of(self, space: Space) -> bool:
        """Returns whether it was found in that space as the space is now."""
        return self.sets == space.digest


class Proved(StrictModel):
    """What audits say about a theorem: whether no replay contradicts it, and whether the ledger proves it."""

    held: bool
    proved: bool
    measured: str


class Record(StrictModel):
    """All findings about one paper.

    data       by the key of a data set
    theorems   by the id of the claim
    """

    paper: str
    version: str
    data: dict[str, Explored] = Field(default_factory=dict)
    theorems: dict[str, Proved] = Field(default_factory=dict)


def path_of(folder: Path, key: str) -> Path:
    return folder / f"{key}.json"


def read_record(path: Path) -> Record | None:
    """Reads a record; None if there is no file. Raises DpmfError for a file that is not a record."""
    try:
        return Record.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise DpmfError(
            f"{path}: is not a record of an exploration: {error}; delete it and explore again"
        ) from None


def text_of(record: Record) -> str:
    """Returns a record as JSON, with one setting per line, so that changes can be read."""
    data = record.model_dump(mode="json")
    tried = {key: [json.dumps(each) for each in found.pop("tried")] for key, found in data["data"].items()}
    for key, found in data["data"].items():
        found["tried"] = f"@{key}"
    text = json.dumps(data, indent=1, ensure_ascii=False)
    for key, rows in tried.items():
        text = text.replace(f'"@{key}"', "[\n" + ",\n".join(rows) + "\n]")
    return text + "\n"
