"""Splits an experiment by guarantee, so that no figure has ε of two guarantees on one axis.

An ε that protects one thing says nothing about another thing, and a joint ε does not bound what everybody learns.
Side by side on an axis such ε would look comparable, and they are not.
"""

from collections.abc import Iterable
from dataclasses import replace

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment, Growth, Measured
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee


def guarantees_of(curves: Iterable[Measured]) -> list[Guarantee]:
    """Returns the guarantees of curves, at any δ, in the order of tables."""
    found = {curve.guarantee.at_any_delta for curve in curves}
    return [guarantee for guarantee in GUARANTEES if guarantee in found]


def parts_of(experiment: Experiment) -> dict[Guarantee, Experiment]:
    """Returns a part of the experiment for each guarantee: its curves, all baselines, and the guarantee in the title.

    An experiment with one guarantee has itself as its only part.
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
    """Raises `DpmfError` if one figure may not show the curves together, because they have different guarantees."""
    guarantees = guarantees_of(curves)
    if len(guarantees) > 1:
        raise DpmfError(
            f"one figure cannot show several guarantees ({'; '.join(map(str, guarantees))}): their ε are not "
            "comparable; draw one figure for each (docs/privacy.md)"
        )
