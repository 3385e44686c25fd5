"""Reads the committed table of all methods on MovieLens 1M, docs/generated/combined_ml1m.md."""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dpmf_cli.papers.claims import all_papers

PAGE = Path(__file__).resolve().parents[1] / "generated" / "combined_ml1m.md"
EXPERIMENT, DATA = "combined_ml1m", "ml-1m"

NEIGHBOURS = {"rating value": "bounded", "rating presence": "unbounded", "user": "user", "local": "local"}
"""The `neighbours` of a config, by the first words of a table's title."""


@dataclass(frozen=True)
class Met:
    """Where a curve meets a baseline: the claimed ε, or words if it does not, and the ε that can be proved there."""

    claimed: str
    provable: str

    def __str__(self) -> str:
        differs = self.provable not in ("–", self.claimed)
        return f"{self.claimed} ({self.provable})" if differs else self.claimed


@dataclass(frozen=True)
class Row:
    """A row of the page.

    protects   what ε hides, and from whom
    proved     whether some ε can be proved for what was run
    paper      "Friedman 2016"; our own methods have "dpmf"
    """

    protects: str
    proved: bool
    method: str
    paper: str
    mode: str
    met: Mapping[str, Met]

    @property
    def meets_item_average(self) -> float:
        """The claimed ε at which the curve meets IA: −1 if it needs none, 0 below the grid, infinite if never."""
        found = self.met["IA"].claimed.rstrip("†")
        outside = {"needs no ε": -1.0, "below the grid": 0.0}.get(found, math.inf)
        return float(found) if found[0].isdigit() else outside

    @property
    def neighbours(self) -> str:
        return NEIGHBOURS[self.protects.partition(",")[0]]


def rows(page: str) -> Iterator[Row]:
    """Yields the rows of the page's tables."""
    protects = ""
    for line in page.splitlines():
        if title := re.fullmatch(r"\*\*.+?: (.+)\*\*", line):
            protects = title[1]
        elif re.match(r"\| (\d+|–) \|", line):
            cells = [
                cell.partition(" [")[0].replace("not reached in the grid", "not reached")
                for cell in line.strip("| ").split(" | ")
            ]
            method, paper, mode, *met = cells[2:11]
            proved = not protects.endswith(", not provable")
            unproved = {} if proved else dict.fromkeys(("below the grid", "needs no ε"), "∞")
            yield Row(
                protects.removesuffix(", not provable"),
                proved,
                method,
                paper,
                mode,
                {
                    "IA": Met(met[0], unproved.get(met[0], met[2])),
                    "GE": Met(met[3], unproved.get(met[3], met[5])),
                },
            )


def of_papers(page: str) -> list[Row]:
    """Returns the rows of the methods that the five papers bring, as they combine them themselves."""
    names = {f"{found.title.split(',')[0]} {found.title[-4:]}" for found in all_papers().values()}
    return [row for row in rows(page) if row.paper in names]


def best_of_papers(page: str) -> list[Row]:
    """Returns a row of each paper: the method that meets IA at the smallest ε as published, proved if any is."""
    best: dict[str, Row] = {}
    for row in sorted(of_papers(page), key=lambda row: (not row.proved, row.meets_item_average)):
        if row.mode == "published" and "personalised" not in row.protects:
            best.setdefault(row.paper, row)
    return sorted(best.values(), key=lambda row: row.paper[-4:])
