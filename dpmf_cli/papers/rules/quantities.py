"""The functions of the language of rules: what was measured, and arithmetic on it.

A function of `MEASURED` takes the evidence first, then what is written in its call: mostly a config and the label of
a curve. It raises MissingEvidence if that result is missing. Dictionaries are reduced by their values.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.terminal import significant
from dpmf_cli.datasets.catalog import entry
from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.rules import messages

Values = NDArray[np.float64]


def config(evidence: Evidence, *patterns: str) -> str:
    """The name of a config for the data set; of several, the first that was run."""
    *others, last = map(evidence.named, patterns)
    if others:
        evidence.experiment(run := next(filter(evidence.was_run, others), last))
        return run
    return last


def theta(evidence: Evidence, name: str, label: str, baseline: str) -> float:
    """The θ at which a curve crosses a baseline: 0 below the grid, ∞ if it is not reached."""
    curve, epsilon = evidence.curve(name, label), evidence.crossing_epsilon(name, label, baseline)
    if curve.thetas is None or not 0 < epsilon < np.inf:
        return epsilon
    return float(np.exp(np.interp(np.log(epsilon), np.log(curve.epsilons), np.log(curve.thetas))))


def rmse_at(evidence: Evidence, name: str, label: str, epsilon: float) -> float:
    """The RMSE of a curve at an ε within its grid, interpolated over log ε."""
    curve = evidence.curve(name, label)
    return float(np.interp(np.log(epsilon), np.log(curve.epsilons), curve.mean()))


def rmse_where(
    evidence: Evidence, name: str, label: str, other_name: str, other: str, baseline: str
) -> float:
    """The RMSE of a curve at the ε at which another curve, on the same grid, crosses a baseline.

    Below the baseline the curve is first, unless it crosses it again.
    Where the other never crosses it, or does so below its grid, the last or the first ε is a bound. The RMSE is NaN
    if that bound does not decide which curve is first.
    """
    curve, level = evidence.curve(name, label), evidence.baseline(name, baseline)
    epsilon = evidence.crossing_epsilon(other_name, other, baseline)
    if epsilon == math.inf:
        last = float(curve.mean()[-1])
        return last if last < level else math.nan
    if epsilon == 0:
        first = float(curve.mean()[curve.first])
        return first if first > level else math.nan
    return rmse_at(evidence, name, label, epsilon)


def loss(evidence: Evidence, name: str, label: str) -> Values:
    """(E,) the RMSE less that of the noise-free run."""
    return _loss(evidence.curve(name, label), name)


def _loss(curve: Measured, name: str) -> Values:
    noise_free = curve.without_noise()
    if noise_free is None or not np.isfinite(lost := curve.mean() - noise_free.mean()).all():
        raise MissingEvidence(name)
    return lost


def growing_loss(evidence: Evidence, name: str) -> list[tuple[str, Values]]:
    """The label of each curve, and (stages, E) its loss on growing portions of the ratings."""
    experiment = evidence.experiment(name)
    if len(experiment.growth) < 2:
        raise MissingEvidence(name)
    return [
        (curve.label, np.array([_loss(stage.curves[rank], name) for stage in experiment.growth]))
        for rank, curve in enumerate(experiment.curves)
    ]


def swept(evidence: Evidence, name: str, line: str) -> dict[float, float]:
    """The RMSE at the largest ε, by the value that is swept."""
    return {value: float(point.mean()[-1]) for value, point in evidence.line(name, line)}


def swept_at(evidence: Evidence, name: str, line: str, epsilon: float) -> dict[float, float]:
    """The RMSE at an ε of the grid, by the value that is swept."""
    points = evidence.line(name, line)
    return {value: float(point.mean()[point.epsilons == epsilon][0]) for value, point in points}


def swept_pairs(evidence: Evidence, name: str, method: str) -> dict[tuple[float, int], Values]:
    """The (E,) RMSE of a method by (λ, d), where each d has a line over λ."""
    return {
        (rate, d): point.mean()
        for d in (1, 3, 5, 10)
        for rate, point in evidence.line(name, f"{method}, d {d}")
    }


def percent(evidence: Evidence, name: str, label: str) -> Values:
    """(X,) the percentage of errors that are at most each limit, at the last ε of the grid, where the ceiling of
    personalised privacy has no effect."""
    return _percent(evidence.curve(name, label))


def swept_percent(evidence: Evidence, name: str, line: str) -> dict[float, Values]:
    """`percent`, by the value that is swept."""
    return {value: _percent(point) for value, point in evidence.line(name, line)}


def _percent(curve: Measured, at: int = -1) -> Values:
    assert curve.error_cdf is not None
    return np.asarray(100 * curve.error_cdf.mean(axis=(0, 1))[at])


def at_most_one(evidence: Evidence, name: str, label: str, at: int = -1) -> float:
    """The percentage of errors that are at most 1, at one place of the grid of ε."""
    curve = evidence.curve(name, label)
    return float(_percent(curve, at)[curve.limits.index(1.0)])


def density(evidence: Evidence, name: str) -> float:
    """The fraction of all (user, item) pairs that are in a training set."""
    experiment = evidence.experiment(name)
    return experiment.density * (1 - 1 / experiment.partition if experiment.partition > 1 else 1.0)


def converged(evidence: Evidence, pattern: str) -> str:
    """The name of a config on the data set, if PMF without noise is better than the global average there. Otherwise
    its fit diverged, and a paper would not have printed it."""
    name = evidence.named(pattern)
    if not evidence.baseline(name, "pmf") < evidence.baseline(name, "ga"):
        raise MissingEvidence(f"{name}: PMF without noise diverged")
    return name


def curves_of(evidence: Evidence, *choices: Sequence[str]) -> dict[str, Measured]:
    """By label the complete curves of Neera et al.'s methods, in the first config of each choice that was run."""
    found: dict[str, Measured] = {}
    for patterns in choices:
        with suppress(MissingEvidence):
            curves = evidence.experiment(config(evidence, *patterns)).curves
            found |= {each.label: each for each in curves if each.algorithm in messages.METHODS}
    if not found or any(each.missing for each in found.values()):
        raise MissingEvidence(f"{choices}")
    return found


def epsilon_text(value: float) -> str:
    """A crossing of `Evidence.crossing` in words."""
    if not value:
        return "below the grid"
    return significant(value) if np.isfinite(value) else "not reached"


def apart(*values: Any) -> float:
    """The ratio of the largest to the smallest ε; NaN if one is off the grid."""
    every = np.ravel(values[0] if len(values) == 1 else values)
    return float(every.max() / every.min()) if every.min() > 0 and every.max() < math.inf else math.nan


def regret_of_order(low: Mapping[float, float], high: Mapping[float, float]) -> float:
    """By how much RMSE two sweeps say that the best value of the first is below that of the second.

    It is what one gives up, over both sweeps, by choosing values against this order, less what one gives up by
    choosing them in this order.
    """
    lost = {(a, b): (low[a] - min(low.values())) + (high[b] - min(high.values())) for a in low for b in high}
    against = min(each for (a, b), each in lost.items() if a >= b)
    return against - min(each for (a, b), each in lost.items() if a < b)


def off_straight(values: Values) -> float:
    """How far equally spaced points are, at most, from the line through the first and the last of them, as a fraction
    of the line's rise or fall; ∞ if a point is not finite, or if the ends are level."""
    if not np.isfinite(values).all() or values[-1] == values[0]:
        return np.inf
    off = np.abs(values - np.linspace(values[0], values[-1], len(values))).max()
    return float(off / abs(values[-1] - values[0]))


def within(epsilons: Values, least: float, most: float = np.inf) -> NDArray[np.bool_]:
    """Which ε are in an interval. A grid, whose points are rounded, without any decides nothing."""
    kept: NDArray[np.bool_] = (epsilons >= least * (1 - 1e-6)) & (epsilons <= most * (1 + 1e-6))
    if not kept.any():
        raise MissingEvidence(f"ε from {least:g} on")
    return kept


def at(epsilons: Values, values: Values, epsilon: float, nearness: float = 1e-5) -> float:
    """The value at an ε of the grid."""
    found = values[np.isclose(epsilons, epsilon, rtol=nearness)]
    if not len(found):
        raise MissingEvidence(f"ε = {epsilon:g}")
    return float(found[0])


def reduced(reduce: Callable[..., Any], values: Any, *others: Any) -> Any:
    """The values of a dictionary, or an array along its first axis, reduced. Raises MissingEvidence for none."""
    every = [values, *others] if others else values
    if isinstance(values, Mapping):
        every = list(values.values())
    if not len(every):
        raise MissingEvidence("no values")
    return reduce(every, axis=0)


def places(name: str) -> Callable[..., Any]:
    """A function that finds the key of a dictionary, or the place in an array, with the least or most."""

    def find(values: Any) -> Any:
        if isinstance(values, Mapping):
            return (min if name == "argmin" else max)(values, key=values.__getitem__)
        return getattr(np, name)(values, axis=0)

    return find


def _by_name(*functions: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    return {each.__name__: each for each in functions}


MEASURED: Mapping[str, Callable[..., Any]] = {
    **_by_name(config, converged, rmse_at, rmse_where, theta, loss, growing_loss, percent, at_most_one),
    **_by_name(swept, swept_at, swept_pairs, swept_percent, density, curves_of),
    "crossing": lambda evidence, *of: evidence.crossing_epsilon(*of),
    "curve": lambda evidence, *of: evidence.curve(*of),
    "level": lambda evidence, *of: evidence.baseline(*of),
    "rmse": lambda evidence, name, label: evidence.curve(name, label).mean(),
    "epsilons": lambda evidence, name, label: evidence.curve(name, label).epsilons,
    "claimed": lambda evidence, name, label: evidence.curve(name, label).claimed,
    "provable": lambda evidence, name, label: evidence.curve(name, label).provable,
    "label": lambda evidence, name, label: evidence.curve(name, label).label,
    "best": lambda evidence, name, key: evidence.best(name, key)[1],
    "epsilons_of_best": lambda evidence, name, key: evidence.best(name, key)[0],
    "has": lambda evidence, name, key: any(
        each.algorithm == key for each in evidence.experiment(name).curves
    ),
    "width": lambda evidence: entry(evidence.data).scale.width,
    "traffic": lambda evidence: messages.traffic(entry(evidence.data).expected.items),
}

PLAIN: Mapping[str, Callable[..., Any]] = {
    **_by_name(apart, at, len, list, off_straight, regret_of_order, within),
    **{name: getattr(np, name) for name in ("abs", "any", "isclose", "mean", "sqrt", "sum", "where")},
    **{name: places(name) for name in ("argmax", "argmin")},
    "diff": lambda values: np.diff(values, axis=0),
    "finite": np.isfinite,
    "max": lambda *values: reduced(np.max, *values),
    "mean_of": lambda curve: curve.mean(),
    "message_bias": messages.bias,
    "message_ends": messages.ends,
    "message_names_item": messages.names_item,
    "message_slope": messages.slope,
    "min": lambda *values: reduced(np.min, *values),
    "pair": lambda *values: values,
    "pairs": lambda values: list(combinations(values, 2)),
    "upper": str.upper,
    "values": lambda mapping: np.array(list(mapping.values())),
}
