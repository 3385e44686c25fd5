"""The entries that `dpmf audit --all` audits: every algorithm of the registry, in all of its variants.

The known flaws of the five papers (`known.yaml`), and how an audit of these entries shows each of them.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import Paper, PrivateAlgorithm
from dpmf_cli.audit import pairs
from dpmf_cli.audit.job import CLAIMED, Audited, Job, Settings
from dpmf_cli.audit.judge import Finding, Flaw
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.privacy.neighbours import Mode, Neighbours


def registered(key: str | None = None) -> Iterator[PrivateAlgorithm]:
    """Yields every algorithm of the registry, or that of `key`, for all neighbours, modes and laws of noise, each of
    which its label says."""
    for name, entry in PRIVATE.items():
        if key is not None and name != key:
            continue
        for neighbours, mode in sorted(entry.variants):
            for chosen in product(*entry.choices(mode)):
                more = {field: value for each in chosen for field, value in each.items()}
                with suppress(ValidationError):  # this variant lacks the option
                    yield _made(entry, neighbours, mode, {**entry.small_in(mode), **more})


def of_plugin(entry: type[PrivateAlgorithm]) -> Iterator[PrivateAlgorithm]:
    """Yields an algorithm from outside the package, for all neighbours and modes that it offers.

    Raises DpmfError if it has a parameter without a default.
    """
    for neighbours, mode in sorted(entry.variants):
        try:
            yield _made(entry, neighbours, mode, {})
        except ValidationError as error:
            where = ", ".join(str(part) for part in error.errors()[0]["loc"])
            needs = f"needs the parameter `{where}`, which has no default; audit a config that sets it"
            raise DpmfError(f"{entry.key()}: {needs}") from None


def _made(
    entry: type[PrivateAlgorithm], neighbours: Neighbours, mode: Mode, parameters: dict[str, Any]
) -> PrivateAlgorithm:
    said = [f"of {parameters['base']['algorithm']}"] if "base" in parameters else []
    said += [
        parameters[field]
        for field in ("noise", "tuning", "mechanism", "matrix", "users")
        if field in parameters
    ]
    said += [f"samples of {parameters['sampling_rate']:g}"] if "sampling_rate" in parameters else []
    said += ["averages first"] if "averages" in parameters else []
    said += ["public features"] if "item_features" in parameters else []
    label = ", ".join((entry.key(), *said, neighbours.value, mode.value))
    given = {"algorithm": entry.key(), "neighbours": neighbours, "mode": mode, "label": label}
    return entry.model_validate({**given, **parameters})


@dataclass(frozen=True)
class KnownFlaw:
    """One flaw of a paper.

    what    what the paper does, and why that is wrong
    entry   the label of the entry that shows the flaw, one of `registered`
    flaw    the flaw that a replay finds; None if corrected mode pays for it, and the replay shows how much of that is
            used
    step    the beginning of the name of the step that has the flaw; "" for any step
    said    the beginning of the finding's remark; "" for any remark
    pair    the function of `pairs` that makes one more pair to replay, if small pairs do not show the flaw
    """

    paper: Paper
    what: str
    entry: str
    flaw: Flaw | None = None
    step: str = ""
    said: str = ""
    pair: str = ""

    __pydantic_config__ = ConfigDict(extra="forbid")

    def shown_by(self, audits: Sequence[Audited]) -> Finding | None:
        """The worst finding that shows the flaw; None if there is none."""
        found = []
        for audited in (each for each in audits if each.label == self.entry):
            steps = (each for each in audited.steps if each.step.startswith(self.step))
            if self.flaw is None and (
                step := next((each for each in steps if each.of_sensitivity > 0), None)
            ):
                size = step.of_sensitivity
                found.append(Finding(PAID, step.step, size, pairs=audited.pairs, against=CLAIMED))
                continue
            same = (
                each for each in audited.found if each.flaw == self.flaw and each.step.startswith(self.step)
            )
            found += [each for each in same if each.said.startswith(self.said)]
        return max(found, key=lambda each: -1.0 if math.isnan(each.size) else each.size, default=None)


PAID = "moves; size is in units of what corrected mode pays for this"
"""The remark on a move that a publication forgets, and that corrected mode pays for."""

KNOWN = TypeAdapter(tuple[KnownFlaw, ...]).validate_python(
    yaml.safe_load(Path(__file__).with_name("known.yaml").read_text(encoding="utf-8"))
)


def jobs_of(entries: Collection[str], settings: Settings) -> list[Job]:
    """Jobs for registered algorithms, given their labels, with the pairs that show their known flaws."""
    more = {flaw.entry: getattr(pairs, flaw.pair) for flaw in KNOWN if flaw.pair}
    return [
        Job(each, settings, own=tuple(more[each.name]() for _ in settings.epsilons if each.name in more))
        for each in registered()
        if each.name in entries
    ]
