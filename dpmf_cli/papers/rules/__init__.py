"""Verdicts on claims, computed from the results at hand: a rule for each claim that figures alone decide.

Each paper has a file of rules, by the ids of its claims, in the language of `language`. `definitions` are names that
all of its rules may use.
"""

from contextlib import suppress
from functools import cache
from importlib import resources
from typing import Any

import yaml
from pydantic import TypeAdapter

from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.printed import load
from dpmf_cli.papers.rules.language import Computed, Rule, Scope
from dpmf_cli.papers.rules.theorem import Theorem


@cache
def _file(key: str) -> dict[str, Any]:
    text = (resources.files("dpmf_cli.papers.rules") / f"{key}.yaml").read_text(encoding="utf-8")
    parsed: dict[str, Any] = yaml.safe_load(text)
    return parsed


@cache
def rules_of(key: str) -> dict[str, Rule | Theorem]:
    """Returns the rules of a paper, by the claim's id."""
    return TypeAdapter(dict[str, Rule | Theorem]).validate_python(_file(key)["rules"])


def scope(key: str, evidence: Evidence) -> Scope:
    """Returns what the rules of a paper may name: its printed figures, its tolerances, and its definitions."""
    printed = load(key)
    names = {"printed": printed, "tolerances": printed.get("tolerances", {})}
    return Scope(evidence, names).named(_file(key)["definitions"])


def compute(key: str, claim: str, evidence: Evidence) -> Computed | None:
    """Returns what results say about a claim on the evidence's data set; None if results are missing, or if no result
    can decide it."""
    rule = rules_of(key).get(claim)
    with suppress(MissingEvidence):
        return rule.judged(scope(key, evidence)) if rule else None
    return None
