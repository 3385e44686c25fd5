"""What the fault suite counts, and where it is kept: `results/faults.json`, and the table of docs/surviving.md."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from tests.skips import FULL_FORM

ROOT = Path(__file__).resolve().parents[2]
FULL = os.environ.get("DPMF_FAULTS") == "full"
full = pytest.mark.skipif(not FULL, reason=FULL_FORM)
PAGE = ROOT / "docs" / "surviving.md"
WORST = "worst latency, ms"
"""A column of which the largest is kept, and not the sum."""


@dataclass
class Row:
    """injected: faults that took effect; resumed: runs that went on to the end; differing: bytes, of all files."""

    injected: int = 0
    resumed: int = 0
    differing: int = 0

    def named(self) -> dict[str, int]:
        counts = (self.injected, self.resumed, self.differing)
        return dict(zip(("faults injected", "runs resumed", "bytes differing"), counts, strict=True))


@dataclass
class Interrupts:
    """Signals that came while a command worked, and what they did. worst: milliseconds until no process was left."""

    signals: int = 0
    crashes: int = 0
    lost: int = 0
    tracebacks: int = 0
    failed: int = 0
    resumed: int = 0
    differing: int = 0
    worst: int = 0

    def add(self, other: "Interrupts") -> None:
        for name, count in asdict(other).items():
            setattr(self, name, max(self.worst, count) if name == "worst" else getattr(self, name) + count)

    def named(self) -> dict[str, int]:
        names = ("signals", "crashes", "lost", "tracebacks", "tasks marked failed", "runs resumed")
        return dict(zip((*names, "bytes differing", WORST), asdict(self).values(), strict=True))


@dataclass
class Tally:
    """Rows by the name of a fault, or of what is interrupted, in the order in which they came."""

    rows: dict[str, Row] = field(default_factory=dict)
    interrupts: dict[str, Interrupts] = field(default_factory=dict)

    def row(self, fault: str) -> Row:
        return self.rows.setdefault(fault, Row())


def times(full: int, short: int) -> int:
    """How often a fault is injected: in the full form, or in the short one."""
    return full if FULL else short


def keep(section: str, rows: dict[str, dict[str, int]]) -> None:
    """Writes the counts of a full form, in the place of older ones of the same name: as JSON, and into the page.

    What was not run stays as it is on the page.
    """
    path = ROOT / "results" / f"{section}.json"
    columns = list(next(iter(rows.values())))
    merged = {**_from_page(section, columns), **rows}
    merged.pop("all", None)
    merged["all"] = {
        column: (max if column == WORST else sum)(row[column] for row in merged.values())
        for column in columns
    }
    path.write_text(json.dumps(merged, indent=2, ensure_ascii=False) + "\n")
    table = [f"| | {' | '.join(columns)} |", "|---|" + "---:|" * len(columns)]
    table += [f"| {name} | {' | '.join(f'{row[c]:,}' for c in columns)} |" for name, row in merged.items()]
    _into_page(section, table)


def _from_page(section: str, columns: list[str]) -> dict[str, dict[str, int]]:
    """The rows of a section's table; none where it has other columns."""
    begin, end = _marks(section)
    lines = PAGE.read_text().partition(begin)[2].partition(end)[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    if not cells or cells[0][1:] != columns:
        return {}
    return {
        name: {column: int(count.replace(",", "")) for column, count in zip(columns, counts, strict=True)}
        for name, *counts in cells[2:]
    }


def _marks(section: str) -> tuple[str, str]:
    return f"<!-- {section} -->\n", f"<!-- end of {section} -->"


def _into_page(section: str, lines: list[str]) -> None:
    """Puts lines between the marks of a section of the page."""
    text = PAGE.read_text()
    begin, end = _marks(section)
    head, _, rest = text.partition(begin)
    PAGE.write_text(head + begin + "\n".join(lines) + "\n" + end + rest.partition(end)[2])
