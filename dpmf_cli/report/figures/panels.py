"""An experiment cut by what its ε protect, and from whom, so that no figure has ε of two guarantees on one axis.

An ε about one thing says nothing about one about another, nor does one towards the other users bound what everybody
learns: side by side on an axis they look comparable, and are not.
"""

from collections.abc import Iterable
from dataclasses import replace

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment, Growth, Measured
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee


def guarantees_of(curves: Iterable[Measured]) -> list[Guarantee]:
    """What the ε of curves protect from whom, at any δ, in the order of tables."""
    found = {curve.guarantee.at_any_delta for curve in curves}
    return [guarantee for guarantee in GUARANTEES if guarantee in found]


def parts_of(experiment: Experiment) -> dict[Guarantee, Experiment]:
    """The experiment once for each guarantee, with its curves alone, all baselines, and the guarantee in its title.

    The only part of an experiment of one guarantee is the experiment itself.
    """
    guarantees = guarantees_of(experiment.curves)
    if len(guarantees) == 1:
        return {guarantees[0]: experiment}
    return {guarantee: _part(experiment, guarantee) for guarantee in guarantees}


def _part(experiment: Experiment, guarantee: Guarantee) -> Experiment:
    def with_it(curves: tuple[Measured, ...]) -> tuple[Measured, ...]:
        return tuple(curve for curve in curves if curve.guarantee.at_any_delta == guarantee)

    growth = experiment.growth
    if growth is not None:
        stages = tuple(replace(stage, curves=with_it(stage.curves)) for stage in growth.stages)
        growth = Growth(growth.order, stages)
    return replace(
        experiment,
        title=f"{experiment.title}: {guarantee}",
        curves=with_it(experiment.curves),
        growth=growth,
    )


def refuse_mixed(curves: Iterable[Measured]) -> None:
    """Raises `DpmfError` for curves that one figure may not show: their ε protect different things, or from different
    adversaries."""
    guarantees = guarantees_of(curves)
    if len(guarantees) > 1:
        raise DpmfError(
            f"no figure across what is protected from whom ({'; '.join(map(str, guarantees))}): their ε are not "
            "comparable; draw one for each (docs/privacy.md)"
        )
