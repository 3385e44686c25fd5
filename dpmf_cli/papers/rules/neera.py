"""Claims of Neera et al. (2020)."""

import numpy as np

from dpmf_cli.evaluation.numbers import signed
from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.rules.base import Computed, Rule, of


def beats_isgd(evidence: Evidence) -> Computed:
    ours, held, cells = "blp_mog_mf", 0, 0
    told = []
    for label in ("ISGD, unregularised", "ISGD, regularised"):
        better = (
            evidence.curve("neera_fig4_ml100k", ours).mean()
            < evidence.curve("neera_fig4_ml100k", label).mean()
        )
        held, cells = held + int(better.sum()), cells + len(better)
        told.append(f"below {label} at {int(better.sum())} of {len(better)} ε")
    return Computed(of(held, cells), f"ML-100K: {'; '.join(told)}")


def falls_with_epsilon(evidence: Evidence) -> Computed:
    experiment = evidence.experiment("neera_fig4_ml100k")
    falling = [bool((np.diff(curve.mean()) < 1e-3).all()) for curve in experiment.curves if not curve.missing]
    if len(falling) < len(experiment.curves):
        raise MissingEvidence(experiment.name)
    return Computed(
        of(sum(falling), len(falling)), f"ML-100K: {sum(falling)} of {len(falling)} curves fall throughout"
    )


def mixture(evidence: Evidence) -> Computed:
    ours = evidence.curve("neera_fig4_ml100k", "blp_mog_mf").mean()
    plain = evidence.curve("neera_fig4_ml100k", "MF, BLP").mean()
    gain = 100 * (1 - ours / plain)
    held = int((gain > 0.5).sum())
    return Computed(
        of(held, len(gain)),
        f"ML-100K: RMSE lower by {signed(gain.min(), 1)} to {signed(gain.max(), 1)} % with the mixture",
    )


def accurate(evidence: Evidence) -> Computed:
    ours = evidence.curve("neera_fig4_ml100k", "blp_mog_mf")
    floor = evidence.curve("neera_fig4_ml100k", "mean").mean()
    better = ours.epsilons[ours.mean() < floor]
    strong = ours.epsilons <= 1
    held = int((ours.mean() < floor)[strong].sum())
    since = f"only from ε = {better[0]:g} on" if len(better) else "nowhere"
    return Computed(of(held, int(strong.sum())), f"ML-100K: below the mean of the perturbed ratings {since}")


def beats_pg_mf(evidence: Evidence) -> Computed:
    name = "neera_fig3_ml100k"
    ours = evidence.curve(name, "blp_mog_mf").mean()
    theirs = [
        curve
        for curve in evidence.experiment(name).curves
        if curve.algorithm == "pg_mf" and not curve.missing
    ]
    if not theirs:
        raise MissingEvidence(name)
    better = [int((ours < curve.mean()).sum()) for curve in theirs]
    told = "; ".join(f"below {c.label} at {n} of {len(ours)} ε" for c, n in zip(theirs, better, strict=True))
    return Computed(of(sum(better), len(ours) * len(theirs)), told)


RULES: dict[str, Rule] = {
    "beats-isgd-everywhere": beats_isgd,
    "error-falls-with-epsilon": falls_with_epsilon,
    "mixture-helps": mixture,
    "accurate-under-strong-privacy": accurate,
    "beats-pg-mf": beats_pg_mf,
}
