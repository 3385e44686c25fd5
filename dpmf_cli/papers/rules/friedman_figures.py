"""Claims of Friedman, Berkovsky and Kaafar (2016) in figures 3, 5 and 6 and section 5.2."""

import itertools
import math
from collections.abc import Iterable

from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.printed import load
from dpmf_cli.papers.rules.base import Computed, epsilon_text
from dpmf_cli.papers.rules.friedman_shared import FACTORIZED, TOLERANCES, close, crossings, figure, told

HALVES = "PALS, P 0.5"
"""The label of PALS with the printed split. No choice of the space changes the split of this entry."""
SPLITS = ("PALS, P 0.3", "PALS, P 0.4", "PALS, P 0.6", "PALS, P 0.7")


def split_of_pals(evidence: Evidence) -> Computed:
    """At some ε where PALS is below IA, a split other than halves is better."""
    name = evidence.named("friedman_noise_{}")
    halves = evidence.curve(name, HALVES).mean()
    useful = halves <= evidence.baseline(name, "ia")
    if not useful.any():
        raise MissingEvidence(f"{name}: PALS below IA")
    gains = {label: float((halves - evidence.curve(name, label).mean())[useful].max()) for label in SPLITS}
    most = max(gains.values())
    said = ", ".join(f"{label} by {gain:.4f}" for label, gain in gains.items())
    return Computed((most > TOLERANCES["rmse"],), f"below halves at most, {said}")


def norm_bounds_cross_earlier(evidence: Evidence) -> Computed:
    """With the paper's norm bounds, IA is crossed slightly earlier than with the widest bounds of figure 3b."""
    name = evidence.named("friedman_noise_{}")
    found = {
        key: [evidence.crossing(name, label, "IA") for label in (bounded, f"{key}, q_max 2")]
        for key, bounded in (("PSGD", "PSGD"), ("PALS", HALVES))
    }
    held = [part for cells in found.values() for part in (cells[0] < cells[1], close(cells))]
    said = "; ".join(
        f"{key} {epsilon_text(a)} with them, {epsilon_text(b)} with q_max 2" for key, (a, b) in found.items()
    )
    return Computed(tuple(held), f"IA: {said}")


RAW = {
    "PSGD": "no preprocessing, norms lifted",
    "ISGD": "ISGD, no preprocessing",
    "PALS": "PALS, no preprocessing, norms lifted",
}
"""The labels of the curves on raw ratings, by the labels of the same curves of figure 3a."""


def preprocessing(evidence: Evidence) -> Computed:
    """On raw ratings, each method crosses IA markedly later."""
    name = figure(evidence, "fig3a")
    pairs = {key: [evidence.crossing(name, label, "IA") for label in (key, raw)] for key, raw in RAW.items()}
    said = "; ".join(f"{key} {epsilon_text(a)}, raw {epsilon_text(b)}" for key, (a, b) in pairs.items())
    return Computed(tuple(TOLERANCES["markedly"] * a < b for a, b in pairs.values()), f"IA at {said}")


def preprocessing_outweighs_the_choice(evidence: Evidence) -> Computed:
    """For some method, raw ratings move the crossing of IA by a larger factor than the choice of the method does."""
    name = figure(evidence, "fig3a")
    own = {key: evidence.crossing(name, key, "IA") for key in RAW}
    if not 0 < min(own.values()) <= max(own.values()) < math.inf:
        raise MissingEvidence(f"{name}: an IA crossing within the grid")
    moved = {key: evidence.crossing(name, raw, "IA") / own[key] for key, raw in RAW.items()}
    between = max(own.values()) / min(own.values())
    said = ", ".join(f"{key} {epsilon_text(factor)}" for key, factor in moved.items())
    return Computed(
        (max(moved.values()) > between,), f"raw ratings move IA by {said}; methods differ by {between:.3g}"
    )


def norm_bounds(evidence: Evidence) -> Computed:
    """q_max moves the crossing of GE but not of IA.

    Wide bounds are better at the largest ε, narrow bounds at the least.
    """
    name, labels = figure(evidence, "fig3b"), ("q_max 0.5", "q_max 1", "q_max 2")
    items, effects = ([evidence.crossing(name, label, b) for label in labels] for b in ("IA", "GE"))
    curves = [evidence.curve(name, label).mean() for label in labels]
    least, most = ([float(curve[at]) for curve in curves] for at in (0, -1))
    held = (
        close(items),
        min(effects) < math.inf and not close(effects),
        most[0] - min(most[1:]) > TOLERANCES["rmse"],
        min(least[1:]) - least[0] > TOLERANCES["rmse"],
    )
    return Computed(
        held,
        f"IA {', '.join(map(epsilon_text, items))}; GE {', '.join(map(epsilon_text, effects))}; "
        f"RMSE at the least and the largest ε {_spoken(least)}; {_spoken(most)}, for q_max 0.5, 1, 2",
    )


def _spoken(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)


def simple_first(evidence: Evidence) -> Computed:
    """At the least ε, PGE and kNN are below every factorisation. At the largest, some factorisation is below kNN."""
    name = figure(evidence, "fig5")
    curves = {key: evidence.curve(name, key).mean() for key in ("pge", "pknn", *FACTORIZED)}
    held = (
        max(curves[key][0] for key in ("pge", "pknn")) < min(curves[key][0] for key in FACTORIZED),
        min(curves[key][-1] for key in FACTORIZED) < curves["pknn"][-1],
    )
    ends = "; ".join(f"{key.upper()} {curve[0]:.3f} … {curve[-1]:.3f}" for key, curve in curves.items())
    return Computed(held, f"RMSE at both ends of the grid: {ends}")


def neighbours_resilient(evidence: Evidence) -> Computed:
    """kNN crosses IA before every factorisation, and before kNN with a fixed covariance: its covariance helps."""
    name = figure(evidence, "fig5")
    found = crossings(evidence, name, "IA", ("pknn", "public_knn", *FACTORIZED))
    held = (found["pknn"] < min(found[key] for key in FACTORIZED), found["pknn"] < found["public_knn"])
    return Computed(held, f"IA {told(found)}")


def neighbours_then_effects(evidence: Evidence) -> Computed:
    name = figure(evidence, "fig5")
    found = crossings(evidence, name, "IA", ("pknn", "pge", *FACTORIZED))
    held = (found["pknn"] < found["pge"], found["pge"] < min(found[key] for key in FACTORIZED))
    return Computed(held, f"IA {told(found)}")


def best_pair(evidence: Evidence) -> Computed:
    """No pair of λ and d is better than the printed one: for clean ALS, then for ISGD at each ε."""
    appendix = load("friedman2016")["appendix"]
    printed = (appendix["regularization"], appendix["factors"])
    held, said = [], []
    for what, rmse in _by_pair(evidence).items():
        best = min(rmse, key=rmse.__getitem__)
        held.append(rmse[printed] - rmse[best] < TOLERANCES["rmse"])
        said.append(f"{what} λ {best[0]:g}, d {best[1]} ({rmse[best]:.4f}, the printed {rmse[printed]:.4f})")
    return Computed(tuple(held), f"best: {'; '.join(said)}")


def _by_pair(evidence: Evidence) -> dict[str, dict[tuple[float, int], float]]:
    """Returns the RMSE by method and ε, then by (λ, d)."""
    found: dict[str, dict[tuple[float, int], float]] = {}
    for method, d in itertools.product(("ALS", "ISGD"), (1, 3, 5, 10)):
        for rate, point in evidence.line("friedman_fig6_pairs", f"{method}, d {d}"):
            for epsilon, rmse in zip(point.epsilons, point.mean(), strict=True):
                what = f"{method}, ε {epsilon:g}" if math.isfinite(epsilon) else f"clean {method}"
                found.setdefault(what, {})[rate, d] = float(rmse)
    return found


def stable_after(evidence: Evidence) -> Computed:
    """From the printed k on, at the latest, RMSE stays within the tolerance: for clean ALS, then for ISGD."""
    printed = load("friedman2016")["appendix"]["stable_after"]
    held, said = [], []
    for label in ("ALS, k", "ISGD, k"):
        points = evidence.line("friedman_fig6_pairs", label)
        rmse = {k: float(point.mean()[-1]) for k, point in points}
        settled = min(k for k in rmse if _spread(rmse, k) <= TOLERANCES["stable"])
        held.append(settled <= printed)
        since = f"from {settled:g}" if settled < max(rmse) else "not before the last k"
        said.append(f"{label.partition(',')[0]} {since}")
    return Computed(tuple(held), f"RMSE within {TOLERANCES['stable']:g}: {', '.join(said)}")


def _spread(rmse: dict[float, float], first: float) -> float:
    later = [value for k, value in rmse.items() if k >= first]
    return max(later) - min(later)
