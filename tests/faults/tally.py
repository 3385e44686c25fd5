"""What the fault suite counts, and where it is kept: `results/faults.json`, and the table of docs/surviving.md."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FULL = os.environ.get("DPMF_FAULTS") == "full"
full = pytest.mark.skipif(not FULL, reason="in the full form alone: make test-faults")
PAGE = ROOT / "docs" / "surviving.md"


@dataclass
class Row:
    """injected: faults that took effect; resumed: runs that went on to the end; differing: bytes, of all files."""

    injected: int = 0
    resumed: int = 0
    differing: int = 0


@dataclass
class Tally:
    """Rows by the name of a fault, in the order in which they came."""

    rows: dict[str, Row] = field(default_factory=dict)

    def row(self, fault: str) -> Row:
        return self.rows.setdefault(fault, Row())

    @property
    def total(self) -> Row:
        rows = self.rows.values()
        return Row(
            sum(r.injected for r in rows), sum(r.resumed for r in rows), sum(r.differing for r in rows)
        )


def times(full: int, short: int) -> int:
    """How often a fault is injected: in the full form, or in the short one."""
    return full if FULL else short


def keep(tally: Tally) -> None:
    """Writes the counts of a full form: as JSON under results/, and into the page."""
    rows = {**tally.rows, "all": tally.total}
    write_json("faults.json", {name: asdict(row) for name, row in rows.items()})
    table = ["| fault | injected | runs resumed | bytes differing |", "|---|---:|---:|---:|"]
    table += [f"| {name} | {r.injected:,} | {r.resumed:,} | {r.differing:,} |" for name, r in rows.items()]
    into_page("faults", table)


def write_json(name: str, content: object) -> None:
    path = ROOT / "results" / name
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def into_page(section: str, lines: list[str]) -> None:
    """Puts lines between the marks of a section of the page."""
    text = PAGE.read_text()
    begin, end = f"<!-- {section} -->\n", f"<!-- end of {section} -->"
    head, _, rest = text.partition(begin)
    PAGE.write_text(head + begin + "\n".join(lines) + "\n" + end + rest.partition(end)[2])
