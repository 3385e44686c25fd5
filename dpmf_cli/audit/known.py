"""The known flaws of the five papers, and how an audit shows each of them: `known.yaml`."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import ConfigDict, TypeAdapter

from dpmf_cli.algorithms.shared.base import Paper
from dpmf_cli.audit import pairs
from dpmf_cli.audit.entries import registered
from dpmf_cli.audit.job import CLAIMED, Audited, Job, Settings
from dpmf_cli.audit.judge import Finding, Flaw


@dataclass(frozen=True)
class KnownFlaw:
    """One flaw of a paper.

    what    what the paper does, and why that is wrong
    entry   the label of the entry that shows the flaw, one of `entries.registered`
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
        """Returns the worst finding that shows the flaw; None if there is none."""
        found = (each for audited in audits if audited.label == self.entry for each in self._found(audited))
        return max(found, key=lambda each: -1.0 if math.isnan(each.size) else each.size, default=None)

    def _found(self, audited: Audited) -> Iterator[Finding]:
        if self.flaw is None:
            for step in audited.steps:
                if step.step.startswith(self.step) and step.of_sensitivity > 0:
                    size = step.of_sensitivity
                    yield Finding(PAID, step.step, size, pairs=audited.pairs, against=CLAIMED)
                    return
        for each in audited.found:
            said = each.step.startswith(self.step) and each.said.startswith(self.said)
            if each.flaw == self.flaw and said:
                yield each


PAID = "moves; size is in units of what corrected mode pays for this"
"""The remark on a move that a publication forgets, and that corrected mode pays for."""

KNOWN = TypeAdapter(tuple[KnownFlaw, ...]).validate_python(
    yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
)


def jobs_of(entries: Collection[str], settings: Settings) -> list[Job]:
    """Returns jobs for registered algorithms, given their labels, with the pairs that show their known flaws."""
    more = {flaw.entry: getattr(pairs, flaw.pair) for flaw in KNOWN if flaw.pair}
    return [
        Job(each, settings, own=tuple(more[each.name]() for _ in settings.epsilons if each.name in more))
        for each in registered()
        if each.name in entries
    ]
