"""An experiment cut by what its ε protect, and from whom, so that no figure has ε of two kinds on one axis.

An ε of one kind says nothing about one of another, nor does one towards the other users bound what everybody learns:
side by side on an axis they look comparable, and are not.
"""

from collections.abc import Iterable
from dataclasses import replace

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment, Growth, Measured
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee


def kinds_of(curves: Iterable[Measured]) -> list[Guarantee]:
    """What the ε of curves protect from whom, in the order of tables."""
    found = {curve.guarantee for curve in curves}
    return [kind for kind in GUARANTEES if kind in found]


def parts_of(experiment: Experiment) -> dict[Guarantee, Experiment]:
    """The experiment once for each kind, with that kind's curves alone, all baselines, and the kind in its title.

    The only part of an experiment of one kind is the experiment itself.
    """
    kinds = kinds_of(experiment.curves)
    if len(kinds) == 1:
        return {kinds[0]: experiment}
    return {kind: _part(experiment, kind) for kind in kinds}


def _part(experiment: Experiment, kind: Guarantee) -> Experiment:
    def of_kind(curves: tuple[Measured, ...]) -> tuple[Measured, ...]:
        return tuple(curve for curve in curves if curve.guarantee == kind)

    growth = experiment.growth
    if growth is not None:
        stages = tuple(replace(stage, curves=of_kind(stage.curves)) for stage in growth.stages)
        growth = Growth(growth.order, stages)
    return replace(
        experiment,
        title=f"{experiment.title}: {kind}",
        curves=of_kind(experiment.curves),
        growth=growth,
    )


def refuse_mixed(curves: Iterable[Measured]) -> None:
    """Raises `DpmfError` for curves that one figure may not show: their ε protect different things, or from different
    adversaries."""
    kinds = kinds_of(curves)
    if len(kinds) > 1:
        raise DpmfError(
            f"no figure across what is protected from whom ({'; '.join(map(str, kinds))}): their ε are not "
            "comparable; draw one for each (docs/privacy.md)"
        )
