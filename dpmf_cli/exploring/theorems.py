"""Compares a paper's theorems with audits of the algorithms that the theorems are about."""

from pathlib import Path

from dpmf_cli.audit.job import Audited, Settings
from dpmf_cli.audit.known import jobs_of
from dpmf_cli.papers.claims import paper
from dpmf_cli.papers.evidence import Evidence, Proof
from dpmf_cli.papers.record import Proved
from dpmf_cli.papers.rules import RULES, compute
from dpmf_cli.papers.rules.base import Theorem
from dpmf_cli.running.runner import outcomes_of


def proved(key: str, results: Path, processes: int) -> dict[str, Proved]:
    """Returns by claim what audits say about a paper's theorems. Audits in the results folder are not run again."""
    rules = RULES[key]
    entries = {rule.entry for rule in rules.values() if isinstance(rule, Theorem)}
    if not entries:
        return {}
    outcomes = outcomes_of(jobs_of(entries, Settings()), f"theorems of {key}", results, processes)
    proofs = {outcome.label: _proof(outcome) for outcome in outcomes.values()}
    evidence = Evidence({}, "", proofs)
    found = {}
    for claim in paper(key).claims:
        rule = rules.get(claim.id)
        if isinstance(rule, Theorem) and (computed := compute(key, claim.id, evidence)):
            found[claim.id] = Proved(
                held=all(computed.held), proved=rule.is_proved(evidence), measured=computed.measured
            )
    return found


def _proof(outcome: Audited) -> Proof:
    found = tuple(dict.fromkeys(f"{each.flaw}, {each.step}".rstrip(", ") for each in outcome.found))
    return Proof(outcome.provable, found, {step.step: step.of_noise for step in outcome.steps})
