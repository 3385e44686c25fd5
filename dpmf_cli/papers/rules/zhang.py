"""Claims of Zhang et al. (2018). The paper has pictures of curves and words about them; tolerances in its file define
what the words mean."""

from collections.abc import Iterable, Sequence
from itertools import chain, combinations, pairwise

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.printed import load
from dpmf_cli.papers.rules.base import Computed, Rule, Theorem

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


def rises_with_f_c(evidence: Evidence) -> Computed:
    """RMSE rises with each step of f_c."""
    _, rmse = figure_2(evidence)
    return Computed(tuple(a < b for a, b in pairwise(rmse)), f"RMSE {_list(rmse, 3)}")


def linear_in_f_c(evidence: Evidence) -> Computed:
    off = off_straight(figure_2(evidence)[1])
    return Computed((off <= TOLERANCES["straight"],), f"{100 * off:.0f} % of the rise off the straight line")


def far_below_dp_pmf(evidence: Evidence) -> Computed:
    """RMSE is far below that of DP-PMF at each f_c."""
    uniform, (_, rmse) = strictest(evidence, 2), figure_2(evidence)
    return Computed(_much_below(rmse, uniform), f"RMSE {_range(rmse, 3)} against {uniform:.3f}")


def _much_below(rmse: Sequence[float], uniform: float) -> tuple[bool, ...]:
    return tuple(each <= (1 - TOLERANCES["much"]) * uniform for each in rmse)


def figure2_level(evidence: Evidence) -> Computed:
    """RMSE is near the printed level at each f_c."""
    _, rmse = figure_2(evidence)
    return Computed(_near(rmse, PRINTED["figure2_level"], "level"), f"RMSE {_range(rmse, 3)}")


def smaller_threshold_is_worse(evidence: Evidence) -> Computed:
    """The percentage of errors of at most 1 rises with each step of a falling f_c."""
    shares = [at_most_one(curve) for curve in figure_3(evidence)]
    held = tuple(a < b for a, b in pairwise(shares))
    return Computed(held, f"errors of at most 1, by falling f_c: {_list(shares, 1)} %")


def curves_overlap(evidence: Evidence) -> Computed:
    """Each two of the three curves overlap at every error."""
    curves = [percent(curve) for curve in figure_3(evidence)]
    apart = [float(np.abs(a - b).max()) for a, b in combinations(curves, 2)]
    held = tuple(each <= TOLERANCES["overlap"] for each in apart)
    return Computed(held, f"apart by {_range(apart, 1)} points at most")


def errors_at_most_one(evidence: Evidence) -> Computed:
    """The percentage of errors of at most 1 is near the printed one for each specification."""
    shares = [at_most_one(curve) for curve in figure_3(evidence)]
    return Computed(_near(shares, PRINTED["errors_at_most_one"], "percent"), f"{_range(shares, 1)} %")


def falls_with_eps_m(evidence: Evidence) -> Computed:
    """RMSE falls over all ε_m, for each specification."""
    lines = figure_4(evidence)
    held = tuple(all(a > b for a, b in pairwise(line)) for line in lines)
    return Computed(held, "; ".join(f"from {line[0]:.3f} to {line[-1]:.3f}" for line in lines))


def linear_in_eps_m(evidence: Evidence) -> Computed:
    """RMSE is linear in ε_m for each specification."""
    off = [off_straight(line) for line in figure_4(evidence)]
    held = tuple(each <= TOLERANCES["straight"] for each in off)
    return Computed(held, f"{_list([100 * each for each in off], 0)} % of the fall off the straight lines")


def figure4_below_dp_pmf(evidence: Evidence) -> Computed:
    """RMSE is far below that of DP-PMF at every ε_m, for each specification."""
    uniform, lines = strictest(evidence, 4), figure_4(evidence)
    held = tuple(all(_much_below(line, uniform)) for line in lines)
    return Computed(held, f"RMSE {_range(chain(*lines), 3)} against {uniform:.3f}")


def larger_data_is_better(evidence: Evidence) -> Computed:
    """RMSE in figures 4(b) and 4(c) is below that in 4(a) at every ε_m, for each specification."""
    here, small = np.array(figure_4(evidence)), np.array(figure_4(evidence.on("ml-100k")))
    less = small - here
    return Computed(
        tuple((less > 0).all(axis=1).tolist()), f"lower than on ML-100K by {_range(less.flat, 3)}"
    )


def figure4_right_end(evidence: Evidence) -> Computed:
    """RMSE at the largest ε_m is within the printed range for each specification."""
    (low, high), slack = PRINTED["figure4_right_end"], TOLERANCES["right_end"]
    ends = [line[-1] for line in figure_4(evidence)]
    held = tuple(low - slack <= each <= high + slack for each in ends)
    return Computed(held, f"RMSE {_range(ends, 3)} at the largest ε_m")


def flat_where_few_are_conservative(evidence: Evidence) -> Computed:
    line = figure_4(evidence)[-1]
    moved = max(line) - min(line)
    return Computed((moved <= TOLERANCES["flat"],), f"PDP-PMF3 moves by {moved:.3f}")


def slight_influence(evidence: Evidence) -> Computed:
    """Each two of the curves of t₁ to t₄ are close at every error."""
    apart = [float(np.abs(a - b).max()) for a, b in combinations(figure_5a(evidence), 2)]
    return Computed(_small(apart), f"apart by {_range(apart, 1)} points at most")


def best_threshold(evidence: Evidence) -> Computed:
    """The best t is the printed one for each limit."""
    best, _ = best_and_fall(evidence)
    printed = PRINTED["figure5"]["best_threshold"]
    thresholds, table = figure_5b(evidence)
    less = (table.max(axis=0) - table[thresholds.index(printed)]).tolist()
    said = f"best t {', '.join(f'{t:g}' for t in best)}; t = {printed:g} is {_list(less, 1)} points below"
    return Computed(_near(best, printed, "threshold"), said)


def small_variations(evidence: Evidence) -> Computed:
    """For each limit, the percentage varies little over the t for which the paper says so."""
    thresholds, table = figure_5b(evidence)
    above = [t > PRINTED["figure5"]["small_above"] for t in thresholds]
    varied = np.ptp(table[above], axis=0).tolist()
    return Computed(_small(varied), f"by {_list(varied, 1)} points")


def _small(points: Sequence[float]) -> tuple[bool, ...]:
    """Returns whether each is small: at most the fall from the best t to 1, which the paper calls small."""
    return tuple(each <= PRINTED["figure5"]["fall"] + TOLERANCES["fall"] for each in points)


def fall_to_the_liberal_point(evidence: Evidence) -> Computed:
    """The fall from the best t to 1 is the printed one for each limit."""
    _, falls = best_and_fall(evidence)
    return Computed(_near(falls, PRINTED["figure5"]["fall"], "fall"), f"by {_list(falls, 1)} points")


def beats_dp_pmf(evidence: Evidence) -> Computed:
    """PDP-PMF beats DP-PMF everywhere in figures 2, 3 and 4, a part for each figure."""
    uniform = at_most_one(evidence.curve(config(evidence, 3), "dp_pmf"), 0)
    (_, rmse), shares = figure_2(evidence), [at_most_one(curve) for curve in figure_3(evidence)]
    held = (
        all(each < strictest(evidence, 2) for each in rmse),
        all(each > uniform for each in shares),
        all(each < strictest(evidence, 4) for each in chain(*figure_4(evidence))),
    )
    said = f"RMSE {_range(rmse, 3)} against {strictest(evidence, 2):.3f}"
    return Computed(held, f"{said}; errors of at most 1 {_range(shares, 1)} against {uniform:.1f} %")


def _near(values: Sequence[float], printed: float, tolerance: str) -> tuple[bool, ...]:
    return tuple(abs(each - printed) <= TOLERANCES[tolerance] + 1e-9 for each in values)


def _list(values: Sequence[float], digits: int) -> str:
    return ", ".join(f"{each:.{digits}f}" for each in values)


def _range(values: Iterable[float], digits: int) -> str:
    every = list(values)
    return f"{min(every):.{digits}f}–{max(every):.{digits}f}"


RULES: dict[str, Rule] = {
    "rises-with-f-c": rises_with_f_c,
    "linear-in-f-c": linear_in_f_c,
    "far-below-dp-pmf": far_below_dp_pmf,
    "figure2-level": figure2_level,
    "smaller-t-is-worse": smaller_threshold_is_worse,
    "curves-overlap": curves_overlap,
    "errors-at-most-one": errors_at_most_one,
    "falls-with-eps-m": falls_with_eps_m,
    "linear-in-eps-m": linear_in_eps_m,
    "figure4-below-dp-pmf": figure4_below_dp_pmf,
    "larger-data-is-better": larger_data_is_better,
    "figure4-right-end": figure4_right_end,
    "flat-where-few-are-conservative": flat_where_few_are_conservative,
    "slight-influence-of-t": slight_influence,
    "best-threshold": best_threshold,
    "small-variations-above-0.4": small_variations,
    "fall-to-the-liberal-point": fall_to_the_liberal_point,
    "beats-dp-pmf": beats_dp_pmf,
    "theorem-4": Theorem("dp_pmf, unbounded, published"),
    "theorem-6": Theorem("personalized, of dp_pmf, unbounded, corrected"),
    "both-schemes-are-private": Theorem("personalized, of dp_pmf, unbounded, published"),
    "remark-7-theorem-4": Theorem("dp_pmf, bounded, published"),
    "remark-7-theorem-6": Theorem("personalized, of dp_pmf, bounded, corrected"),
}
