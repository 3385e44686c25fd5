"""The notes below the combined table: how it ranks, what its signs mean, and how each experiment was measured."""

from collections.abc import Iterator, Sequence

from dpmf_cli.evaluation.crossings import Status, is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.ranking import MODEST, Bar, Standing, by_guarantee, swept_labels
from dpmf_cli.evaluation.statistics import sd_over_folds
from dpmf_cli.report.tables.cells import interval_notes, mark_notes


def combined_notes(
    experiments: Sequence[Experiment], found: Sequence[Standing], bar: Bar, *, approximate: bool
) -> Iterator[str]:
    """Yields the notes on curves `found` in the experiments, ranked by `bar`. `approximate`: some are (ε, δ)."""
    crossings = [crossing for standing in found for crossing in standing.crossings.values()]
    yield "ε under different headings are statements about different things: they are not comparable, and not ranked"
    if any(not standing.guarantee.joint for standing in found) and any(
        each.guarantee.joint for each in found
    ):
        yield (
            "protection towards everybody implies protection towards other users (joint) at the same ε; the "
            "converse is false"
        )
    yield (
        f"ranked by the provable ε at which the mean curve meets {bar.upper()}; rows whose intervals overlap "
        "cannot be told apart; –: meets it at no provable ε of the grid"
    )
    if approximate:
        yield (
            "a row with § is (ε, δ), and promises less than a row without § at the same ε; rank: all rows ranked "
            "together as (ε, δ), which pure ε implies for any δ, for orientation only; pure: rank among the rows "
            "without § only"
        )
    if any(len(_deltas(group)) > 1 for group in by_guarantee(found).values()):
        yield (
            "δ differs between rows with §: rank is for the largest δ under its heading, which rows with a smaller δ "
            "also keep; for a smaller δ, only the rows that keep it would be ranked"
        )
    yield f"RMSE, ε ≤ {MODEST:g}: the lowest RMSE on the grid with a provable ε of at most {MODEST:g}"
    yield from interval_notes(crossings)
    yield from mark_notes(crossings)
    yield from baselines_and_design(experiments)
    for experiment in experiments:
        if swept := swept_labels(experiment):
            yield f"{experiment.name}: left out, since points of a sweep are not curves over ε: {'; '.join(swept)}"


def baselines_and_design(experiments: Sequence[Experiment]) -> Iterator[str]:
    """Yields for each experiment the errors of its baselines, and the number of its folds and runs."""
    for experiment in experiments:
        yield f"{experiment.name}: {_baselines(experiment)}; {_design(experiment)}"


def _deltas(group: Sequence[Standing]) -> set[float]:
    """Returns the δ of the (ε, δ) curves that are ranked."""
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
