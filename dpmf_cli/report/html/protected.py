"""Crossings by what their ε protects: results of different kinds are not ranked against each other.

The place where a combined table over all papers enters the page; each kind is a table of its own.
"""

import math
from collections.abc import Sequence

from dpmf_cli.evaluation.crossings import Crossing, Status
from dpmf_cli.report.layout import Group, TextTable
from dpmf_cli.report.tables import crossing_cells

KINDS = {
    "bounded": "what one rating was (that it exists is public)",
    "unbounded": "whether one rating exists",
    "user": "whether somebody took part at all",
    "local": "what one rating was, from the aggregator too",
    "personalized": "whether one rating exists, by an ε of its own",
}
"""The kinds of neighbours and what each protects, the weaker before the stronger (docs/privacy.md)."""


def by_protection(crossings: Sequence[Crossing]) -> list[tuple[str, str, TextTable]]:
    """(kind, what it protects, table) of each kind that some crossing has: within a data set and baseline by the ε
    that can be proved, the least first, and where nothing can be proved last."""
    tables = []
    for kind, protects in KINDS.items():
        of_kind = [each for each in crossings if _kind(each) == kind and each.status == Status.CROSSED]
        if not of_kind:
            continue
        groups: dict[tuple[str, str], list[Crossing]] = {}
        for each in of_kind:
            groups.setdefault((each.dataset, each.baseline), []).append(each)
        table = TextTable(
            header=("method", "mode", "ε provable", "ε claimed", "crossing, 95 % interval", "measured by"),
            alignment="llrrll",
            groups=tuple(
                Group(f"{dataset}, meets {baseline}", tuple(map(_cells, sorted(found, key=_cost))))
                for (dataset, baseline), found in sorted(groups.items())
            ),
            notes=("∞: nothing can be proved for what was run, as it was published",),
        )
        tables.append((kind, protects, table))
    return tables


def _kind(crossing: Crossing) -> str:
    return "personalized" if crossing.algorithm == "personalized" else crossing.neighbours


def _cost(crossing: Crossing) -> tuple[float, float]:
    provable = math.inf if crossing.provable is None else crossing.provable
    return provable, crossing.reproduced or math.inf


def _cells(crossing: Crossing) -> tuple[str, ...]:
    label, _, _, reproduced, _, claimed, provable = crossing_cells(crossing)
    return label, crossing.mode, provable, claimed, reproduced, crossing.experiment
