"""Keeps the counts of the suites of faults and of broken input: in `results/SUITE.json` and the table of
docs/generated/counts.md."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.skips import FULL_FORM

ROOT = Path(__file__).resolve().parents[2]
FULL = os.environ.get("DPMF_FAULTS") == "full"
full = pytest.mark.skipif(not FULL, reason=FULL_FORM)
PAGE = ROOT / "docs" / "generated" / "counts.md"
BEGIN, END = "<!-- counts -->\n", "<!-- end of counts -->"
WORST = "worst latency, ms"
"""The column of which the largest value is kept instead of the sum."""
COLUMNS = ("tried", "runs resumed", "accepted", "refused", "wrong", WORST)
"""The columns of the page's table. A row has those that its suite counts."""

Counts = Mapping[str, int]


@dataclass
class Row:
    """injected: faults that took effect; resumed: runs that continued to the end; differing: bytes, over all files;
    worst: milliseconds until no process of an interrupted command was left."""

    injected: int = 0
    resumed: int = 0
    differing: int = 0
    worst: int | None = None

    def named(self) -> dict[str, int]:
        counts = {"tried": self.injected, "runs resumed": self.resumed, "wrong": self.differing}
        return counts if self.worst is None else {**counts, WORST: self.worst}


@dataclass
class Tally:
    """Rows by suite and by the name of a fault or of an interrupted command, in the order in which they came."""

    rows: dict[str, dict[str, Row]] = field(default_factory=dict)

    def row(self, fault: str, suite: str = "faults") -> Row:
        return self.rows.setdefault(suite, {}).setdefault(fault, Row())


def times(full: int, short: int) -> int:
    """How many times a fault is injected, in the full form or in the short one."""
    return full if FULL else short


def keep(suite: str, rows: Mapping[str, Counts]) -> None:
    """Writes the counts of a suite's full form as JSON and into the page, replacing older ones of the same
    name. Rows that were not run stay as they are on the page."""
    text = PAGE.read_text()
    head, _, rest = text.partition(BEGIN)
    table, _, tail = rest.partition(END)
    counts = _read(table)
    merged = {**counts.get(suite, {}), **rows}
    merged.pop("all", None)
    columns = [column for column in COLUMNS if any(column in row for row in merged.values())]
    merged["all"] = {
        column: (max if column == WORST else sum)(row[column] for row in merged.values())
        for column in columns
    }
    path = ROOT / "results" / f"{suite}.json"
    path.write_text(json.dumps(merged, indent=2, ensure_ascii=False) + "\n")
    PAGE.write_text(head + BEGIN + _written({**counts, suite: merged}) + END + tail)


def _read(table: str) -> dict[str, dict[str, Counts]]:
    """The counts of the page's table, by suite and name."""
    found: dict[str, dict[str, Counts]] = {}
    for line in table.splitlines()[2:]:
        suite, name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        counts = zip(COLUMNS, cells, strict=True)
        found.setdefault(suite, {})[name] = {
            column: int(cell.replace(",", "")) for column, cell in counts if cell
        }
    return found


def _written(counts: Mapping[str, Mapping[str, Counts]]) -> str:
    lines = [f"| suite | what | {' | '.join(COLUMNS)} |", "|---|---|" + "---:|" * len(COLUMNS)]
    for suite, rows in counts.items():
        for name, row in rows.items():
            cells = [f"{row[column]:,}" if column in row else "" for column in COLUMNS]
            lines.append(f"| {suite} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
