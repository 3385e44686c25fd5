"""Tables of methods that are ranked: all of them by what they need, or the one that leads at each ε.

In the combined table every algorithm of several experiments is ranked within each data set and guarantee. Each group
has a heading, and a sentence that says what its ε protects. Curves without a provable ε have a heading of their own.
For programs the columns `title`, `protects` and `towards` name the group, and `rank` and `rank_pure` start anew in
each group.

In the table of frontiers a row says which method leads at an ε, how sure its lead is, and how far it is from no
privacy.
"""

from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from dpmf_cli.evaluation.crossings import Crossing, Status, is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.numbers import signed
from dpmf_cli.evaluation.ranking import (
    BARS,
    MODEST,
    Bar,
    Best,
    Frontier,
    Lead,
    Ranked,
    Standing,
    by_guarantee,
    clean_level,
    frontiers,
    ranked,
    standings,
)
from dpmf_cli.evaluation.statistics import sd_over_folds
from dpmf_cli.experiment.config.documents import is_reduction
from dpmf_cli.privacy.ledger import TOLERANCE
from dpmf_cli.report.tables.crossings import COLUMNS
from dpmf_cli.report.tables.layout import NONE, TableColumn, TextTable, epsilon_cell, marks, names, tabled
from dpmf_cli.report.words import lines

NOT_PROVABLE = "No ε can be proved for what was run; ordered by the ε that is claimed, and not ranked."


LABEL: TableColumn[Any] = TableColumn(
    "label", attrgetter("standing.curve.label"), lambda row: short_marked(row.standing), "algorithm"
)
SOURCE: TableColumn[Any] = TableColumn("source", attrgetter("standing.curve.source"), head="from")


def combined_table(
    experiments: Sequence[Experiment], *, bar: Bar = "ia", across: bool = False, notes: Sequence[str] = ()
) -> TextTable:
    """Returns all curves of the experiments, ranked within groups by the provable ε at which they meet `bar`.

    across  one ranking of all curves; all of them must then protect the same on the same data
    notes   the caller's lines below the table, for people

    Raises `DpmfError` for `across` over several data sets or guarantees.
    """
    found = [standing for experiment in experiments for standing in standings(experiment)]
    if across:
        ranked(found, bar)
    rows = [row for members in by_guarantee(found).values() for row in ranked(members, bar)]
    listed = [row.standing for row in rows]
    several = len({each.title for each in experiments}) < len(experiments)
    approximate = any(standing.curve.delta for standing in listed)

    def title(row: Ranked) -> tuple[str, str]:
        standing = row.standing
        whole = f"{standing.experiment.title}: {standing.guarantee}"
        return (
            (whole, standing.guarantee.statement)
            if standing.provable
            else (f"{whole}, not provable", NOT_PROVABLE)
        )

    columns: list[TableColumn[Ranked]] = [
        TableColumn("title", lambda row: row.standing.experiment.title),
        TableColumn("protects", lambda row: row.standing.guarantee.protects.value),
        TableColumn("towards", lambda row: row.standing.guarantee.towards),
        TableColumn("rank", text=lambda row: str(row.rank or NONE), align="r"),
        TableColumn(
            "rank_pure",
            lambda row: row.pure,
            lambda row: str(row.pure or NONE),
            head="pure",
            align="r",
            seen=lambda rows: approximate,
        ),
        TableColumn("provable", lambda row: row.standing.provable),
        *names("algorithm", "standing.curve"),
        LABEL,
        SOURCE,
        *names("neighbours mode joint delta", "standing.curve"),
        *(column for each in BARS for column in _of_bar(each)),
        TableColumn(
            "best_rmse",
            lambda row: row.standing.best,
            lambda row: NONE if row.standing.best is None else f"{row.standing.best:.4f}",
            head=f"RMSE, ε ≤ {MODEST:g}",
            align="r",
        ),
        TableColumn("experiment", lambda row: row.standing.experiment.name, seen=lambda rows: several),
        *names("dataset folds partition runs seed", "standing.experiment"),
    ]
    bars = (f"{each}_{name}" for each in BARS for name in ("epsilon", "claimed", "provable"))
    shown = ("rank", "rank_pure", "label", "source", "mode", *bars, "best_rmse", "experiment")
    deltas = [
        {each.curve.delta for each in group if each.curve.delta and each.provable}
        for group in by_guarantee(listed).values()
    ]
    said = lines(
        "notes/combined",
        standings=listed,
        crossings=[crossing for standing in listed for crossing in standing.crossings.values()],
        bar=bar,
        several_deltas=any(len(each) > 1 for each in deltas),
        modest=MODEST,
        experiments=experiments,
        level=_level,
    )
    return tabled(rows, columns, shown, title=title, notes=[*said, *notes])


def _of_bar(bar: Bar) -> Iterator[TableColumn[Any]]:
    """Yields columns of the crossing with a baseline, as in the table of crossings."""

    def crossing(row: Ranked) -> Crossing | None:
        return row.standing.crossings.get(bar)

    of_crossing = {column.name: column for column in COLUMNS}
    yield of_crossing["status"].at(crossing, f"{bar}_status")
    yield of_crossing["reproduced"].at(crossing, f"{bar}_epsilon", f"meets {bar.upper()} at ε")
    for name in ("low", "high", "low_status", "high_status", "recrosses", "claimed", "provable"):
        yield of_crossing[name].at(crossing, f"{bar}_{name}")


def short_label(standing: Standing) -> str:
    """Returns the curve's label without the words of the heading and of the column of modes.

    `ISGD, bounded, published` becomes `ISGD`.
    """
    curve, label = standing.curve, standing.curve.label
    for word in (curve.mode, curve.neighbours, "personalised"):
        label = label.removesuffix(f", {word}") or label
    return label


def short_marked(standing: Standing) -> str:
    """Returns the short label with the marks of joint DP and of (ε, δ)."""
    return short_label(standing) + marks(joint=standing.curve.joint, delta=standing.curve.delta)


def _level(baseline: Measured) -> str:
    if not is_complete(baseline):
        return f"{baseline.label} {Status.INCOMPLETE}"
    spread = f" ± {sd_over_folds(baseline.rmse)[0]:.4f}" if len(baseline.rmse) > 1 else ""
    return f"{baseline.label} {baseline.mean()[0]:.4f}{spread}"


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

    leads = [lead for frontier in found for lead in frontier.leads]
    bests = [best for lead in leads for best in (lead.first, *lead.tied[:MOST_NAMED])]
    said = lines(
        "notes/frontier",
        leads=leads,
        spends_less=any(map(_spends_less, leads)),
        named=[best.curve for best in bests],
        caveat=CAVEAT,
        experiments=experiments,
        level=_level,
    )
    return tabled(
        leads,
        FRONTIER,
        ("epsilon", "label", "source", "mode", "rmse", "to_ia", "to_ge", "to_clean", "tied"),
        title=title,
        notes=[*said, *notes],
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


def _gap(name: str, head: str, level_of: Callable[[Experiment], Measured | None]) -> TableColumn[Lead]:
    """Returns the column of how far the leader is above a baseline; rating units."""

    def gap(lead: Lead) -> float | None:
        level = level_of(lead.standing.experiment)
        return None if level is None or not is_complete(level) else lead.first.rmse - float(level.mean()[0])

    def cell(lead: Lead) -> str:
        return NONE if (found := gap(lead)) is None else signed(found, 4)

    return TableColumn(name, gap, cell, head, "r")


FRONTIER: tuple[TableColumn[Lead], ...] = (
    TableColumn("title", lambda lead: lead.standing.experiment.title),
    TableColumn("protects", lambda lead: lead.guarantee.protects.value),
    TableColumn("towards", lambda lead: lead.guarantee.towards),
    TableColumn("delta", lambda lead: lead.guarantee.delta),
    TableColumn("epsilon", text=lambda lead: epsilon_cell(lead.epsilon), head="ε", align="r"),
    *names("algorithm", "standing.curve"),
    TableColumn(
        "label",
        lambda lead: lead.first.curve.label,
        lambda lead: short_marked(lead.standing) + _spends_less(lead),
        "leads",
    ),
    SOURCE,
    *names("neighbours mode", "standing.curve"),
    TableColumn("rmse", lambda lead: lead.first.rmse, _rmse, "RMSE"),
    *names("low high over"),
    TableColumn("claimed", lambda lead: float(lead.first.curve.claimed[lead.first.at])),
    TableColumn("provable", lambda lead: lead.first.provable),
    _gap("to_ia", "to IA", lambda experiment: experiment.baseline("ia")),
    _gap("to_ge", "to GE", lambda experiment: experiment.baseline("ge")),
    TableColumn("clean", lambda lead: (best := clean_level(lead.standing.experiment)) and best.label),
    _gap("to_clean", "to no privacy", clean_level),
    TableColumn(
        "tied", lambda lead: "; ".join(each.curve.label for each in lead.tied), _beside, "not surely worse"
    ),
    TableColumn("methods", lambda lead: len(lead.order)),
    TableColumn("experiment", lambda lead: lead.standing.experiment.name),
    *names("dataset folds partition runs seed", "standing.experiment"),
)


def whole_first(experiments: Sequence[Experiment]) -> tuple[list[Experiment], list[str]]:
    """Returns the experiments without reductions of another one here on the same data, and a note on each reduction.

    A reduction would put every algorithm into the table a second time, measured on fewer folds or runs.
    """
    kept, notes = [], []
    for each in experiments:
        whole = next((other.name for other in experiments if _is_reduction(each, other)), None)
        if whole is None:
            kept.append(each)
        else:
            notes.append(f"{each.name}: left out, because it is a reduction of {whole}, which is here")
    return kept, notes


def _is_reduction(each: Experiment, other: Experiment) -> bool:
    return each.title == other.title and is_reduction(each.name, other.name)
