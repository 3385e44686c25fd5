"""Lists the figures of an experiment: the names of their files, and the functions that draw them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.privacy.protection import GUARANTEES
from dpmf_cli.report.figures.error_cdf import (
    error_cdf_bytes,
    has_error_cdf,
    swept_error_cdf_bytes,
)
from dpmf_cli.report.figures.growth import growth_bytes, growth_lines
from dpmf_cli.report.figures.legible import legible
from dpmf_cli.report.figures.panels import parts_of
from dpmf_cli.report.figures.rmse_curves import rmse_curves_bytes
from dpmf_cli.report.figures.shown import is_drawable
from dpmf_cli.report.figures.sweeps import sweep_bytes, swept_parameters

Draw = Callable[[str], bytes]
"""From a format, one of `style.FORMATS`, to the bytes of the file."""


def drawings(experiment: Experiment) -> dict[str, Draw]:
    """Returns every figure by its file's name without the suffix; none if no curve is complete.

    If the experiment has several guarantees, each guarantee has figures of its own: `curves_value`,
    `curves_value_joint`, `curves_user`, …
    """
    parts = parts_of(experiment)
    if len(parts) <= 1:
        return _drawings(experiment)
    return {
        f"{name}_{guarantee.key}": draw
        for guarantee, part in parts.items()
        for name, draw in _drawings(part).items()
    }


def never_drawn(experiment: Experiment) -> Iterator[str]:
    """Yields names of figures that are out of date and will be deleted: an older version or older config drew them.

    They mix kinds of guarantee, do not name their kind, or name a kind that no curve has. A figure that only waits
    for results is not among them.
    """
    complete = _as_if_complete(experiment)
    drawn = drawings(complete)
    for name in _drawings(complete):
        yield from (
            each
            for each in (name, *(f"{name}_{guarantee.key}" for guarantee in GUARANTEES))
            if each not in drawn
        )


def _as_if_complete(experiment: Experiment) -> Experiment:
    """Returns the experiment with made-up results where results are missing; use it only for names of figures."""
    growth = experiment.growth
    if growth is not None:
        stages = (replace(stage, curves=tuple(map(_filled, stage.curves))) for stage in growth.stages)
        growth = replace(growth, stages=tuple(stages))
    return replace(
        experiment,
        curves=tuple(map(_filled, experiment.curves)),
        baselines=tuple(map(_filled, experiment.baselines)),
        growth=growth,
    )


def _filled(measured: Measured) -> Measured:
    if is_complete(measured):
        return measured
    return replace(measured.changed(np.ones_like), missing=0)


def _drawings(experiment: Experiment) -> dict[str, Draw]:
    experiment = legible(experiment)
    found: dict[str, Draw] = {}
    drawable = any(is_drawable(curve) for curve in experiment.curves if curve.swept is None)
    with_errors = has_error_cdf(experiment)
    if drawable:
        found["curves"] = partial(rmse_curves_bytes, experiment)
    if drawable and with_errors:
        found["error_cdf"] = partial(error_cdf_bytes, experiment)
    for parameter in swept_parameters(experiment):
        found[f"sweep-{parameter}"] = partial(sweep_bytes, experiment, parameter)
        if with_errors:
            found[f"error_cdf-{parameter}"] = partial(swept_error_cdf_bytes, experiment, parameter)
    if growth_lines(experiment):
        found["growth"] = partial(growth_bytes, experiment)
    return found
