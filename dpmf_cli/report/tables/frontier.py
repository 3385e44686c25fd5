"""The table of frontiers: at each ε the method that leads, how sure its lead is, and its distance from no privacy.

Formats are those of `formats`. For programs the columns `title`, `protects`, `towards` and `delta` name a row's
group.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.frontier import Best, Frontier, Lead, clean_level, frontiers
from dpmf_cli.evaluation.numbers import signed
from dpmf_cli.evaluation.ranking import BARS, standings
from dpmf_cli.privacy.ledger import TOLERANCE
from dpmf_cli.report.tables.cells import JOINT, NONE, OVER_RUNS, epsilon_cell, marks
from dpmf_cli.report.tables.combined import short_label
from dpmf_cli.report.tables.combined_notes import baselines_and_design
from dpmf_cli.report.tables.formats import render
from dpmf_cli.report.tables.layout import Group, TextTable

MOST_NAMED = 3
"""How many methods a row names beside the leading one; of the others it gives the number."""

CAVEAT = (
    "a benchmark on public ratings: if you choose a method by its errors on the same ratings that you fit it to, the "
    "choice costs ε that nobody counts"
)

FIELDS = (
    *(
        "title",
        "protects",
        "towards",
        "delta",
        "epsilon",
        "algorithm",
        "label",
        "source",
        "neighbours",
        "mode",
    ),
    *("rmse", "low", "high", "over", "claimed", "provable", "to_ia", "to_ge", "clean", "to_clean", "tied"),
    *("methods", "experiment", "dataset", "folds", "partition", "runs", "seed"),
)
"""The columns of csv, and the keys of json. `tied` has labels between semicolons, `methods` the number of methods."""


def frontier_table(
    experiments: Sequence[Experiment], form: str = "table", *, notes: Sequence[str] = ()
) -> str:
    """Draws a row for each ε, by data set and guarantee. `notes` are the caller's lines below, for people.

    Raises `DpmfError` for an unknown format.
    """
    found = found_in(experiments)
    records = [_record(each, lead) for each in found for lead in each.leads]
    return render(frontier_text(found, experiments, notes), FIELDS, records, form)


def found_in(experiments: Sequence[Experiment]) -> list[Frontier]:
    """Returns the frontiers of all curves of these experiments, except for points of sweeps."""
    return frontiers(standing for experiment in experiments for standing in standings(experiment))


def frontier_text(
    found: Sequence[Frontier], experiments: Sequence[Experiment], notes: Sequence[str] = ()
) -> TextTable:
    """Returns the same as a table of text."""
    return TextTable(
        header=("ε", "leads", "from", "mode", "RMSE", "to IA", "to GE", "to no privacy", "not surely worse"),
        alignment="rllllrrrl",
        groups=tuple(
            Group(heading(each), tuple(_cells(lead) for lead in each.leads), each.guarantee.statement)
            for each in found
        ),
        notes=(*_notes(found), *baselines_and_design(experiments), *notes),
    )


def heading(frontier: Frontier) -> str:
    """Returns a heading such as `MovieLens 1M: rating value, towards everybody, pure ε`."""
    return f"{frontier.title}: {frontier.guarantee}, {kind(frontier.guarantee.delta)}"


def kind(delta: float) -> str:
    """Says in words whether an ε is pure or (ε, δ)."""
    return f"(ε, δ) with δ = {delta:g}" if delta else "pure ε"


def _cells(lead: Lead) -> tuple[str, ...]:
    first = lead.first
    names = [_name_beside(each, first) for each in lead.tied[:MOST_NAMED]]
    more, unpaired = len(lead.tied) - MOST_NAMED, len(lead.unpaired)
    names += [f"{more} more"] * (more > 0) + [f"{unpaired} on other folds: nobody can tell"] * (unpaired > 0)
    return (
        epsilon_cell(lead.epsilon),
        name_of_best(first) + _spends_less(lead),
        first.curve.source,
        first.curve.mode,
        f"{first.rmse:.4f}" + _interval(lead),
        *(NONE if gap is None else signed(gap, 4) for gap in _gaps(first).values()),
        "; ".join(names) or NONE,
    )


def name_of_best(best: Best) -> str:
    """Returns the method's short name with the marks of joint DP and of (ε, δ)."""
    return short_label(best.standing) + marks(joint=best.curve.joint, delta=best.curve.delta)


def _name_beside(best: Best, first: Best) -> str:
    """Returns the name of a method that is tied with the first; with its mode, if the two differ only in the mode."""
    alone = short_label(best.standing) == short_label(first.standing)
    return name_of_best(best) + f", {best.curve.mode}" * alone


def _spends_less(lead: Lead) -> str:
    """Returns the ε that the method spends at its lowest error, if that is less than the ε of the row."""
    least = lead.first.provable
    return f" (at {epsilon_cell(least)})" if least < lead.epsilon * (1 - TOLERANCE) else ""


def _interval(lead: Lead) -> str:
    if lead.low is None or lead.high is None:
        return ""
    return f" [{lead.low:.4f}, {lead.high:.4f}]" + ("*" if lead.over == "runs" else "")


def _gaps(best: Best) -> dict[str, float | None]:
    """Returns how far a method is above IA, GE and the best baseline, by the names of columns; rating units."""
    experiment = best.standing.experiment
    levels = {f"to_{bar}": experiment.baseline(bar) for bar in BARS} | {"to_clean": clean_level(experiment)}
    return {name: _gap(best, level) for name, level in levels.items()}


def _gap(best: Best, level: Measured | None) -> float | None:
    return None if level is None or not is_complete(level) else best.rmse - float(level.mean()[0])


def _notes(found: Sequence[Frontier]) -> Iterator[str]:
    yield (
        "at each ε: the lowest mean RMSE of all methods with a provable ε of at most that value; a method with a "
        "stronger guarantee (towards everybody, or pure) counts under the weaker one too"
    )
    leads = [lead for each in found for lead in each.leads]
    if any(_spends_less(lead) for lead in leads):
        yield "(at x): the method has its lowest error already at the smaller provable ε x"
    yield "to IA, to GE, to no privacy: RMSE minus that of IA, of GE, and of the best baseline"
    if any(lead.over != "none" for lead in leads):
        yield (
            "[low, high]: 95 % bootstrap interval; not surely worse: the interval of the difference, paired by fold "
            "and run, contains 0"
        )
    elif leads:
        yield "one fold and one run: there are no intervals, and nobody can tell which methods are surely worse"
    if any(lead.over == "runs" for lead in leads):
        yield OVER_RUNS
    bests = [lead.first for lead in leads] + [each for lead in leads for each in lead.tied[:MOST_NAMED]]
    if any(best.curve.joint for best in bests):
        yield JOINT
    if deltas := sorted({best.curve.delta for best in bests if best.curve.delta}):
        yield f"§ (ε, δ)-DP with δ = {', '.join(f'{delta:g}' for delta in deltas)}"
    yield CAVEAT


def _record(frontier: Frontier, lead: Lead) -> Mapping[str, Any]:
    """Returns a row for programs, with the keys `FIELDS`."""
    first = lead.first
    curve, experiment = first.curve, first.standing.experiment
    clean = clean_level(experiment)
    record = {
        "title": frontier.title,
        "protects": frontier.guarantee.protects.value,
        "towards": frontier.guarantee.towards,
        "delta": frontier.guarantee.delta,
        "epsilon": lead.epsilon,
        "rmse": first.rmse,
        "low": lead.low,
        "high": lead.high,
        "over": lead.over,
        "claimed": float(curve.claimed[first.at]),
        "provable": first.provable,
        **_gaps(first),
        "clean": clean.label if clean else None,
        "tied": "; ".join(each.curve.label for each in lead.tied),
        "methods": len(lead.order),
        "experiment": experiment.name,
        **{key: getattr(curve, key) for key in ("algorithm", "label", "source", "neighbours", "mode")},
        **{key: getattr(experiment, key) for key in ("dataset", "folds", "partition", "runs", "seed")},
    }
    return {key: record[key] for key in FIELDS}
