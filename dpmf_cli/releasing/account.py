"""The account of releases on this machine: one line for each release, never changed, in the folder of dpmf's state.

Releases of one data set add up: a person who has two models learns from both. The account holds names, checksums of
ratings and times. It is for the person who releases, and is never part of a release.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from dpmf_cli.errors import DpmfError
from dpmf_cli.files import append_line, read_file, state_folder
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.strict_model import StrictModel


class Entered(StrictModel):
    """One release. `epsilon` is None if no bound can be proved; `checksum` is that of the ratings."""

    time: str
    dataset: str
    checksum: str
    method: str
    neighbours: Neighbours
    joint: bool
    epsilon: float | None
    delta: float
    model: str
    folder: str


@dataclass(frozen=True)
class Total:
    """The sum of releases for one kind of neighbours, by basic composition.

    epsilon   None if no bound is known
    """

    neighbours: Neighbours
    releases: int
    epsilon: float | None
    delta: float

    def __str__(self) -> str:
        spent = "no provable ε" if self.epsilon is None else f"ε = {self.epsilon:g}"
        spent += f", δ = {self.delta:g}" if self.delta else ""
        return f"{self.neighbours}: {self.releases} release{'s' * (self.releases > 1)}, {spent} in all"


def account_file() -> Path:
    return state_folder() / "releases.jsonl"


def enter(entered: Entered) -> None:
    """Adds a line to the account; it is on the disk when this returns. Raises DpmfError if it cannot be written."""
    text = json.dumps(entered.model_dump(mode="json"), ensure_ascii=False)
    try:
        append_line(account_file(), text.encode())
    except OSError as error:
        raise DpmfError(
            f"{account_file()}: cannot be written: {error.strerror or error}; nothing is released without an entry "
            "there. Name another folder in $DPMF_STATE"
        ) from None


def releases_of(dataset: str, checksum: str) -> list[Entered]:
    """Returns the releases of a data set of that name, or of the same ratings under another name."""
    return [each for each in _all() if dataset == each.dataset or checksum == each.checksum]


def totals(releases: Iterable[Entered]) -> list[Total]:
    """Adds up releases for each kind of neighbours: ε for different kinds do not add up."""
    found: dict[Neighbours, list[Entered]] = {}
    for each in releases:
        found.setdefault(each.neighbours, []).append(each)
    return [_total(kind, found[kind]) for kind in sorted(found)]


def _total(neighbours: Neighbours, releases: list[Entered]) -> Total:
    spent = [each.epsilon for each in releases if each.epsilon is not None]
    together = sum(spent) if len(spent) == len(releases) else None
    return Total(neighbours, len(releases), together, sum(each.delta for each in releases))


def _all() -> list[Entered]:
    path = account_file()
    try:
        lines = read_file(path).splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DpmfError(f"{path}: cannot be read: {error.strerror or error}; make it readable") from None
    return [_entered(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]


def _entered(path: Path, number: int, line: bytes) -> Entered:
    try:
        return Entered.model_validate_json(line)
    except ValidationError:
        raise DpmfError(
            f"{path}:{number}: is not the entry of a release, so the sum is unknown; correct the line, or remove "
            "it if it was never finished"
        ) from None
