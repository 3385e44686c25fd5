"""The record of a paper's exploration, as plain data: the settings that were tried, and the margins in each.

Verdicts are computed from the record alone (`papers.verdicts`).
"""

import json
import math
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.papers.space import Setting

FOLDER = "explored"
"""The folder of records, beside the pages of papers and in a results folder."""

Margins = tuple[float | None, ...]
"""Margins of one inequality; None where the grid leaves the sign open, or a result is missing."""


Rounded = Annotated[float, AfterValidator(lambda value: float(f"{value:.6g}"))]
"""Logarithms of NumPy differ between processors in the last digits."""


UNBOUNDED = 1e6
"""A margin of a curve that has diverged, or of a crossing that is not reached."""


class PrintedValue(StrictModel):
    """A printed figure beside the measured one.

    measured   None for a crossing that is not on the grid, and for a curve that is not a number
    gap, off   as in `Crossing`; of a figure that is no crossing, gap is measured less printed
    """

    printed: float
    measured: Rounded | None
    gap: Rounded | None
    off: Rounded

    @classmethod
    def of(cls, printed: float, measured: float, tolerance: float) -> "PrintedValue":
        if not math.isfinite(measured):
            return cls(printed=printed, measured=None, gap=None, off=UNBOUNDED)
        gap = measured - printed
        return cls(printed=printed, measured=measured, gap=gap, off=abs(gap) / tolerance)


class Inequality(StrictModel):
    """One atom of a claim, under one reading of the sentence; unit, tolerance and note are as in `language.Margin`.

    said       both sides in the shipped setting or, if parameters were chosen for each ε, with the chosen ones
    shipped    the margins of the shipped setting on each of all folds
    chosen     the margins if each ε has the best setting, chosen on one half of the folds and measured on the other,
               and the other way round; None for a paper that did not choose parameters for each ε
    resampled  the means of two such margins in searches among resampled settings
    """

    claim: str
    text: str
    reading: str
    unit: str
    tolerance: float
    note: str = ""
    said: str = ""
    shipped: Margins = ()
    chosen: Margins | None = None
    resampled: Margins = ()


class Tried(StrictModel):
    """One setting that was tried.

    margins   for each inequality of the record its margins: on all folds together, then on each fold
    off       by the name of a printed value, how far off it is
    """

    setting: Setting
    margins: tuple[Margins, ...]
    off: dict[str, Rounded] = Field(default_factory=dict)


class Explored(StrictModel):
    """The findings on one data set.

    checksum, partition, folds, runs, seed   the data's checksum, and how they were split: the first `folds` of
               `partition` folds were held out
    configs    the names of the configs that were run
    open       by the name of each choice, the names of its values, in the order of a setting's numbers
    sets       the digest of what these choices set, of the rules, and of what is printed
    printed    the printed values of this data set, by name, with what the shipped setting has on all folds
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
    printed: dict[str, PrintedValue]
    atoms: tuple[Inequality, ...]
    tried: tuple[Tried, ...]

    def values(self, setting: Setting) -> dict[str, str]:
        """By the name of each choice the name of its value."""
        return {name: values[at] for (name, values), at in zip(self.open.items(), setting, strict=True)}


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
    """The record in a file; None if there is no file. Raises DpmfError for a file that is not a record."""
    try:
        return Record.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise DpmfError(
            f"{path}: is not a record of an exploration: {error}; delete it and explore again"
        ) from None


def text_of(record: Record) -> str:
    """A record as JSON, with one inequality and one setting per line, so that changes can be read."""
    data = record.model_dump(mode="json")
    rows = {}
    for key, found in data["data"].items():
        for name in ("atoms", "tried"):
            rows[f"@{key} {name}"] = [json.dumps(each, ensure_ascii=False) for each in found[name]]
            found[name] = f"@{key} {name}"
    text = json.dumps(data, indent=1, ensure_ascii=False)
    for place, lines in rows.items():
        text = text.replace(f'"{place}"', "[\n" + ",\n".join(lines) + "\n]")
    return text + "\n"
