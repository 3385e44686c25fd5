"""Tables of methods side by side: ranked by what they need, the one that leads at each ε, or of two configs.

In the combined table every algorithm of several experiments is ranked within each data set and guarantee. Each group
has a heading, and a sentence that says what its ε protects. Curves without a provable ε have a heading of their own.
For programs the columns `title`, `protects` and `towards` name the group, and `rank` and `rank_pure` start anew in
each group.

`dpmf compare` tells the settings in which configs differ, and the differences of the errors.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from operator import attrgetter, itemgetter, methodcaller
from string import ascii_uppercase
from typing import Any

import numpy as np

from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.terminal import signed
from dpmf_cli.evaluation import ranking
from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.metrics import Metric
from dpmf_cli.experiment.config.documents import is_reduction
from dpmf_cli.experiment.results.collect import Compared
from dpmf_cli.privacy.accounting import LEAST_EPSILON
from dpmf_cli.privacy.ledger import TOLERANCE
from dpmf_cli.report.tables.crossings import COLUMNS, error_row, reproduced_cell
from dpmf_cli.report.tables.layout import (
    DRAWINGS,
    NONE,
    Group,
    TableColumn,
    TextTable,
    as_objects,
    draw,
    epsilon_cell,
    interval,
    json_text,
    marks,
    names,
    number,
    tabled,
    where_known,
)
from dpmf_cli.report.words import lines

_signed = partial(signed, digits=4)

PRINTED: tuple[ranking.Bar, ...] = "ia", "ge"
"""Baselines as the papers have them, of which every table has columns."""

NOT_PROVABLE = "No ε can be proved for what was run; ordered by the ε that is claimed, and not ranked."


def combined_table(
    experiments: Sequence[Experiment], *, bar: ranking.Bar = "ia", notes: Sequence[str] = ()
) -> TextTable:
    """All curves of the experiments, ranked within groups by the provable ε at which they meet `bar`.

    `notes` are the caller's lines below the table, for people.
    """
    found = ranking.by_guarantee(ranking.standings(*experiments))
    rows = [row for members in found.values() for row in ranking.ranked(members, bar)]
    bars = [each for each in ranking.BARS if each in PRINTED or any(each in row.crossings for row in rows)]
    several = len({each.title for each in experiments}) < len(experiments)
    approximate = any(row.curve.delta for row in rows)

    def title(row: ranking.Standing) -> tuple[str, str]:
        whole = f"{row.experiment.title}: {row.guarantee}"
        return (whole, row.guarantee.statement) if row.provable else (f"{whole}, not provable", NOT_PROVABLE)

    columns: list[TableColumn[ranking.Standing]] = [
        *names("title", "experiment"),
        *names("protects towards", "guarantee"),
        number("rank", "d"),
        number("rank_pure", "d", attrgetter("pure"), head="pure", seen=lambda rows: approximate),
        *names("provable"),
        *names("algorithm", "curve"),
        TableColumn("label", lambda row: row.curve.label, short_marked, "algorithm"),
        TableColumn("source", lambda row: row.curve.source, head="from"),
        *names("neighbours mode joint delta", "curve"),
        *(column for each in bars for column in _of_bar(each)),
        number("best_rmse", value=lambda row: row.best, head=f"RMSE, ε ≤ {ranking.MODEST:g}"),
        where_known(number("cost", _signed, lambda row: row.cost(row.best), head="cost of privacy")),
        TableColumn("experiment", lambda row: row.experiment.name, seen=lambda rows: several),
        *names("dataset folds partition runs seed", "experiment"),
    ]
    met = [f"{each}_{name}" for each in PRINTED for name in ("epsilon", "claimed", "provable")]
    met += [f"{each}_epsilon" for each in bars if each not in PRINTED]
    shown = ("rank", "rank_pure", "label", "source", "mode", *met, "best_rmse", "cost", "experiment")
    groups = ranking.by_guarantee(row for row in rows if row.curve.delta and row.provable).values()
    said = lines(
        "notes/combined",
        standings=rows,
        crossings=[crossing for row in rows for crossing in row.crossings.values()],
        bar=ranking.BARS[bar],
        several_deltas=any(len({row.curve.delta for row in group}) > 1 for group in groups),
        modest=ranking.MODEST,
        experiments=experiments,
        level=_level,
    )
    return tabled(rows, columns, shown, title=title, notes=[*said, *notes])


def _of_bar(bar: ranking.Bar) -> Iterator[TableColumn[Any]]:
    """Yields columns of the crossing with a baseline, as in the table of crossings."""
    of_crossing = {column.name: column for column in COLUMNS}
    head = {"reproduced": (f"{bar}_epsilon", f"meets {ranking.BARS[bar]} at ε")}
    ends = ("low", "high", "low_status", "high_status")
    for name in ("status", "reproduced", *ends, "recrosses", "claimed", "provable"):
        yield of_crossing[name].at(lambda row: row.crossings.get(bar), *head.get(name, (f"{bar}_{name}",)))


def short_label(standing: ranking.Standing) -> str:
    """The label without what other columns and the heading say: `ISGD` for `ISGD, bounded, published`."""
    curve, label = standing.curve, standing.curve.label.removesuffix(", tuned")
    for word in (curve.mode, curve.neighbours, "personalised"):
        label = label.removesuffix(f", {word}") or label
    return label + ", tuned" * curve.label.endswith(", tuned")


def short_marked(standing: ranking.Standing) -> str:
    """The short label with the marks of joint DP and of (ε, δ)."""
    return short_label(standing) + marks(joint=standing.curve.joint, delta=standing.curve.delta)


def _level(experiment: Experiment, baseline: Measured) -> str:
    return f"{baseline.label} {reproduced_cell(error_row(experiment, baseline))}"


MOST_NAMED = 3
"""How many methods a row names beside the leading one; of the others it gives the number."""


def found_in(experiments: Sequence[Experiment]) -> list[ranking.Frontier]:
    """The frontiers of all curves of these experiments, except for points of sweeps."""
    return ranking.frontiers(ranking.standings(*experiments))


def frontier_table(
    experiments: Sequence[Experiment],
    found: Sequence[ranking.Frontier] | None = None,
    notes: Sequence[str] = (),
) -> TextTable:
    """A row for each ε, by data set and guarantee; all frontiers, or `found`. `notes` are for people."""

    def title(lead: ranking.Lead) -> tuple[str, str]:
        what = f"{lead.first.experiment.title}: {lead.guarantee}, {kind(lead.guarantee.delta)}"
        return what, lead.guarantee.statement

    leads = [lead for each in (found_in(experiments) if found is None else found) for lead in each.leads]
    said = lines(
        "notes/frontier",
        leads=leads,
        spends_less=any(map(_spends_less, leads)),
        with_zero=any(lead.epsilon <= LEAST_EPSILON for lead in leads),
        named=[best.curve for lead in leads for best in (lead.first, *lead.tied[:MOST_NAMED])],
        experiments=experiments,
        level=_level,
    )
    to = [f"to_{bar}" for bar in ranking.BARS]
    last = "cost" if any(lead.first.curve.noise_free for lead in leads) else "to_clean"
    shown = ("epsilon", "label", "source", "mode", "rmse", *to, last, "tied")
    return tabled(leads, FRONTIER, shown, title=title, notes=[*said, *notes])


def kind(delta: float) -> str:
    return f"(ε, δ) with δ = {delta:g}" if delta else "pure ε"


def _beside(lead: ranking.Lead) -> str:
    """The methods that are tied with the first; with the mode, if the two differ only in the mode."""
    first, more, unpaired = lead.first, len(lead.tied) - MOST_NAMED, len(lead.unpaired)

    def name(best: ranking.Best) -> str:
        return short_marked(best) + f", {best.curve.mode}" * (short_label(best) == short_label(first))

    names = [name(each) for each in lead.tied[:MOST_NAMED]]
    names += [f"{more} more"] * (more > 0) + [f"{unpaired} on other folds or runs: unknown"] * (unpaired > 0)
    return "; ".join(names) or NONE


def _spends_less(lead: ranking.Lead) -> str:
    """The ε that the method spends at its lowest error, if that is less than the ε of the row."""
    least = lead.first.spent
    return f" (at {_small_cell(least)})" if least < lead.epsilon * (1 - TOLERANCE) else ""


def _small_cell(epsilon: float) -> str:
    return "→ 0" if epsilon <= LEAST_EPSILON * (1 + TOLERANCE) else epsilon_cell(epsilon)


def _gap(
    name: str, head: str, level_of: Callable[[Experiment], Measured | None]
) -> TableColumn[ranking.Lead]:
    """The column of how far the leader is above a baseline, in rating units, and ° where that needs no ε."""

    def gap(lead: ranking.Lead) -> float | None:
        level = level_of(lead.first.experiment)
        return None if level is None or not is_complete(level) else lead.first.rmse - float(level.mean()[0])

    def cell(lead: ranking.Lead) -> str:
        mark = "°" * (lead.first.needs(name.removeprefix("to_")) == 0)
        return NONE if (found := gap(lead)) is None else _signed(found) + mark

    return TableColumn(name, gap, cell, head, "r")


FRONTIER: tuple[TableColumn[ranking.Lead], ...] = (
    *names("title", "first.experiment"),
    *names("protects towards delta", "guarantee"),
    number("epsilon", _small_cell, head="ε"),
    *names("algorithm", "first.curve"),
    TableColumn(
        "label",
        lambda lead: lead.first.curve.label,
        lambda lead: short_marked(lead.first) + _spends_less(lead),
        "leads",
    ),
    TableColumn("source", lambda lead: lead.first.curve.source, head="from"),
    *names("neighbours mode", "first.curve"),
    TableColumn(
        "rmse", lambda lead: lead.first.rmse, lambda lead: f"{lead.first.rmse:.4f}{interval(lead)}", "RMSE"
    ),
    *names("low high over"),
    TableColumn("claimed", lambda lead: float(lead.first.curve.claimed[lead.first.at])),
    TableColumn("provable", lambda lead: lead.first.spent),
    _gap("to_ia", "to IA", methodcaller("baseline", "ia")),
    _gap("to_ge", "to GE", methodcaller("baseline", "ge")),
    where_known(_gap("to_ia_tuned", "to tuned IA", methodcaller("baseline", "ia_tuned"))),
    where_known(_gap("to_ge_tuned", "to tuned GE", methodcaller("baseline", "ge_tuned"))),
    TableColumn("clean", lambda lead: (best := ranking.clean_level(lead.first.experiment)) and best.label),
    _gap("to_clean", "to no privacy", ranking.clean_level),
    where_known(
        number("cost", _signed, lambda lead: lead.first.cost(lead.first.rmse), head="cost of privacy")
    ),
    TableColumn(
        "tied", lambda lead: "; ".join(each.curve.label for each in lead.tied), _beside, "not surely worse"
    ),
    TableColumn("methods", lambda lead: len(lead.order)),
    TableColumn("experiment", lambda lead: lead.first.experiment.name),
    *names("dataset folds partition runs seed", "first.experiment"),
)


def whole_first(experiments: Sequence[Experiment]) -> tuple[list[Experiment], list[str]]:
    """The experiments without reductions of another one here on the same data, and a note on each reduction.

    A reduction would put every algorithm into the table a second time, measured on fewer folds or runs.
    """
    kept, notes = [], []
    for each in experiments:
        wholes = (o.name for o in experiments if each.title == o.title and is_reduction(each.name, o.name))
        if (whole := next(wholes, None)) is None:
            kept.append(each)
        else:
            notes.append(f"{each.name}: left out, because it is a reduction of {whole}, which is here")
    return kept, notes


def comparisons_text(several: Sequence[Compared], form: str = "table") -> str:
    """Settings and differences of each pair in `table` and `md`; in `csv`, the differences of all pairs.

    In `json` a pair is an object with both; several pairs are a list of such objects. Raises `DpmfError` for an
    unknown format.
    """
    tables = list(map(differences_table, several))
    if form in ("table", "md"):
        return "\n".join(
            DRAWINGS[form](settings_table([compared]))
            + "\n"
            + (DRAWINGS[form](errors) if errors.groups else "".join(f"- {note}\n" for note in errors.notes))
            for compared, errors in zip(several, tables, strict=True)
        )
    if form == "json":
        objects = [
            {
                **dict(zip("ab", compared.names, strict=True)),
                "settings": [asdict(each) for each in compared.settings],
                "differences": as_objects(errors),
                "left_out": compared.comparison.left_out,
            }
            for compared, errors in zip(several, tables, strict=True)
        ]
        return json_text(objects[0] if len(objects) == 1 else objects)
    return draw(replace(tables[0], records=tuple(row for table in tables for row in table.records)), form)


def settings_table(several: Sequence[Compared]) -> TextTable:
    """The settings in which any experiment differs from the first, with columns A, B and so on for each."""
    letters = [*ascii_uppercase, *map(str, range(27, len(several) + 2))][: len(several) + 1]
    runs = [several[0].names[0], *(compared.names[1] for compared in several)]
    firsts = {each.setting: each.a for compared in several for each in compared.settings}
    others = [{each.setting: each.b for each in compared.settings} for compared in several]
    rows = tuple(
        (setting, _value(first), *(_value(other.get(setting, first)) for other in others))
        for setting, first in firsts.items()
    )
    named = ", ".join(f"{run} ({letter})" for run, letter in zip(runs, letters, strict=True))
    same = ("no setting differs",) if not rows else ()
    groups = (Group(f"Settings that differ: {named}", rows),) if rows else ()
    return TextTable(("setting", *letters), "l" * (len(runs) + 1), groups, same)


def _value(value: Any) -> str:
    """A setting as a config has it; of a long list, only the ends."""
    if value is None:
        return NONE
    if isinstance(value, list) and len(value) > 6:
        return f"[{value[0]}, {value[1]}, … {value[-1]}] ({len(value)})"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


DIFFERENCES: tuple[TableColumn[ranking.Difference], ...] = (
    *names("algorithm label_a label_b neighbours"),
    number("epsilon", lambda epsilon: _finite(epsilon, ".4g"), head="ε"),
    number("a", lambda error: _finite(error, ".4f"), head="RMSE of A"),
    number("b", lambda error: _finite(error, ".4f"), head="RMSE of B"),
    number("difference", lambda difference: signed(difference, 4), head="B − A"),
    *names("low high over folds runs same provable_a provable_b"),
    TableColumn(
        "verdict",
        text=lambda row: "the same" if row.same else row.verdict or "not clearly either",
        head="B is",
    ),
)


def _finite(value: float, form: str) -> str:
    return "∞" if value == math.inf else format(value, form)


def differences_table(compared: Compared) -> TextTable:
    """One experiment's errors beside another's, at each ε that both have. Curves that are the same at every ε have
    rows for programs only."""

    def pair(each: ranking.Difference) -> tuple[str, str]:
        a, b = each.label_a, each.label_b
        return a if a == b else f"{a} (A), {b} (B)", each.neighbours

    def title(row: ranking.Difference) -> str:
        name, neighbours = pair(row)
        return name if neighbours == "none" else f"{name}, {neighbours}"

    (a, b), rows, left_out = compared.names, compared.comparison.differences, compared.comparison.left_out
    runs: list[TableColumn[ranking.Difference]] = [
        TableColumn("run_a", lambda row: a),
        TableColumn("run_b", lambda row: b),
    ]
    interval: TableColumn[ranking.Difference] = TableColumn(
        "95 % interval",
        text=lambda row: NONE if row.low is None else f"[{signed(row.low, 4)}, {signed(row.high or 0.0, 4)}]",
    )
    pairs = [(name, list(of)) for (name, _), of in groupby(rows, key=pair)]
    notes = lines(
        "notes/compare",
        title=compared.title,
        rows=rows,
        runs=max((each.runs for each in rows), default=1),
        same=[name for name, of in pairs if all(row.same for row in of)],
        unequal={name: row for name, of in pairs for row in of if row.provable_a != row.provable_b}.items(),
        left_out=left_out,
    )
    whole = tabled(rows, [*runs, *DIFFERENCES], title="")
    different = [row for _, of in pairs if not all(each.same for each in of) for row in of]
    shown = ("epsilon", "a", "b", "difference", interval, "verdict")
    seen = tabled(different, DIFFERENCES, shown, title=title, notes=notes)
    return replace(seen, fields=whole.fields, records=whole.records)


@dataclass(frozen=True)
class Tuned:
    """What a search of parameters found for an entry.

    written, tuned   (E,) the metric of the entry as written, and of the best setting at each; NaN without a result
    drawn     (E,) the parameters of these settings that were drawn; none for the entry as written
    changed   the keys of an entry that has them all
    trials, failed, refused   settings that were fitted, those of them without a result, and draws that were invalid
    seconds   CPU time of the fits that were left to run
    """

    label: str
    written: Doubles
    tuned: Doubles
    drawn: Sequence[Mapping[str, Any]]
    changed: Mapping[str, Any]
    trials: int
    failed: int
    refused: int
    seconds: float


def tuned_table(
    rows: Sequence[Tuned], grid: Sequence[float], sign: str, title: str, metric: Metric
) -> TextTable:
    """A metric of entries as written and tuned, at each ε (or θ: `sign`) of a grid, and what was chosen."""

    def of(part: str, at: int) -> TableColumn[Tuned]:
        value = f"{grid[at]:g}"

        def error(row: Tuned) -> float | None:
            found = float(getattr(row, part)[at])
            return None if np.isnan(found) else found

        return number(f"{part}_{value}", value=error, head=f"{part}, {sign} = {value}")

    def chosen(row: Tuned) -> str:
        if not row.changed:
            return "as written"
        said = [
            ", ".join(f"{key} {value}" for key, value in each.items()) or "as written" for each in row.drawn
        ]
        runs = [
            (", ".join(f"{value:g}" for value, _ in run), words)
            for words, run in groupby(zip(grid, said, strict=True), key=itemgetter(1))
        ]
        return "; ".join(f"{values}: {words}" for values, words in runs)

    columns: list[TableColumn[Tuned]] = [
        *names("label"),
        *(of(part, at) for part in ("written", "tuned") for at in range(len(grid))),
        TableColumn("chosen", lambda row: json.dumps(row.drawn), chosen),
        *(number(name, "d") for name in ("trials", "failed", "refused")),
        number("seconds", ".1f", head="CPU s"),
    ]
    notes = lines("notes/tuned", metric=metric)
    return tabled(rows, columns, [column.name for column in columns], title=title, notes=notes)
