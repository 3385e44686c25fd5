"""The combined table: every algorithm of several experiments, ranked within each data set and guarantee.

Each group has a heading, and a sentence that says what its ε protects. Curves without a provable ε have a heading of
their own. Formats are those of `formats`. For programs the columns `title`, `protects` and `towards` name the group,
and `rank` and `rank_pure` start anew in each group.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpmf_cli.evaluation.crossings import Crossing
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.ranking import (
    BARS,
    MODEST,
    Bar,
    Ranked,
    Standing,
    by_guarantee,
    ranked,
    standings,
)
from dpmf_cli.report.tables.cells import NONE, crossing_cell, end_records, epsilon_cell, marks
from dpmf_cli.report.tables.combined_notes import combined_notes
from dpmf_cli.report.tables.formats import render
from dpmf_cli.report.tables.layout import Group, TextTable

NOT_PROVABLE = "No ε can be proved for what was run; ordered by the ε that is claimed, and not ranked."

_OF_CURVE = ("algorithm", "label", "source", "neighbours", "mode", "joint", "delta")
_OF_CROSSING = (
    *("status", "epsilon", "low", "high", "low_status", "high_status"),
    *("recrosses", "claimed", "provable"),
)
_OF_EXPERIMENT = ("dataset", "folds", "partition", "runs", "seed")
#: The columns of csv, and the keys of json.
FIELDS = (
    *("title", "protects", "towards", "rank", "rank_pure", "provable"),
    *_OF_CURVE,
    *(f"{bar}_{name}" for bar in BARS for name in _OF_CROSSING),
    *("best_rmse", "experiment"),
    *_OF_EXPERIMENT,
)


def combined_table(
    experiments: Sequence[Experiment],
    form: str = "table",
    *,
    bar: Bar = "ia",
    across: bool = False,
    notes: Sequence[str] = (),
) -> str:
    """Draws all curves of the experiments, ranked by the provable ε at which they meet `bar`.

    across  one ranking of all curves; all of them must then protect the same on the same data
    notes   the caller's lines below the table, for people

    Raises `DpmfError` for an unknown format, and for `across` over several data sets or guarantees.
    """
    groups = _groups(experiments, bar, across=across)
    text = _text(experiments, groups, bar, notes)
    return render(text, FIELDS, [_record(row) for group in groups for row in group], form)


def combined_text(
    experiments: Sequence[Experiment], *, bar: Bar = "ia", notes: Sequence[str] = ()
) -> TextTable:
    """Returns all curves as one table of text, ranked within groups by the provable ε at which they meet `bar`."""
    return _text(experiments, _groups(experiments, bar), bar, notes)


def _groups(experiments: Sequence[Experiment], bar: Bar, *, across: bool = False) -> list[list[Ranked]]:
    """Returns the curves of each data set and guarantee, ranked."""
    found = [standing for experiment in experiments for standing in standings(experiment)]
    if across:
        ranked(found, bar)
    return [ranked(members, bar) for members in by_guarantee(found).values()]


def _text(
    experiments: Sequence[Experiment], groups: Sequence[Sequence[Ranked]], bar: Bar, notes: Sequence[str]
) -> TextTable:
    several = len({each.title for each in experiments}) < len(experiments)
    found = [row.standing for group in groups for row in group]
    approximate = any(standing.curve.delta for standing in found)
    return TextTable(
        header=(
            "rank",
            *(("pure",) if approximate else ()),
            "algorithm",
            "from",
            "mode",
            *(cell for each in BARS for cell in (f"meets {each.upper()} at ε", "claimed", "provable")),
            f"RMSE, ε ≤ {MODEST:g}",
            *(("experiment",) if several else ()),
        ),
        alignment="r" * approximate + "rlll" + "lrr" * len(BARS) + "r" + "l" * several,
        groups=tuple(
            part for group in groups for part in _headed(group, several=several, approximate=approximate)
        ),
        notes=(*combined_notes(experiments, found, bar, approximate=approximate), *notes),
    )


def _headed(group: Sequence[Ranked], *, several: bool, approximate: bool) -> Iterator[Group]:
    """Yields the rows of one data set and one guarantee: those with a provable ε, then those without."""
    first = group[0].standing
    title = f"{first.experiment.title}: {first.guarantee}"
    for provable, heading, sentence in (
        (True, title, first.guarantee.statement),
        (False, f"{title}, not provable", NOT_PROVABLE),
    ):
        rows = tuple(
            _cells(row, several=several, approximate=approximate)
            for row in group
            if row.standing.provable is provable
        )
        if rows:
            yield Group(heading, rows, sentence)


def _cells(row: Ranked, *, several: bool, approximate: bool) -> tuple[str, ...]:
    standing = row.standing
    curve = standing.curve
    ranks = (row.rank, row.pure) if approximate else (row.rank,)
    return (
        *(NONE if rank is None else str(rank) for rank in ranks),
        short_label(standing) + marks(joint=curve.joint, delta=curve.delta),
        curve.source,
        curve.mode,
        *(cell for bar in BARS for cell in _crossing_cells(standing, bar)),
        NONE if standing.best is None else f"{standing.best:.4f}",
        *((standing.experiment.name,) if several else ()),
    )


def _crossing_cells(standing: Standing, bar: Bar) -> tuple[str, str, str]:
    crossing = standing.crossings.get(bar)
    if crossing is None:
        return NONE, NONE, NONE
    return crossing_cell(crossing), epsilon_cell(crossing.claimed), epsilon_cell(crossing.provable)


def short_label(standing: Standing) -> str:
    """Returns the curve's label without the words of the heading and of the column of modes.

    `ISGD, bounded, published` becomes `ISGD`.
    """
    curve, label = standing.curve, standing.curve.label
    for word in (curve.mode, curve.neighbours, "personalised"):
        label = label.removesuffix(f", {word}") or label
    return label


def _record(row: Ranked) -> dict[str, Any]:
    """Returns a row for programs, with the keys `FIELDS`."""
    standing = row.standing
    curve, experiment = standing.curve, standing.experiment
    record = {
        "title": experiment.title,
        "protects": standing.guarantee.protects.value,
        "towards": standing.guarantee.towards,
        "rank": row.rank,
        "rank_pure": row.pure,
        "provable": standing.provable,
        "best_rmse": standing.best,
        "experiment": experiment.name,
        **{key: getattr(curve, key) for key in _OF_CURVE},
        **{key: getattr(experiment, key) for key in _OF_EXPERIMENT},
    }
    for bar in BARS:
        of_crossing = _crossing_record(standing.crossings.get(bar))
        record |= {f"{bar}_{name}": value for name, value in of_crossing.items()}
    return {key: record[key] for key in FIELDS}


def _crossing_record(crossing: Crossing | None) -> Mapping[str, Any]:
    if crossing is None:
        return dict.fromkeys(_OF_CROSSING)
    return {
        "status": crossing.status.value,
        "epsilon": crossing.reproduced,
        **end_records(crossing),
        "recrosses": crossing.recrosses,
        "claimed": crossing.claimed,
        "provable": crossing.provable,
    }
