"""Made-up experiments of several guarantees, for the tests of rankings and of their figures."""

from dataclasses import replace
from typing import Any

import numpy as np

from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.privacy.protection import Protection
from tests.evaluation.made_curves import noise_free_of
from tests.report.conftest import make

USER, VALUE, LOCAL = Protection.USER, Protection.VALUE, Protection.LOCAL
KINDS = USER, VALUE, VALUE, LOCAL, VALUE, VALUE


def mixed(**changes: Any) -> Experiment:
    """Curves of three kinds, one of which protects from other users only. pge, psgd, pknn and dpals have
    provable ε."""
    experiment = make(6)
    curves = [
        replace(curve, protects=kind, source="Friedman 2016")
        for curve, kind in zip(experiment.curves, KINDS, strict=True)
    ]
    curves[2] = replace(curves[2], provable=curves[2].epsilons, label="psgd, bounded, published")
    curves[4] = replace(curves[4], provable=2 * curves[4].epsilons, delta=1e-6, mode="corrected")
    curves[5] = replace(curves[5], provable=curves[5].epsilons, joint=True)
    return replace(experiment, curves=tuple(curves), **changes)


def with_zero(whole: Experiment, *errors: float) -> Experiment:
    """The same from ε → 0 on, where the curves have these errors, with their noise-free runs, and beside tuned averages."""
    grid = np.append(1e-6, whole.curves[0].epsilons[1:])
    curves = [
        replace(
            each,
            epsilons=grid,
            claimed=grid,
            provable=each.provable * grid / each.epsilons,
            rmse=np.where(grid < 1e-5, error, each.rmse),
            noise_free=noise_free_of(each.rmse[:, 0, -1]),
        )
        for each, error in zip(whole.curves, errors, strict=True)
    ]
    tuned = (replace(each, label=f"tuned {each.label}", tuned=True) for each in whole.baselines[1:3])
    return replace(whole, curves=tuple(curves), baselines=(*whole.baselines, *tuned))


def provable(**options: Any) -> Experiment:
    """pge and isgd are pure; psgd is better at large ε, joint and with a δ; pals has only a claimed ε."""
    experiment = make(4, **options)
    kept: dict[str, Any] = {"protects": VALUE, "source": "Friedman 2016", "mode": "corrected"}
    curves = [replace(each, provable=each.epsilons, **kept) for each in experiment.curves]
    psgd = curves[2]
    curves[2] = replace(psgd, rmse=psgd.rmse - 0.1, joint=True, delta=1e-6, label="psgd, bounded, corrected")
    curves[3] = replace(curves[3], provable=np.full(16, np.inf))
    return replace(experiment, curves=tuple(curves))
