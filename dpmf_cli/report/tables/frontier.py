"""The table of frontiers: at each ε the method that leads, how sure its lead is, and its distance from no privacy.

For programs the columns `title`, `protects`, `towards` and `delta` name a row's group.
"""

from collections.abc import Callable, Iterator, Sequence

from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.frontier import Best, Frontier, Lead, clean_level, frontiers
from dpmf_cli.evaluation.numbers import signed
from dpmf_cli.evaluation.ranking import standings
from dpmf_cli.privacy.ledger import TOLERANCE
from dpmf_cli.report.tables.columns import NONE, Column, epsilon_cell, tabled
from dpmf_cli.report.tables.combined import (
    baselines_and_design,
    of_curve,
    of_experiment,
    short_label,
    short_marked,
)
from dpmf_cli.report.tables.crossings import JOINT, OVER_RUNS
from dpmf_cli.report.tables.layout import TextTable

MOST_NAMED = 3
"""How many methods a row names beside the leading one; of the others it gives the number."""

CAVEAT = (
    "a benchmark on public ratings: if you choose a method by its errors on the same ratings that you fit it to, the "
    "choice costs ε that nobody counts"
)


def found_in(experiments: Sequence[Experiment]) -> list[Frontier]:
    """Returns the frontiers of all curves of these experiments, except for points of sweeps."""
    return frontiers(standing for experiment in experiments for standing in standings(experiment))


def frontier_table(
    experiments: Sequence[Experiment], found: Sequence[Frontier] | None = None, notes: Sequence[str] = ()
) -> TextTable:
    """Returns a row for each ε, by data set and guarantee; all frontiers, or those `found`.

    `notes` are the caller's lines below, for people.
    """
    found = found_in(experiments) if found is None else found

    def title(lead: Lead) -> tuple[str, str]:
        what = f"{lead.standing.experiment.title}: {lead.guarantee}, {kind(lead.guarantee.delta)}"
        return what, lead.guarantee.statement

    return tabled(
        [lead for frontier in found for lead in frontier.leads],
        COLUMNS,
        ("epsilon", "label", "source", "mode", "rmse", "to_ia", "to_ge", "to_clean", "tied"),
        title=title,
        notes=[*_notes(found), *baselines_and_design(experiments), *notes],
    )


def kind(delta: float) -> str:
    """Says in words whether an ε is pure or (ε, δ)."""
    return f"(ε, δ) with δ = {delta:g}" if delta else "pure ε"


def _beside(lead: Lead) -> str:
    """Names methods that are tied with the first; with the mode, if the two differ only in the mode."""
    first, more, unpaired = lead.first, len(lead.tied) - MOST_NAMED, len(lead.unpaired)

    def name(best: Best) -> str:
        alone = short_label(best.standing) == short_label(first.standing)
        return short_marked(best.standing) + f", {best.curve.mode}" * alone

    names = [name(each) for each in lead.tied[:MOST_NAMED]]
    names += [f"{more} more"] * (more > 0) + [f"{unpaired} on other folds: nobody can tell"] * (unpaired > 0)
    return "; ".join(names) or NONE


def _spends_less(lead: Lead) -> str:
    """Returns the ε that the method spends at its lowest error, if that is less than the ε of the row."""
    least = lead.first.provable
    return f" (at {epsilon_cell(least)})" if least < lead.epsilon * (1 - TOLERANCE) else ""


def _rmse(lead: Lead) -> str:
    found = f"{lead.first.rmse:.4f}"
    if lead.low is None or lead.high is None:
        return found
    return f"{found} [{lead.low:.4f}, {lead.high:.4f}]" + "*" * (lead.over == "runs")


def _gap(name: str, head: str, level_of: Callable[[Experiment], Measured | None]) -> Column[Lead]:
    """Returns the column of how far the leader is above a baseline; rating units."""

    def gap(lead: Lead) -> float | None:
        level = level_of(lead.standing.experiment)
        return None if level is None or not is_complete(level) else lead.first.rmse - float(level.mean()[0])

    def cell(lead: Lead) -> str:
        return NONE if (found := gap(lead)) is None else signed(found, 4)

    return Column(name, gap, cell, head, "r")


COLUMNS: tuple[Column[Lead], ...] = (
    Column("title", lambda lead: lead.standing.experiment.title),
    Column("protects", lambda lead: lead.guarantee.protects.value),
    Column("towards", lambda lead: lead.guarantee.towards),
    Column("delta", lambda lead: lead.guarantee.delta),
    Column("epsilon", text=lambda lead: epsilon_cell(lead.epsilon), head="ε", align="r"),
    of_curve("algorithm"),
    Column(
        "label",
        lambda lead: lead.first.curve.label,
        lambda lead: short_marked(lead.standing) + _spends_less(lead),
        "leads",
    ),
    of_curve("source", head="from"),
    of_curve("neighbours"),
    of_curve("mode"),
    Column("rmse", lambda lead: lead.first.rmse, _rmse, "RMSE"),
    *map(Column, ("low", "high", "over")),
    Column("claimed", lambda lead: float(lead.first.curve.claimed[lead.first.at])),
    Column("provable", lambda lead: lead.first.provable),
    _gap("to_ia", "to IA", lambda experiment: experiment.baseline("ia")),
    _gap("to_ge", "to GE", lambda experiment: experiment.baseline("ge")),
    Column("clean", lambda lead: (best := clean_level(lead.standing.experiment)) and best.label),
    _gap("to_clean", "to no privacy", clean_level),
    Column(
        "tied", lambda lead: "; ".join(each.curve.label for each in lead.tied), _beside, "not surely worse"
    ),
    Column("methods", lambda lead: len(lead.order)),
    Column("experiment", lambda lead: lead.standing.experiment.name),
    *map(of_experiment, ("dataset", "folds", "partition", "runs", "seed")),
)


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
