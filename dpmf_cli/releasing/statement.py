"""The statement of a release: the content of its JSON. Nothing in it depends on what the ε hides.

It has neither the number of ratings nor their checksum: both are functions of the private data that no ε pays for.
The sensitivities in the ledger are public for the ledger's neighbours (`privacy.sensitivity`). The ids are public if
it is public who rated what. Otherwise they are given as lists, or the caller says that they are public.
"""

import math
from typing import Any, Literal

from pydantic import ValidationError

from dpmf_cli import __version__
from dpmf_cli.algorithms.plugins import plugin
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.datasets.stars import Stars
from dpmf_cli.errors import DpmfError
from dpmf_cli.privacy.ledger import TOLERANCE, Ledger
from dpmf_cli.privacy.neighbours import HIDE_IDS, Mode, Neighbours
from dpmf_cli.privacy.protection import Guarantee
from dpmf_cli.ratings import Scale
from dpmf_cli.strict_model import SealedModel, StrictModel

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
    """

    name: str
    minimum: float
    maximum: float
    step: float
    to_stars: bool
    columns: dict[Literal["user", "item", "rating"], str]
    users: Lists
    items: Lists

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

    @property
    def proved(self) -> bool:
        """Whether the ε that was asked for can be proved."""
        return self.provable is not None and self.provable <= self.epsilon * (1 + TOLERANCE)


class Statement(SealedModel):
    """All that a release says about itself.

    release  a random name, drawn before the fit and independent of it, under which the account counts the release
    sha256   that of the arrays
    """

    form: int
    dpmf: str
    name: str
    algorithm: dict[str, Any]
    plugin: dict[str, str]
    kind: str
    dataset: DataStatement
    privacy: PrivacyStatement
    unknown: str
    ledger: list[dict[str, Any]]
    release: str = ""
    sha256: str = ""

    def entry(self) -> PrivateAlgorithm:
        """Returns the algorithm with its parameters. Raises DpmfError if its plugin is missing, or is another one."""
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
            raise DpmfError(
                f"the plugin {key} is not the one of this release; give the file that the release was made with"
            )
        return entry


def statement_of(
    entry: PrivateAlgorithm, kind: str, ledger: Ledger, dataset: DataStatement, release: str = ""
) -> Statement:
    """Returns the statement of a fit for one ε."""
    guarantee = Guarantee(entry.protects, entry.joint, entry.spends_delta)
    return Statement(
        form=FORM,
        dpmf=__version__,
        name=entry.name,
        algorithm=entry.model_dump(mode="json"),
        plugin=entry.plugin,
        kind=kind,
        dataset=dataset,
        privacy=PrivacyStatement(
            epsilon=float(ledger.limit[0]),
            claimed=float(ledger.claimed[0]),
            provable=_finite(float(ledger.provable[0])),
            delta=ledger.delta,
            neighbours=entry.neighbours,
            mode=entry.mode,
            protects=guarantee.protects,
            towards=guarantee.towards,
            joint=guarantee.joint,
            says=" ".join(
                [
                    guarantee.statement,
                    *([USERS] if entry.neighbours in HIDE_IDS and dataset.users != NO_USERS else []),
                    *([guarantee.of_delta] if guarantee.delta else []),
                ]
            ),
            not_to_publish=JOINT if entry.joint else None,
        ),
        unknown=UNKNOWN,
        ledger=[_without_infinities(entered.record()) for entered in ledger.entries],
        release=release,
    )


NO_USERS: Lists = "not in the model"

USERS = "The number of users, or of those in the list, is public: the model is made with it."

UNKNOWN = (
    "For an item that the model does not know, the prediction is the mean of the user's predictions for all items. "
    "For a user whom it does not know, the model predicts as for its average user, or from the user's own ratings."
)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _without_infinities(record: dict[str, Any]) -> dict[str, Any]:
    """Replaces infinities by None: JSON has no infinity, and null stands for no bound."""
    return {name: _plain(value) for name, value in record.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return _finite(value) if isinstance(value, float) else value
