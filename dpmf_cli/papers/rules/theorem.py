"""The rule of a theorem: what an audit found about the theorem's algorithm."""

import math
from dataclasses import dataclass

from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.papers.evidence import Evidence, MissingEvidence

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Computed:
    """What audits say about a theorem: whether it holds, and the figures behind this."""

    held: bool
    measured: str


class Theorem(StrictModel):
    """A theorem about an algorithm.

    theorem   the algorithm, an entry of `audit.entries`
    step      the only step that the theorem is about: how far it may move. If "", the theorem is about all that is
              claimed of the algorithm
    """

    theorem: str
    step: str = ""

    def judged(self, evidence: Evidence) -> Computed:
        proof = evidence.proof(self.theorem)
        if self.step:
            if self.step not in proof.moves:
                raise MissingEvidence(f"{self.theorem}: {self.step}")
            moved = proof.moves[self.step]
            said = f"of the pairs replayed, one moves the {self.step} by {moved:.3g} of what is claimed"
            return Computed(moved <= 1 + _ROUNDING, f"{self.theorem}: {said}")
        said = f"at ε = 1 {proof.provable:.3g} times the claimed ε is proved"
        if self.is_proved(evidence):
            said = "at ε = 1 what is claimed is proved"
        elif not math.isfinite(proof.provable):
            said = "no ε is proved"
        found = f"; a replay shows: {'; '.join(proof.found)}" if proof.found else ""
        return Computed(not proof.found, f"{self.theorem}: {said}{found}")

    def is_proved(self, evidence: Evidence) -> bool:
        """Whether the ledger proves all that is claimed of the algorithm; False for a theorem about one step."""
        return not self.step and evidence.proof(self.theorem).provable <= 1 + _ROUNDING
