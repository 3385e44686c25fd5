"""The table of crossings (Friedman et al. 2016, tables 4 and 5). Formats are those of `formats`.

If an experiment reproduces these tables, their printed values stand beside the reproduced ones.
"""

from collections.abc import Iterator, Mapping, Sequence

from dpmf_cli.audit.job import Audited
from dpmf_cli.evaluation.crossings import Crossing, Status
from dpmf_cli.evaluation.metrics import RMSE
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.papers.printed import REFERENCES, printed_reference
from dpmf_cli.report.tables.audits import AUDITED_FIELDS, audited_cell, audited_notes, audited_record
from dpmf_cli.report.tables.cells import (
    NONE,
    crossing_cell,
    end_records,
    epsilon_cell,
    interval_notes,
    mark_notes,
    marks,
)
from dpmf_cli.report.tables.formats import render
from dpmf_cli.report.tables.layout import Group, TextTable

Audits = Mapping[str, Mapping[str, Audited]]
"""The audits of each experiment's entries, by their label."""


def crossings_table(crossings: Sequence[Crossing], form: str = "table", audits: Audits | None = None) -> str:
    """Draws printed and reproduced crossings: a row per algorithm and baseline.

    Rows are grouped by dataset, neighbours and mode, and also by experiment if there are several. Rows keep their
    order within a group, and groups stand in the order of their first rows. With `audits`, a column shows what audits
    found. Raises `DpmfError` for an unknown format.
    """
    ends = ("low_status", "high_status")
    of_errors = all(crossing.metric == RMSE for crossing in crossings)
    own = [field for field in Crossing.__dataclass_fields__ if field != "metric" or not of_errors]
    fields = [*own, *ends, "ratio", *(AUDITED_FIELDS if audits is not None else ())]
    records = (
        {
            **{field: getattr(crossing, field) for field in own},
            **({} if of_errors else {"metric": crossing.metric.key}),
            **end_records(crossing),
            "ratio": crossing.ratio,
            **(audited_record(_audit_of(crossing, audits)) if audits is not None else {}),
        }
        for crossing in crossings
    )
    return render(crossings_text(crossings, audits), fields, records, form)


def _audit_of(crossing: Crossing, audits: Audits) -> Audited | None:
    return audits.get(crossing.experiment, {}).get(crossing.label)


def crossings_text(crossings: Sequence[Crossing], audits: Audits | None = None) -> TextTable:
    """Returns the same as a table of text."""
    several = len({crossing.experiment for crossing in crossings if crossing.experiment}) > 1
    with_theta = any(crossing.theta is not None for crossing in crossings)
    with_printed = any(crossing.printed is not None for crossing in crossings)
    groups: dict[str, list[Crossing]] = {}
    for crossing in crossings:
        title = f"{crossing.dataset}, {crossing.neighbours}, {crossing.mode}"
        if several and crossing.experiment:
            title += f" ({crossing.experiment})"
        if crossing.metric != RMSE:
            title += f", {crossing.metric.title}"
        if crossing.partial:
            title += f", partial: {crossing.partial}"
        groups.setdefault(title, []).append(crossing)
    printed, ratio = (("printed",), ("ratio",)) if with_printed else ((), ())
    theta = ("θ",) if with_theta else ()
    audited = ("audited",) if audits is not None else ()
    shown = [each for found in (audits or {}).values() for each in found.values()]
    return TextTable(
        header=(
            "algorithm",
            "baseline",
            *printed,
            "reproduced",
            *ratio,
            *theta,
            "claimed",
            "provable",
            *audited,
        ),
        alignment="ll" + "r" * len(printed) + "l" + "r" * len((*ratio, *theta)) + "rr" + "r" * len(audited),
        groups=tuple(
            Group(
                title,
                tuple(
                    (
                        *crossing_cells(each, with_printed=with_printed, with_theta=with_theta),
                        *((audited_cell(_audit_of(each, audits)),) if audits is not None else ()),
                    )
                    for each in group
                ),
            )
            for title, group in groups.items()
        ),
        notes=(*crossing_notes(crossings), *audited_notes(shown)) if crossings else (),
    )


def crossing_notes(crossings: Sequence[Crossing]) -> Iterator[str]:
    """Explains the columns and signs of a table of these crossings."""
    if any(crossing.printed is not None for crossing in crossings):
        yield "printed: by Friedman et al. (2016), where their tables are reproduced; ratio: reproduced/printed"
    if any(crossing.status is Status.NOT_RUN for crossing in crossings):
        yield f"{Status.NOT_RUN}: no experiment here reproduces this cell of Friedman et al.'s tables 4 and 5"
    for metric in dict.fromkeys(each.metric for each in crossings if each.metric.larger_is_better):
        yield f"{metric.title}: more is better; a curve crosses where it is no longer below the baseline"
    yield "reproduced: the total ε at which the measured curve meets the baseline"
    yield "claimed: the ε that the method's publication states for a run at the reproduced ε"
    yield "provable: the ε that can be proved for what was run (∞: none can)"
    if any(crossing.theta is not None for crossing in crossings):
        yield "θ: the θ of the crossing; the noise of measurement i has the scale Δ_i/θ_i, and the θ_i sum to θ"
    yield from interval_notes(crossings)
    yield from mark_notes(crossings)
    references = dict.fromkeys(crossing.baseline for crossing in crossings if crossing.reference)
    for printed in map(printed_reference, REFERENCES):
        if names := [name for name in references if name.startswith(printed.title)]:
            yield f"{', '.join(names)}: {printed.note}"
    loose = dict.fromkeys(crossing.baseline for crossing in crossings if not crossing.comparable)
    if loose:
        yield (
            f"{', '.join(loose)}: printed for that set of the complete data; only loosely comparable with the test "
            "set here"
        )


def crossing_cells(
    crossing: Crossing, *, with_printed: bool = True, with_theta: bool = False
) -> tuple[str, ...]:
    """Returns a crossing's row of the table, rounded: from its label to its provable ε."""
    printed = NONE if crossing.printed is None else f"{crossing.printed:g}"
    ratio = NONE if crossing.ratio is None else significant(crossing.ratio)
    return (
        crossing.label + marks(joint=crossing.joint, delta=crossing.delta),
        crossing.baseline,
        *((printed,) if with_printed else ()),
        crossing_cell(crossing),
        *((ratio,) if with_printed else ()),
        *((epsilon_cell(crossing.theta),) if with_theta else ()),
        epsilon_cell(crossing.claimed),
        epsilon_cell(crossing.provable),
    )
