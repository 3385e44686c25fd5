"""Rows of printed values beside measured ones, and how near they are. Each verdict has its own word, sign and colour.

The tolerances were fixed on 2026-11-21 in 00cdf1a. Percentages had 5 and 10 points until 2026-11-23.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from dpmf_cli.datasets import catalog
from dpmf_cli.evaluation.crossings import Crossing, Status
from dpmf_cli.experiment.config.documents import whole_name
from dpmf_cli.papers.claims import Exhibit
from dpmf_cli.papers.printed import CROSSING_TABLES, load, printed_crossings, printed_reason
from dpmf_cli.report.tables import baselines, crossings
from dpmf_cli.report.tables.baselines import BaselineRow
from dpmf_cli.report.tables.layout import NONE, cells_of

RATIOS = (1.3, 1.5)
"""A crossing, or another ratio, agrees within the first factor of the printed one, and is near within the second."""
DIFFERENCES = (0.005, 0.02)
"""An RMSE agrees within the first distance of the printed one, and is near within the second; rating units."""
POINTS = (100 * load("neera2020")["tolerances"]["improvement"], 5.0)
"""A percentage agrees within the first distance of the printed one, which is that of the paper's claims, and is near
within the second; points."""
SHARES = (1.005, 1.05)
"""A count agrees within the first factor of the printed one, and is near within the second."""


class Agreement(StrEnum):
    """A verdict. The values are class names of the style sheet; `agreement.html.j2` has their signs and meanings."""

    AGREES = "agrees"
    NEAR = "near"
    DIFFERS = "differs"
    MISSING = "missing"
    UNPRINTED = "unprinted"


def by_ratio(reproduced: float, printed: float, bounds: tuple[float, float] = RATIOS) -> Agreement:
    """Judges two positive numbers by their ratio; `SHARES` are the bounds for counts and means of counts."""
    return _within(max(reproduced / printed, printed / reproduced), bounds)


def by_difference(reproduced: float, printed: float, bounds: tuple[float, float] = DIFFERENCES) -> Agreement:
    """Judges two RMSE by their distance; `POINTS` are the bounds for percentages."""
    return _within(abs(reproduced - printed), bounds)


def _within(distance: float, bounds: tuple[float, float]) -> Agreement:
    # A ten-thousandth of the bound is added for rounding: 0.9246 − 0.9196 counts as within 0.005.
    near, far = (bound * 1.0001 for bound in bounds)
    return Agreement.AGREES if distance <= near else Agreement.NEAR if distance <= far else Agreement.DIFFERS


NO_DATA = "not measured"


@dataclass(frozen=True)
class Row:
    """One figure of a paper. All fields but the agreement are rounded text.

    of          the data set, or another name of the group of figures
    what        the method, or the statistic
    at          the baseline that the method crosses, or another condition; may be empty
    change      ratio or difference of reproduced and printed
    theta       McSherry and Mironov's θ at the crossing, if the grid is over θ
    source      name of the experiment that measured the figure; "" if none did
    reason      why the measured figure differs from the printed one, if that is known
    """

    of: str
    what: str
    at: str
    printed: str
    reproduced: str
    change: str
    agreement: Agreement
    claimed: str = NONE
    provable: str = NONE
    theta: str = NONE
    source: str = ""
    reason: str = ""


def crossing_row(crossing: Crossing) -> Row:
    """Returns the row for the ε at which a curve meets a baseline."""
    cell = cells_of(crossing, crossings.COLUMNS)
    agreement = crossing_agreement(crossing)
    table = CROSSING_TABLES.get(crossing.neighbours, "")
    stated = printed_reason(table, crossing.algorithm, crossing.baseline, crossing.dataset)
    return Row(
        of=f"{crossing.dataset}, {crossing.neighbours}, {crossing.mode}",
        what=cell["label"],
        at=cell["baseline"],
        printed=cell["printed"],
        reproduced=cell["reproduced"],
        change=NONE if crossing.ratio is None else f"× {cell['ratio']}",
        agreement=agreement,
        claimed=cell["claimed"],
        provable=cell["provable"],
        theta=cell["theta"],
        source=crossing.experiment,
        reason=why(agreement, stated, crossing.experiment),
    )


def why(agreement: Agreement, stated: str, source: str) -> str:
    """Returns the text beside a cell that is off: that its experiment is reduced, and the stated reason."""
    if agreement not in (Agreement.NEAR, Agreement.DIFFERS):
        return ""
    reduced = "a reduced run" if whole_name(source) != source else ""
    unknown = "no reason is known" if agreement is Agreement.DIFFERS else ""
    return "; ".join(filter(None, (reduced, stated))) or unknown


def crossing_agreement(crossing: Crossing) -> Agreement:
    """Judges how near a measured crossing is to the printed one. A crossing outside the grid is not near."""
    if crossing.printed is None:
        return Agreement.UNPRINTED
    if crossing.status in (Status.INCOMPLETE, Status.NOT_RUN, Status.NO_DATA):
        return Agreement.MISSING
    if crossing.reproduced is None:
        return Agreement.DIFFERS
    return by_ratio(crossing.reproduced, crossing.printed)


def baseline_row(row: BaselineRow) -> Row:
    """Returns the row for the RMSE of a baseline."""
    cell = cells_of(row, baselines.COLUMNS)
    if row.printed is None:
        agreement = Agreement.UNPRINTED
    elif row.reproduced is None:
        agreement = Agreement.MISSING
    else:
        agreement = by_difference(row.reproduced, row.printed)
    reason = why(agreement, "", row.experiment)
    return Row(
        of=row.title,
        what=cell["baseline"],
        at="",
        printed=cell["printed"],
        reproduced=cell["reproduced"],
        change=cell["difference"],
        agreement=agreement,
        source=row.experiment,
        reason=reason,
    )


def printed_rows(exhibit: Exhibit) -> Iterator[tuple[str, Row]]:
    """Yields every printed cell of a table of baselines or crossings as not measured, with its data set."""
    if exhibit.kind == "baselines":
        found = [
            (dataset, baseline, "", f"{cells[baseline]:.4f}")
            for dataset, cells in load("friedman2016")["table3"].items()
            for baseline in (key for key in cells if key.isupper())
        ]
    else:
        found = [
            (cell.dataset, cell.algorithm.upper(), cell.baseline, f"{cell.epsilon:g}")
            for cell in printed_crossings()
            if cell.neighbours == exhibit.neighbours and cell.epsilon is not None
        ]
    for dataset, what, at, printed in found:
        title = catalog.entry(dataset).title
        yield dataset, Row(title, what, at, printed, NO_DATA, NONE, Agreement.MISSING)


class PaperTable(NamedTuple):
    """Rows in a paper's own layout. `columns` are data sets; a line is (method, baseline, a cell for each data set).

    A cell is None if nothing is printed and nothing was measured.
    """

    columns: Sequence[str]
    lines: Sequence[tuple[str, str, Sequence[Row | None]]]


def paper_table(rows: Sequence[Row]) -> PaperTable:
    """Arranges the rows by method and data set, both in order of first appearance."""
    columns = list(dict.fromkeys(row.of for row in rows))
    lines: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        lines.setdefault((row.what, row.at), {}).setdefault(row.of, row)
    return PaperTable(
        columns, [(*key, [cells.get(column) for column in columns]) for key, cells in lines.items()]
    )
