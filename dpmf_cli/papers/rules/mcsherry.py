"""Claims of McSherry and Mironov (2009)."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.evaluation.numbers import signed, significant
from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.printed import load
from dpmf_cli.papers.rules.base import Computed, Rule, Theorem, epsilon_text

METHODS = ("kNN", "SVD")
PRINTED = load("mcsherry2009")
TOLERANCES = PRINTED["tolerances"]
PRIZE, CINEMATCH = "mcsherry_netflix", "Cinematch probe"


def _figure1(evidence: Evidence) -> tuple[str, str]:
    """Returns the config of figure 1, and the baseline that its curves should cross.

    Cinematch's error is known for Netflix only.
    """
    if evidence.data == "netflix":
        return PRIZE, CINEMATCH
    return evidence.named("mcsherry_fig1_{}"), "GE"


def _theta(evidence: Evidence, name: str, label: str, baseline: str) -> float:
    """Returns the θ at which a curve crosses a baseline: 0 below the grid, ∞ if it is not reached."""
    curve, epsilon = evidence.curve(name, label), evidence.crossing(name, label, baseline)
    if curve.thetas is None or not 0 < epsilon < np.inf:
        return epsilon
    return float(np.exp(np.interp(np.log(epsilon), np.log(curve.epsilons), np.log(curve.thetas))))


def _cleaned_thetas(evidence: Evidence) -> dict[str, float]:
    """Returns by method the θ at which its cleaned curve crosses Cinematch."""
    return {method: _theta(evidence, PRIZE, f"{method}, cleaned", CINEMATCH) for method in METHODS}


def cleaned_cross(evidence: Evidence) -> Computed:
    found = _cleaned_thetas(evidence)
    least, most = PRINTED["theta"] / TOLERANCES["theta"], PRINTED["theta"] * TOLERANCES["theta"]
    told = "; ".join(f"{method} {epsilon_text(theta)}" for method, theta in found.items())
    return Computed(tuple(least <= theta <= most for theta in found.values()), f"at θ: {told}")


def outperforms(evidence: Evidence) -> Computed:
    at = {method: evidence.crossing(PRIZE, f"{method}, cleaned", CINEMATCH) for method in METHODS}
    held = tuple(epsilon <= TOLERANCES["epsilon"] for epsilon in at.values())
    return Computed(held, "; ".join(f"{method} at ε {epsilon_text(each)}" for method, each in at.items()))


def uncleaned_later(evidence: Evidence) -> Computed:
    name, baseline = _figure1(evidence)
    held, told = [], []
    for method in METHODS:
        clean, plain = (_theta(evidence, name, label, baseline) for label in (f"{method}, cleaned", method))
        held.append(clean < plain < np.inf)
        told.append(f"{method} {epsilon_text(plain)}, cleaned {epsilon_text(clean)}")
    return Computed(tuple(held), f"{baseline} at θ: {'; '.join(told)}")


def _gain(evidence: Evidence, method: str) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Returns (E,) how much cleaning lowers the RMSE, and (E,) whether there is much noise at an ε.

    There is much noise up to the ε at which the cleaned curve crosses its baseline.
    """
    name, baseline = _figure1(evidence)
    label = f"{method}, cleaned"
    plain, clean = evidence.curve(name, method), evidence.curve(name, label)
    return plain.mean() - clean.mean(), clean.epsilons <= evidence.crossing(name, label, baseline)


def cleaning_helps(evidence: Evidence) -> Computed:
    held, told = [], []
    for method in METHODS:
        gain, noisy = _gain(evidence, method)
        if not noisy.any():
            raise MissingEvidence(method)
        held.append(bool(gain[noisy].mean() > 0))
        told.append(f"{method} {signed(float(gain[noisy].mean()), 3)}")
    return Computed(tuple(held), f"RMSE gained by cleaning up to {_figure1(evidence)[1]}: {'; '.join(told)}")


def cleaning_hurts(evidence: Evidence) -> Computed:
    last = {method: float(_gain(evidence, method)[0][-1]) for method in METHODS}
    told = "; ".join(f"{method} {signed(gain, 3)}" for method, gain in last.items())
    return Computed(
        tuple(gain < 0 for gain in last.values()), f"RMSE gained by cleaning at the largest θ: {told}"
    )


def matches_non_private(evidence: Evidence) -> Computed:
    name, held, told = evidence.named("mcsherry_fig1_{}_corrected"), [], []
    for method in METHODS:
        curve = evidence.curve(name, f"{method}, cleaned")
        loss, meant = _loss(curve, name), curve.provable <= TOLERANCES["epsilon"]
        if not meant.any():
            raise MissingEvidence(name)
        held.append(bool(loss[meant].min() <= TOLERANCES["loss"]))
        at = [
            f"{each:.3f} at ε {significant(where)}" for where, each in zip(curve.provable, loss, strict=True)
        ]
        told.append(f"{method} {at[int(np.flatnonzero(meant)[-1])]}, {at[-1]}")
    return Computed(tuple(held), f"RMSE lost: {'; '.join(told)}")


def _loss(curve: Measured, name: str) -> NDArray[np.float64]:
    """(E,) the RMSE less that of the twin."""
    twin = curve.without_noise()
    if twin is None:
        raise MissingEvidence(name)
    loss: NDArray[np.float64] = curve.mean() - twin.mean()
    if not np.isfinite(loss).all():
        raise MissingEvidence(name)
    return loss


def noise_ordering(evidence: Evidence) -> Computed:
    name, held, told = evidence.named("mcsherry_noise_{}"), [], []
    for baseline in ("IA", "GE"):
        of = [evidence.crossing(name, f"noise on the {what}", baseline) for what in ("covariance", "data")]
        held.append(of[0] < of[1])
        told.append(f"{baseline} {epsilon_text(of[0])} and {epsilon_text(of[1])}")
    return Computed(tuple(held), f"at ε, noise on the covariance and on the data: {'; '.join(told)}")


SPLITS = ("global averages 0.1", "items 0.44", "items 0.08")


def small_global_part(evidence: Evidence) -> Computed:
    name = evidence.named("mcsherry_split_{}")
    costs = evidence.curve(name, "shipped").mean() - evidence.curve(name, SPLITS[0]).mean()
    held = tuple((costs <= TOLERANCES["split"]).tolist())
    return Computed(held, f"RMSE over that with a part of 0.1: {signed(float(costs.max()), 3)} at most")


def other_splits(evidence: Evidence) -> Computed:
    """Another split is better at some ε of the grid at which it is no worse than IA: above IA, all are of no use."""
    name = evidence.named("mcsherry_split_{}")
    shipped, ia = evidence.curve(name, "shipped"), evidence.baseline(name, "ia")
    curves = {label: evidence.curve(name, label).mean() for label in SPLITS}
    gains = {label: np.where(rmse <= ia, shipped.mean() - rmse, -np.inf) for label, rmse in curves.items()}
    best = max(gains, key=lambda label: gains[label].max())
    at = int(gains[best].argmax())
    if not np.isfinite(gains[best][at]):
        raise MissingEvidence(f"{name}: a split that meets IA")
    told = f"{signed(gains[best][at], 3)} at best ({best}, ε {significant(shipped.epsilons[at])})"
    return Computed((bool(gains[best][at] > TOLERANCES["split"]),), f"RMSE gained by another split: {told}")


def per_user(evidence: Evidence) -> Computed:
    name, held, told = evidence.named("mcsherry_user_{}"), [], []
    for noise in ("Gaussian", "Laplace"):
        user, rating = (
            evidence.crossing(name, f"kNN, per {whom}, {noise}", "IA") for whom in ("user", "rating")
        )
        held.append(rating < user)
        told.append(f"{noise} noise {epsilon_text(user)} per user, {epsilon_text(rating)} per rating")
    return Computed(tuple(held), f"IA at ε: {'; '.join(told)}")


def loss_shrinks(evidence: Evidence) -> Computed:
    experiment = evidence.experiment(evidence.named("mcsherry_fig2_recent_{}"))
    stages = experiment.growth.stages if experiment.growth else ()
    held, told = list[bool](), []
    for rank, curve in enumerate(experiment.curves):
        losses = np.array([_loss(stage.curves[rank], experiment.name) for stage in stages])
        if len(losses) < 2:
            raise MissingEvidence(experiment.name)
        held += (losses[1:] < losses[:-1]).ravel().tolist()
        told.append(f"{curve.label} {losses[0, 0]:.3f} → {losses[-1, 0]:.3f}")
    return Computed(tuple(held), f"RMSE lost at the least θ: {'; '.join(told)}")


RULES: dict[str, Rule] = {
    "cleaned-cross-cinematch": cleaned_cross,
    "outperforms-cinematch": outperforms,
    "uncleaned-cross-later": uncleaned_later,
    "cleaning-helps-under-noise": cleaning_helps,
    "cleaning-hurts-without": cleaning_hurts,
    "matches-non-private": matches_non_private,
    "noise-ordering": noise_ordering,
    "small-global-part": small_global_part,
    "other-splits": other_splits,
    "per-user-costs-more": per_user,
    "loss-shrinks-with-data": loss_shrinks,
    "theorem-2": Theorem("mm_averages, laplace, unbounded, published"),
    "theorem-3": Theorem("mm_averages, gaussian, unbounded, published"),
    "theorem-4": Theorem("mm_knn, laplace, unbounded, published", "covariance"),
    "theorem-5-l1": Theorem("mm_knn, laplace, unbounded, published", "covariance"),
    "theorem-5-l2": Theorem("mm_knn, gaussian, unbounded, published", "covariance"),
    "theorem-6-l1": Theorem("mm_knn, laplace, unbounded, published", "weights"),
    "theorem-6-l2": Theorem("mm_knn, gaussian, unbounded, published", "weights"),
    "section-4-5": Theorem("mm_knn, laplace, user, published"),
}
