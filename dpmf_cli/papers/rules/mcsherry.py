"""Claims of McSherry and Mironov (2009)."""

import numpy as np

from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.evaluation.numbers import signed
from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.rules.base import Computed, Rule, epsilon_text, of


def loss_shrinks(evidence: Evidence) -> Computed:
    experiment = evidence.experiment("mcsherry_fig2_ml1m")
    stages = experiment.growth.stages if experiment.growth else ()
    held = steps = 0
    told = []
    for rank, curve in enumerate(experiment.curves):
        losses = np.array([_loss(stage.curves[rank]) for stage in stages])
        if len(losses) < 2 or not np.isfinite(losses).all():
            raise MissingEvidence(experiment.name)
        steps += losses[1:].size
        held += int((losses[1:] < losses[:-1]).sum())
        told.append(f"{curve.label} {losses[0, 0]:.3f} → {losses[-1, 0]:.3f}")
    return Computed(of(held, steps), f"{held} of {steps} steps shrink it; at the least θ: {'; '.join(told)}")


def _loss(curve: Measured) -> list[float]:
    twin = curve.without_noise()
    return [np.nan] * len(curve.epsilons) if twin is None else (curve.mean() - twin.mean()).tolist()


def per_user(evidence: Evidence) -> Computed:
    name, held, told = "mcsherry_user_ml1m", 0, []
    for noise in ("Gaussian", "Laplace"):
        whom = [evidence.crossing(name, f"kNN, per {what}, {noise}", "IA") for what in ("user", "rating")]
        held += whom[1] < whom[0]
        told.append(f"{noise} noise {epsilon_text(whom[0])} per user, {epsilon_text(whom[1])} per rating")
    return Computed(of(held, 2), f"IA at ε: {'; '.join(told)}")


def cleaning(evidence: Evidence) -> Computed:
    held, told = 0, []
    for method in ("kNN", "SVD"):
        gain = evidence.curve("mcsherry_fig1_ml1m", method).mean()
        gain = gain - evidence.curve("mcsherry_fig1_ml1m", f"{method}, cleaned").mean()
        held += int(gain[0] > 0) + int(gain[-1] < 0)
        first, best, last = (signed(value, 3) for value in (gain[0], gain.max(), gain[-1]))
        told.append(f"{method} {first} at the least θ, at best {best}, {last} at the largest")
    return Computed(of(held, 4), f"RMSE gained by cleaning: {'; '.join(told)}")


RULES: dict[str, Rule] = {
    "cleaning-helps-under-noise": cleaning,
    "loss-shrinks-with-data": loss_shrinks,
    "per-user-costs-more": per_user,
}
