"""The two files of a release: `model.npz` with arrays, and `model.json` with the statement and the arrays' SHA-256.

Nothing in the statement depends on what the ε hides. It has neither the number of ratings nor their checksum, which
are functions of the private data that no ε pays for. The sensitivities in the ledger are public for the ledger's
neighbours (`privacy.sensitivity`). The ids are public if it is public who rated what; otherwise they are given as
lists, or the caller says that they are public.

Arrays hold numbers and text, and no Python objects, so that nothing is run when they are read. The same arrays always
give the same bytes. They are not compressed, although noise on a grid could be to a half or more, because then no
file unpacks to more than it has bytes.

Both files are written into a hidden folder beside the release, which then gets the release's name at once. A
process that is killed leaves nothing under that name, but perhaps the hidden folder, for the next attempt.
"""

import io
import json
import math
import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from dpmf_cli.algorithms.plugins import plugin
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import Arrays, PrivateAlgorithm
from dpmf_cli.core import __version__
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import make_folder, read_file, remove, rename, sha256, sweep, write_whole, writing
from dpmf_cli.core.ratings import Scale
from dpmf_cli.core.strict_model import SealedModel, StrictModel, later
from dpmf_cli.datasets.canonical import Stars
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import HIDE_IDS, Mode, Neighbours
from dpmf_cli.privacy.protection import Guarantee

FORM = 2
"""Raise it when files of a release change in a way that older versions cannot read."""

Lists = Literal["those in the ratings", "a list that was given", "not in the model"]

JOINT = (
    "Predictions for a user are made from that user's own clean ratings, which are not in the model. Show these "
    "predictions to that user only, and publish neither these ratings nor anything computed from them for that user."
)


class DataStatement(StrictModel):
    """The ratings of a release: their name, public scale and names of columns, and where the ids are from.

    to_stars   whether the scale is mapped onto 1 to 5 stars, which the model then predicts
    filters    what was done to the ratings of the user's file before, by its key in a config
    """

    name: str
    minimum: float
    maximum: float
    step: float
    to_stars: bool
    columns: dict[Literal["user", "item", "rating"], str]
    users: Lists
    items: Lists
    filters: dict[str, Any] = later({})

    @property
    def scale(self) -> Scale:
        return Scale(self.minimum, self.maximum, self.step)

    @property
    def stars(self) -> Stars | None:
        """The map between the scale and the stars that the model sees; None if the model sees the scale itself."""
        return Stars(self.scale) if self.to_stars else None


class PrivacyStatement(StrictModel):
    """The guarantee, and against whom it holds. `provable` is None if no bound is known."""

    epsilon: float
    claimed: float
    provable: float | None
    delta: float
    neighbours: Neighbours
    mode: Mode
    protects: str
    towards: str
    joint: bool
    says: str
    not_to_publish: str | None


class Statement(SealedModel):
    """All that a release says about itself.

    formula  how the kind of model predicts; older releases have none
    release  a random name, drawn before the fit and independent of it, under which the account counts the release
    sha256   that of the arrays
    """

    form: int
    dpmf: str
    name: str
    algorithm: dict[str, Any]
    plugin: dict[str, str]
    kind: str
    formula: str = later("")
    dataset: DataStatement
    privacy: PrivacyStatement
    unknown: str
    ledger: list[dict[str, Any]]
    release: str = ""
    sha256: str = ""

    def entry(self) -> PrivateAlgorithm:
        """The algorithm with its parameters. Raises DpmfError if its plugin is missing, or is another one."""
        key = self.algorithm.get("algorithm")
        known: Any = PRIVATE.get(str(key)) or plugin(str(key))
        try:
            entry: PrivateAlgorithm = known.model_validate(self.algorithm)
        except ValidationError as error:
            wrong = error.errors(include_url=False)[0]
            raise DpmfError(
                f"the statement's algorithm, {'.'.join(map(str, wrong['loc']))}: {wrong['msg']}; use the dpmf that "
                "wrote it"
            ) from None
        if entry.plugin.get("sha256") != self.plugin.get("sha256"):
            fix = "give the file that the release was made with"
            raise DpmfError(f"the plugin {key} is not the one of this release; {fix}")
        return entry


_ALIKE = "items[i]+e_u+c·Σ_j(x_j)/(v+ridge+(m−1)·c)"
FORMULAS = {
    "averages": "items[i]+users[u]",
    "own means": "items[i]+e_u",
    "factors": "items[i,d]+users[u,d]+Σ_k(items[i,k]·users[u,k])",
    "own factors": "factors[i,d]+e_u+Σ_k(factors[i,k]·p_u[k])",
    "covariance": "items[i]+e_u+Σ_j(w_ij·x_j)",
    "nearest alike": _ALIKE,
    "all alike": _ALIKE,
    "neighbourhood": "averages[i]+Σ_j(s_ij·(r_uj−averages[j]))/Σ_j|s_ij|",
}
"""How each kind of model predicts; docs/guides/releasing.md explains the letters."""

UNIT = "unit "
"""How the kind of a model begins if the model predicts on [0, 1]."""


def statement_of(
    entry: PrivateAlgorithm, kind: str, ledger: Ledger, dataset: DataStatement, release: str = ""
) -> Statement:
    guarantee = Guarantee(entry.protects, entry.joint, entry.spends_delta)
    users = USERS if entry.neighbours in HIDE_IDS and dataset.users != NO_USERS else ""
    counted = COUNTED if entry.neighbours in HIDE_IDS and "minimum_ratings" in dataset.filters else ""
    says = filter(None, (guarantee.statement, users, counted, guarantee.of_delta if guarantee.delta else ""))
    return Statement(
        form=FORM,
        dpmf=__version__,
        name=entry.name,
        algorithm=entry.model_dump(mode="json"),
        plugin=entry.plugin,
        kind=kind,
        formula=FORMULAS[kind.removeprefix(UNIT)],
        dataset=dataset,
        privacy=PrivacyStatement(
            epsilon=float(ledger.limit[0]),
            claimed=float(ledger.claimed[0]),
            provable=None if counted else _plain(float(ledger.provable[0])),
            delta=ledger.delta,
            neighbours=entry.neighbours,
            mode=entry.mode,
            protects=guarantee.protects,
            towards=guarantee.towards,
            joint=guarantee.joint,
            says=" ".join(says),
            not_to_publish=JOINT if entry.joint else None,
        ),
        unknown=UNKNOWN,
        ledger=[_plain(entered.record()) for entered in ledger.entries],
        release=release,
    )


NO_USERS: Lists = "not in the model"

USERS = "The number of users, or of those in the list, is public: the model is made with it."

COUNTED = (
    "Users and items with few ratings were left out before the fit (`minimum_ratings`). One rating can change which, "
    "and so move all ratings of others: the ledger's ε is about the ratings that are left, and covers no such change."
)

UNKNOWN = (
    "For an item that the model does not know, the prediction is the mean of the user's predictions for all items. "
    "For a user whom it does not know, the model predicts as for its average user, or from the user's own ratings."
)


def _plain(value: Any) -> Any:
    """The value with None for infinities, which JSON has not: null stands for no bound."""
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


ARRAYS, STATEMENT, UNFINISHED = "model.npz", "model.json", ".unfinished"
_FIX = "name another folder"
AGAIN = "release the model again, or copy its folder again without changes"


def refuse_a_release(folder: Path) -> None:
    """Raises DpmfError if the folder holds a release already, or anything else."""
    with writing(folder, _FIX):
        if folder.exists() and any(folder.iterdir()):
            holds = "holds a release" if (folder / STATEMENT).exists() else "is not empty"
            raise DpmfError(f"{folder}: {holds}; name another folder")


def packed(arrays: Mapping[str, NDArray[Any]]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in sorted(arrays.items()):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)
            # A ZipInfo made here has the date 1980, not the time of writing.
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue())
    return stream.getvalue()


def unfinished(folder: Path) -> Statement | None:
    """The statement that a killed process left beside the folder; None without a sound one."""
    path = _beside(folder) / STATEMENT
    try:
        return _statement(path, read_file(path))
    except (OSError, DpmfError):
        return None


def write(folder: Path, statement: Statement, arrays: bytes) -> None:
    """Writes both files beside the folder, over those that a killed process left; `publish` is the next step.

    Raises DpmfError if they cannot be written.
    """
    beside = _beside(folder)
    begun = os.path.exists(beside)
    with writing(folder, _FIX):
        try:
            make_folder(beside)
            sweep(beside)
            write_whole(beside / ARRAYS, arrays)
            write_whole(beside / STATEMENT, statement.text(indent=2))
        except OSError:
            if not begun:
                remove(beside)
            raise


def publish(folder: Path) -> None:
    """Gives the written files the name of the release. Raises DpmfError if that fails."""
    with writing(folder, _FIX):
        rename(_beside(folder), Path(os.path.abspath(folder)))


def _beside(folder: Path) -> Path:
    place = Path(os.path.abspath(folder))
    return place.with_name(f".{place.name}{UNFINISHED}")


def releases_in(place: Path) -> list[Path]:
    """The place if it is a release, even a damaged one, and else the releases in it."""
    if any(os.path.exists(place / name) for name in (STATEMENT, ARRAYS)):
        return [place]
    found = place.glob("*/model.*") if os.path.isdir(place) else ()
    return sorted({path.parent for path in found if path.name in (STATEMENT, ARRAYS)})


def read(path: Path) -> tuple[Statement, Arrays]:
    """The release in a folder; `path` may be one of its files. Raises DpmfError for none, or a changed one."""
    folder = path.parent if path.name in (ARRAYS, STATEMENT) and not path.is_dir() else path
    if folder.name.endswith(UNFINISHED):
        raise DpmfError(f"{folder}: is a release that was never finished; give its command again")
    try:
        text, data = (read_file(folder / name) for name in (STATEMENT, ARRAYS))
    except OSError as error:
        raise DpmfError(
            f"{error.filename or folder}: cannot be read: {error.strerror or error}; name a folder that "
            "`dpmf release` has written"
        ) from None
    statement = _statement(folder / STATEMENT, text)
    if sha256(data) != statement.sha256:
        fault = f"is not the file that {STATEMENT} describes, by its SHA-256"
        raise DpmfError(f"{folder / ARRAYS}: {fault}; {AGAIN}")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
        if any(each.compress_type != zipfile.ZIP_STORED for each in members):
            raise ValueError("an array is compressed")
        if sum(each.file_size for each in members) > len(data):
            raise ValueError("its arrays are larger than the file")
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return statement, {name: np.ascontiguousarray(arrays[name]) for name in arrays.files}
    except (ValueError, OSError, EOFError, MemoryError, RuntimeError, zipfile.BadZipFile) as error:
        raise DpmfError(f"{folder / ARRAYS}: {error}; {AGAIN}") from None


def _statement(path: Path, text: bytes) -> Statement:
    try:
        found = json.loads(text)
        form = found.get("form") if isinstance(found, dict) else None
        if form != FORM:
            fault = f"has form {form}, but this dpmf reads form {FORM}"
            raise DpmfError(f"{path}: {fault}; use the dpmf that wrote it")
        statement = Statement.model_validate(found)
        if statement.text(indent=2) != text:
            raise DpmfError(f"{path}: was changed after the release, by its checksum; {AGAIN}")
        return statement
    except (ValueError, RecursionError) as error:
        where = error.errors()[0]["loc"] if isinstance(error, ValidationError) else ""
        raise DpmfError(f"{path}: is not the statement of a release {where or ''}; {AGAIN}") from None
