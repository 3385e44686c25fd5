"""The account of releases on this machine: a line for each release, never changed, in the folder of dpmf's state.

Releases of one data set add up, because a person who has two models learns from both. The account, of names,
checksums of ratings and times, is for the person who releases, and is never part of a release.

A line is on the disk before its release has a name. Lines with the same `release` count as one: a model that was
saved twice, or a release that was killed between its line and its name, and then ended by the same command.
"""

import contextlib
import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import alone, make_folder, read_file, state_folder, write_whole, writing
from dpmf_cli.core.strict_model import SealedModel
from dpmf_cli.privacy.neighbours import HIDE_IDS, Neighbours

_FIX = "nothing is released without an entry there. Name another folder in $DPMF_STATE"


class Entered(SealedModel):
    """One release. `epsilon` is None if no bound can be proved; `checksum` is that of the ratings."""

    release: str
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
    """The sum of releases by basic composition.

    hides     a kind of neighbours, or the value of a rating where releases of all kinds are added up
    epsilon   None if no bound is known, or δ is 1 or more
    joint     whether the bound holds against other users only
    """

    hides: str
    releases: int
    epsilon: float | None
    delta: float
    joint: bool

    def __str__(self) -> str:
        spent = "no provable ε" if self.epsilon is None else f"ε = {self.epsilon:g}"
        spent += f", δ = {self.delta:g}" if self.delta and self.epsilon is not None else ""
        against = ", against other users" * self.joint
        return f"{self.hides}: {self.releases} release{'s' * (self.releases > 1)}, {spent} in all{against}"


def account_file() -> Path:
    return state_folder() / "releases.jsonl"


@contextlib.contextmanager
def kept_to_oneself() -> Iterator[None]:
    """A context in which other processes cannot release. Raises DpmfError if the account cannot be written."""
    with contextlib.ExitStack() as held:
        with writing(account_file(), _FIX):
            make_folder(account_file().parent, 0o755)  # no other user may put another account in its place
            held.enter_context(alone(account_file().with_suffix(".lock")))
        yield


def enter(entered: Entered) -> None:
    """Adds a line to the account; it is on the disk when this returns. Raises DpmfError if it cannot be written."""
    with writing(account_file(), _FIX):
        before = b"".join(line + b"\n" for line in _lines())
        write_whole(Path(os.path.realpath(account_file())), before + entered.text(), mode=0o600)


def releases_of(dataset: str, checksum: str) -> list[Entered]:
    """The releases of a data set of that name, or of the same ratings under another name."""
    known = [read() for read in entries()]
    return [each for each in known if dataset == each.dataset or checksum == each.checksum]


def totals(releases: Iterable[Entered]) -> list[Total]:
    """The sum for each kind of neighbours and, where there are several kinds, for the value of a rating.

    Those for one kind leave the others aside, since a release that does not hide who took part has no ε for a user.
    Another value is two steps of `unbounded` or `user`, one without the rating (or its user), and then one with the
    other value, so that a release of these kinds has 2ε and (1 + e^ε)·δ for a value.
    """
    different = {each.release: each for each in releases}.values()
    kinds = sorted({each.neighbours for each in different})
    aside = ", other kinds aside" * (len(kinds) > 1)
    found = [
        _total(f"{kind}{aside}", [each for each in different if each.neighbours == kind]) for kind in kinds
    ]
    if aside:
        found.append(
            _total("all kinds, for the value of a rating", [_of_a_value(each) for each in different])
        )
    return found


def _total(hides: str, releases: Collection[Entered]) -> Total:
    known = [each.epsilon for each in releases if each.epsilon is not None]
    delta = sum(each.delta for each in releases)
    epsilon = sum(known) if len(known) == len(releases) and delta < 1 else None
    return Total(hides, len(releases), epsilon, delta, any(each.joint for each in releases))


def _of_a_value(release: Entered) -> Entered:
    if release.epsilon is None or release.neighbours not in HIDE_IDS:
        return release
    twice = {
        "epsilon": 2 * release.epsilon,
        "delta": release.delta * (1 + math.exp(min(release.epsilon, 700.0))),
    }
    return release.model_copy(update=twice)


def entries() -> Iterator[Callable[[], Entered]]:
    """Yields a reader for each line of the account.

    Raises DpmfError if the account cannot be read, as does a reader whose line is not as it was written.
    """
    return (partial(_entered, number, line) for number, line in enumerate(_lines(), 1) if line.strip())


def _lines() -> list[bytes]:
    path = account_file()
    try:
        return read_file(path).splitlines()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise DpmfError(f"{path}: cannot be read: {error.strerror or error}; make it readable") from None


def _entered(number: int, line: bytes) -> Entered:
    try:
        found = json.loads(line)
        if "seal" not in found:  # an older dpmf wrote it
            return Entered.model_validate({"release": f"line {number}", **found})
        entered = Entered.model_validate(found)
        if entered.text() != line + b"\n":
            raise ValueError("changed")
    except (ValueError, TypeError, RecursionError):
        raise DpmfError(
            f"{account_file()}:{number}: is not the entry of a release, or was changed, so the sum is unknown; "
            "correct the line and take its seal away, or remove the line if it was never finished"
        ) from None
    return entered
