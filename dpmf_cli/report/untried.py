"""What results do not cover: the methods, the kinds of privacy and the ε that nobody ran."""

from collections.abc import Iterator, Sequence

import numpy as np

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.protection import PROMISES, protection_of

FEW_FOLDS = 5
"""With fewer folds, Student's t alone makes an interval more than a third wider than with many."""


def untried(experiments: Sequence[Experiment]) -> Iterator[str]:
    """Yields sentences on what the experiments of one dataset leave open."""
    curves = [curve for experiment in experiments for curve in experiment.curves]
    run = {curve.algorithm for curve in curves}
    left = [key for key in PRIVATE if key not in run]
    if left:
        yield f"{len(left)} of the {len(PRIVATE)} private methods of dpmf: {', '.join(left)}."
    yield from _neighbours(curves)
    yield from _provable(curves)
    grids = [curve.epsilons for curve in curves if curve.swept is None]
    if grids:
        low, high = min(float(grid[0]) for grid in grids), max(float(grid[-1]) for grid in grids)
        yield f"ε below {low:g} or above {high:g}."
    for key in ("ia", "ge"):
        if all(experiment.baseline(key) is None for experiment in experiments):
            yield f"The baseline {key.upper()}: add `{key}` to `baselines`."
    folds = max(experiment.folds for experiment in experiments)
    if folds < FEW_FOLDS:
        yield f"More than {folds} fold{'s' if folds > 1 else ''}: with 5 or 10 the intervals are narrower."
    if max(experiment.runs for experiment in experiments) == 1:
        yield "More than one run: each fold has had a single noise draw."
    if any(curve.swept is not None for curve in curves):
        yield "The points of a sweep as candidates: they are in the sweep's figure, but not in this advice."
    yield "Other parameters. Choosing among them by these errors costs ε that is counted nowhere."


def _neighbours(curves: Sequence[Measured]) -> Iterator[str]:
    """Yields the kinds of neighbours that no curve has, with the methods that offer them."""
    seen = {curve.neighbours for curve in curves}
    for kind in Neighbours:
        if kind.value not in seen:
            able = [key for key, entry in PRIVATE.items() if kind in {n for n, _ in entry.variants}]
            yield f"`neighbours: {kind.value}`, to hide {PROMISES[protection_of(kind)].hides} ({', '.join(able)})."


def _provable(curves: Sequence[Measured]) -> Iterator[str]:
    """Names methods run as published whose claimed ε cannot be proved, and whose corrected mode was not run."""
    seen = {(curve.algorithm, curve.neighbours, curve.mode) for curve in curves}
    able = [
        curve.label
        for curve in curves
        if curve.mode == Mode.PUBLISHED.value
        and np.any(curve.provable > curve.claimed * (1 + 1e-6))
        and _has_corrected(PRIVATE.get(curve.algorithm), curve)
        and (curve.algorithm, curve.neighbours, Mode.CORRECTED.value) not in seen
    ]
    if able:
        yield f"`mode: corrected`, in which every ε of {', '.join(dict.fromkeys(able))} is provable."


def _has_corrected(entry: type[PrivateAlgorithm] | None, curve: Measured) -> bool:
    return entry is not None and (Neighbours(curve.neighbours), Mode.CORRECTED) in entry.variants
