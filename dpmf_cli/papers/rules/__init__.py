"""What a paper's claims mean, as inequalities in the language of `language`, one file for each paper.

`definitions` are names that all of its rules may use. `readings` are what sentences leave open: by name, the readings
of it, each with names of its own.
"""

import json
import math
from functools import cache
from importlib import resources
from typing import Any

import yaml
from pydantic import Field

from dpmf_cli.core.files import sha256
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.printed import load
from dpmf_cli.papers.record import Proved
from dpmf_cli.papers.rules.language import Margin, Rule, Scope
from dpmf_cli.papers.space import Space

_ROUNDING = 1e-9


class Theorem(StrictModel):
    """The rule of a theorem: what an audit found about the theorem's algorithm.

    theorem   the algorithm, an entry of `audit.entries`
    step      the only step that the theorem is about: how far it may move. If "", the theorem is about all that is
              claimed of the algorithm
    """

    theorem: str
    step: str = ""

    def judged(self, evidence: Evidence) -> Proved:
        """What audits say. Raises MissingEvidence if they did not run."""
        proof = evidence.proof(self.theorem)
        if self.step:
            if self.step not in proof.moves:
                raise MissingEvidence(f"{self.theorem}: {self.step}")
            moved = proof.moves[self.step]
            said = f"of the pairs replayed, one moves the {self.step} by {moved:.3g} of what is claimed"
            return Proved(held=moved <= 1 + _ROUNDING, proved=False, measured=f"{self.theorem}: {said}")
        is_proved, said = proof.provable <= 1 + _ROUNDING, "no ε is proved"
        if is_proved:
            said = "at ε = 1 what is claimed is proved" + ", but not at every ε" * bool(proof.found)
        elif math.isfinite(proof.provable):
            said = f"at ε = 1 {proof.provable:.3g} times the claimed ε is proved"
        found = f"; a replay shows: {'; '.join(proof.found)}" if proof.found else ""
        return Proved(held=not proof.found, proved=is_proved, measured=f"{self.theorem}: {said}{found}")


class Rules(StrictModel):
    definitions: dict[str, Any]
    readings: dict[str, dict[str, dict[str, Any]]] = Field({})
    rules: dict[str, Rule | Theorem]


@cache
def rules_of(key: str) -> Rules:
    text = (resources.files("dpmf_cli.papers.rules") / f"{key}.yaml").read_text(encoding="utf-8")
    return Rules.model_validate(yaml.safe_load(text))


def digest_of(key: str, space: Space) -> str:
    """The digest of a paper's rules, of what it prints, and of what the choices of its space set."""
    sets = [(choice.name, [(value.name, value.set) for value in choice.values]) for choice in space.open]
    judges = [sets, rules_of(key).model_dump(mode="json"), load(key)]
    return sha256(json.dumps(judges, sort_keys=True, default=str).encode())[:16]


def scope(key: str, evidence: Evidence) -> Scope:
    """What the rules of a paper may name: its printed figures, its tolerances, and its definitions."""
    printed = load(key)
    names = {"printed": printed, "tolerances": printed.get("tolerances", {})}
    return Scope(evidence, names).named(rules_of(key).definitions)


def margins(key: str, claim: str, evidence: Evidence) -> dict[tuple[str, str], Margin]:
    """The margins of a claim's atoms on the evidence's data set, by (text, reading).

    Atoms whose results are missing are left out. The reading is "" if a sentence can be read in one way only.
    """
    file = rules_of(key)
    rule = file.rules.get(claim)
    if not isinstance(rule, Rule):
        return {}
    found = {}
    for reading, names in file.readings.get(rule.reading, {"": {}}).items():
        for margin in rule.margins(scope(key, evidence).with_values(names)):
            found[margin.text, reading] = margin
    for other, begins in rule.same.items():
        found |= {of: each for of, each in margins(key, other, evidence).items() if of[0].startswith(begins)}
    return found
