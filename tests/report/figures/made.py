"""Experiments made for figures, and the points of drawn lines."""

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from dpmf_cli.evaluation.curves import Axis, Experiment, Measured, Stage
from dpmf_cli.evaluation.folds import Order, Portion
from dpmf_cli.report.figures.charts import MOST_LINES
from dpmf_cli.report.html.page import Drawn, _environment
from tests.report.conftest import of_theta

SHARES = (0.2, 0.5, 1.0)


def picture(drawn: Drawn) -> str:
    template = _environment().get_template("svg.html.j2")
    return str(template.module.picture(drawn))  # type: ignore[attr-defined]


def xs(line: Line2D) -> list[Any]:
    points: list[Any] = np.asarray(line.get_xdata()).tolist()
    return points


def ys(line: Line2D) -> list[Any]:
    points: list[Any] = np.asarray(line.get_ydata()).tolist()
    return points


def cut(curve: Measured, part: slice, **changes: Any) -> Measured:
    """The curve at a part of its grid."""
    columns = {key: getattr(curve, key)[part] for key in ("epsilons", "claimed", "provable")}
    thetas = None if curve.thetas is None else curve.thetas[part]
    return replace(curve, **{**columns, "thetas": thetas, "rmse": curve.rmse[:, :, part], **changes})


def many(experiment: Experiment, count: int = MOST_LINES + 7) -> Experiment:
    """The experiment with that many copies of its first curve; the first of them is the worst, the last the best."""
    (curve, *_) = experiment.curves
    copies = (
        replace(curve, label=f"curve {rank}", rmse=curve.rmse + 0.001 * (count - rank))
        for rank in range(count)
    )
    return replace(experiment, curves=tuple(copies))


def grown(experiment: Experiment, order: Order = "timestamp", *, at: int = 4) -> Experiment:
    """`experiment` with growth: the smaller the portion, the larger the loss; one point of the grid."""
    whole = of_theta(experiment)
    stages = []
    for share in SHARES:
        curves = tuple(
            cut(replace(each, rmse=each.rmse + 0.1 / share), slice(at, at + 1)) for each in whole.curves
        )
        days = 100 * share if order == "timestamp" else None
        stages.append(Stage(Portion(share, int(1000 * share), 30, days), curves, whole.baselines))
    return replace(whole, curves=stages[-1].curves, growth=tuple(stages))


def values_of(curve: Measured, axis: Axis, line: str, shift: float = 0.0) -> tuple[Measured, ...]:
    """An entry at two θ (or ε), with three values of a parameter that changes the ε of a θ."""
    grid = curve.epsilons[4:6]
    return tuple(
        cut(
            curve,
            slice(4, 6),
            label=f"{line}, k {k}",
            line=line,
            epsilons=grid * k if axis == "theta" else grid,
            thetas=grid if axis == "theta" else None,
            rmse=curve.rmse[:, :, 4:6] + 0.01 * k + shift,
            swept=("k", float(k)),
        )
        for k in (3, 1, 2)
    )
