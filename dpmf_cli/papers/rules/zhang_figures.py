"""The measured values of what figures 2 to 5 of Zhang et al. (2018) show."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.printed import load

PRINTED = load("zhang2018")
TOLERANCES = PRINTED["tolerances"]

SPECIFICATIONS = ("PDP-PMF1", "PDP-PMF2", "PDP-PMF3")
"""Tables 2 and 3: f_c falls from the first to the last."""


def strictest(evidence: Evidence, figure: int) -> float:
    """Returns the RMSE of DP-PMF at ε = ε_c, the least ε of the grid."""
    return float(evidence.curve(config(evidence, figure), "dp_pmf").mean()[0])


def figure_2(evidence: Evidence) -> tuple[list[float], list[float]]:
    """Returns f_c, and the RMSE of PDP-PMF at each f_c."""
    return _line(evidence, 2, "PDP-PMF")


def figure_3(evidence: Evidence) -> list[Measured]:
    """Returns PDP-PMF under each specification."""
    return [evidence.curve(config(evidence, 3), label) for label in SPECIFICATIONS]


def figure_4(evidence: Evidence) -> list[list[float]]:
    """Returns the RMSE over ε_m under each specification."""
    return [_line(evidence, 4, label)[1] for label in SPECIFICATIONS]


def figure_5a(evidence: Evidence) -> list[NDArray[np.float64]]:
    """Returns `percent` (X,) for each of t₁ to t₄."""
    points = dict(evidence.line(config(evidence, "5a"), "PDP-PMF"))
    return [percent(points[t]) for t in PRINTED["figure5"]["thresholds"]]


def figure_5b(evidence: Evidence) -> tuple[list[float], NDArray[np.float64]]:
    """Returns t, and (t, X) the percentage of errors that are at most each of the three limits."""
    line = evidence.line(config(evidence, 5), "PDP-PMF")
    return [value for value, _ in line], np.array([percent(curve) for _, curve in line])


def best_and_fall(evidence: Evidence) -> tuple[list[float], list[float]]:
    """Returns for each limit of figure 5(b) the best t, and by how many points t = 1 is below the printed best t."""
    thresholds, table = figure_5b(evidence)
    printed = PRINTED["figure5"]["best_threshold"]
    falls = table[thresholds.index(printed)] - table[thresholds.index(1.0)]
    return [thresholds[at] for at in table.argmax(axis=0)], falls.tolist()


def percent(curve: Measured, at: int = -1) -> NDArray[np.float64]:
    """(X,) the percentage of errors that are at most each limit, at one place of the grid of ε.

    At the last place, which is the default, the ceiling has no effect.
    """
    assert curve.error_cdf is not None
    return np.asarray(100 * curve.error_cdf.mean(axis=(0, 1))[at])


def at_most_one(curve: Measured, at: int = -1) -> float:
    """Returns the percentage of errors that are at most 1."""
    return float(percent(curve, at)[curve.limits.index(1.0)])


def off_straight(values: Sequence[float]) -> float:
    """Returns how far equally spaced points are, at most, from the line through the first and the last of them.

    The distance is a fraction of the line's rise or fall. It is ∞ if a point is not finite, or if the ends are level.
    """
    if not np.isfinite(values).all() or values[-1] == values[0]:
        return np.inf
    off = np.abs(values - np.linspace(values[0], values[-1], len(values))).max()
    return float(off / abs(values[-1] - values[0]))


def config(evidence: Evidence, figure: int | str) -> str:
    """Returns the name of the config of a figure on this data set.

    Raises MissingEvidence if PMF without noise is worse than the global average there: its fit diverged, and a paper
    would not have printed it.
    """
    name = evidence.named(f"zhang_fig{figure}_{{}}")
    if not evidence.baseline(name, "pmf") < evidence.baseline(name, "ga"):
        raise MissingEvidence(f"{name}: PMF without noise diverged")
    return name


def _line(evidence: Evidence, figure: int, label: str) -> tuple[list[float], list[float]]:
    points = evidence.line(config(evidence, figure), label)
    return [value for value, _ in points], [float(curve.mean()[-1]) for _, curve in points]
