"""What stands below the combined table: how it ranks, what its signs mean, and what each experiment is."""

from collections.abc import Iterator, Sequence

from dpmf_cli.evaluation.crossings import Status, is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.ranking import MODEST, Bar, Standing, by_guarantee, swept_labels
from dpmf_cli.evaluation.statistics import sd_over_folds
from dpmf_cli.report.tables.cells import interval_notes, mark_notes


def combined_notes(
    experiments: Sequence[Experiment], found: Sequence[Standing], bar: Bar, *, approximate: bool
) -> Iterator[str]:
    """The notes on curves `found` in the experiments, ranked by `bar`; approximate, whether some are (ε, δ)."""
    crossings = [crossing for standing in found for crossing in standing.crossings.values()]
    yield "ε under different headings are statements about different things: they are not comparable, and not ranked"
    if any(not standing.guarantee.joint for standing in found) and any(
        each.guarantee.joint for each in found
    ):
        yield (
            "what protects towards everybody protects towards other users too, with the same ε; never the other way "
            "round"
        )
    yield (
        f"ranked by the provable ε at which the mean curve meets {bar.upper()}; intervals that overlap do not tell "
        "two rows apart; – meets it at no provable ε of the grid"
    )
    if approximate:
        yield (
            "an (ε, δ) row, §, promises less than one without § at the same ε: the first rank takes every row as "
            "(ε, δ), which a pure one is for any δ, and is for orientation between the two; pure ranks those without "
            "§ alone"
        )
    if any(len(_deltas(group)) > 1 for group in by_guarantee(found).values()):
        yield (
            "δ differs between rows, §: rank is at the largest δ of its heading, at which those with a smaller one "
            "hold too; at a smaller δ they alone would stand in it"
        )
    yield f"RMSE, ε ≤ {MODEST:g}: the lowest of the grid for which an ε of {MODEST:g} or less can be proved"
    yield from interval_notes(crossings)
    yield from mark_notes(crossings)
    yield from baselines_and_design(experiments)
    for experiment in experiments:
        if swept := swept_labels(experiment):
            yield f"{experiment.name}: left out, as points of a sweep and not curves over ε: {'; '.join(swept)}"


def baselines_and_design(experiments: Sequence[Experiment]) -> Iterator[str]:
    """What each experiment measured of baselines, and over how many folds and runs."""
    for experiment in experiments:
        yield f"{experiment.name}: {_baselines(experiment)}; {_design(experiment)}"


def _deltas(group: Sequence[Standing]) -> set[float]:
    """The δ of the (ε, δ) that are ranked."""
    return {standing.curve.delta for standing in group if standing.curve.delta and standing.provable}


def _baselines(experiment: Experiment) -> str:
    return "RMSE " + ", ".join(_level(each) for each in experiment.baselines)


def _level(baseline: Measured) -> str:
    if not is_complete(baseline):
        return f"{baseline.label} {Status.INCOMPLETE}"
    spread = f" ± {float(sd_over_folds(baseline.rmse)[0]):.4f}" if len(baseline.rmse) > 1 else ""
    return f"{baseline.label} {float(baseline.mean()[0]):.4f}{spread}"


def _design(experiment: Experiment) -> str:
    folds = f"{experiment.folds} of {experiment.partition} folds"
    return f"{folds} × {experiment.runs} run{'s' * (experiment.runs > 1)}, seed {experiment.seed}"
