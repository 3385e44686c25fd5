"""The tables of an exploration: verdicts on a paper's claims, and printed cells."""

import math
from collections.abc import Iterator, Sequence

from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.papers.claims import ANY, Claim, PaperFindings
from dpmf_cli.papers.record import Explored, Printed, Record, Tried
from dpmf_cli.papers.space import halves
from dpmf_cli.papers.verdicts import (
    FAR,
    Judged,
    Word,
    deviation,
    judged,
    moved_by,
    nearest,
    of_theorem,
    shares_held,
)
from dpmf_cli.report.tables.layout import NONE, Group, TextTable

NOT_REACHED = "not reached"
NOT_TESTED: Word = "not tested"


def verdicts(record: Record, claim: Claim) -> Iterator[tuple[str, Judged]]:
    """Yields the verdict on a claim for each data set that it is about; one verdict for a theorem."""
    for data in claim.data:
        if claim.no_test:
            yield data, Judged("not tested", "")
        elif data == ANY:
            yield "", of_theorem(record.theorems.get(claim.id))
        else:
            found = record.data.get(data)
            yield data, judged(found, claim.id) if found else Judged("not tested", "")


def claims_text(record: Record, paper: PaperFindings) -> TextTable:
    """Returns a row for each claim and data set on which it was tried, and one row for its other data sets."""
    rows = []
    for claim in paper.claims:
        said = claim.told + f" [{claim.source}]" * bool(claim.source)
        for at, row in enumerate(_rows(record, claim)):
            rows.append(("″" if at else said, *row))
    return TextTable(
        header=("the paper says", "on", "verdict", "because it", "measured"),
        alignment="lllll",
        groups=(Group("Claims", tuple(rows)),),
        notes=tuple(_notes(record)),
    )


def _rows(record: Record, claim: Claim) -> Iterator[tuple[str, ...]]:
    untested = []
    for data, verdict in verdicts(record, claim):
        if verdict.word == NOT_TESTED and data:
            untested.append(data)
            continue
        found = record.data.get(data)
        by = _moved(found, moved_by(found, shares_held(found, claim.id))) if found else NONE
        why = "; ".join(filter(None, (verdict.said, "" if by == NONE else f"most moved by {by}")))
        yield data or NONE, verdict.word, why or NONE, _measured(record, data, claim)
    if untested:
        yield ", ".join(untested), NOT_TESTED, NONE, NONE


def _moved(found: Explored, by: Sequence[tuple[str, float]]) -> str:
    return ", ".join(f"{name} ({100 * index:.0f} %)" for name, index in by[:2]) or NONE


def _measured(record: Record, data: str, claim: Claim) -> str:
    if not data:
        return record.theorems[claim.id].measured if claim.id in record.theorems else NONE
    found = record.data.get(data)
    return (found.measured.get(claim.id) or NONE) if found else NONE


def _notes(record: Record) -> Iterator[str]:
    for data, found in record.data.items():
        choosing, testing = map(_numbers, halves(found.folds))
        yield (
            f"{data}: {len(found.tried)} settings; {choosing} of {found.partition} to choose by, {testing} to test "
            f"by; runs {found.runs}, seed {found.seed}: dpmf explore {record.paper} --dataset {data}"
        )
    chosen = any(found.chosen is not None for found in record.data.values())
    yield "holds: on both halves of the folds; turns with the fold: holds on only one half"
    yield "moved by: the choices that explain most of the variance over settings, each with its share"
    yield f"measured: {'the best setting for each ε' if chosen else 'the shipped configs'}"


def _numbers(folds: Sequence[int]) -> str:
    first, last = folds[0] + 1, folds[-1] + 1
    return f"fold {first}" if first == last else f"folds {first} to {last}"


def cells_text(found: Explored) -> TextTable:
    """Returns a row for each printed cell: the values reached, and how many are within the cell's tolerance.

    Each row also has the value in the setting that is nearest to print, and the choices that move the cell most.
    """
    best = nearest(found)
    rows = [_cell_row(found, name, cell, best) for name, cell in found.printed.items()]
    notes = [
        "shipped, range, nearest: on the folds to test by; within: settings within the tolerance on both halves of "
        "the folds"
    ]
    if best is not None:
        named = zip(found.values(best.setting).items(), best.setting, strict=True)
        others = [f"{name} {value}" for (name, value), at in named if at]
        notes.append(
            f"nearest to print on the folds to choose by: {', '.join(others) or 'the shipped configs'}"
        )
    return TextTable(
        header=("cell", "printed", "tolerance", "shipped", "range", "within", "nearest", "moved by"),
        alignment="lrrrrrrl",
        groups=(Group(f"{found.title}, {len(found.tried)} settings", tuple(rows)),),
        notes=tuple(notes),
    )


def _cell_row(found: Explored, name: str, cell: Printed, best: Tried | None) -> tuple[str, ...]:
    tried = [(each.setting, *each.cells[name]) for each in found.tried if name in each.cells]
    values = [math.inf if testing is None else testing for _, _, testing in tried]
    within = sum(_is_within(cell, halves) for _, *halves in tried)
    off = [
        (setting, max(-FAR, min(FAR, (deviation(cell, choosing) + deviation(cell, testing)) / 2)))
        for setting, choosing, testing in tried
    ]
    at_best = best.cells[name][1] if best and name in best.cells else None
    return (
        name,
        significant(cell.printed),
        f"× {cell.tolerance:g}" if cell.ratio else f"± {cell.tolerance:g}",
        _value(values[0], cell) if tried and not any(tried[0][0]) else NONE,
        f"{_value(min(values), cell)} … {_value(max(values), cell)}" if values else NONE,
        f"{within} of {len(tried)}",
        _value(math.inf if at_best is None else at_best, cell),
        _moved(found, moved_by(found, off)),
    )


def _is_within(cell: Printed, halves: Sequence[float | None]) -> bool:
    """Whether a cell is within its tolerance on both halves of the folds."""
    return all(abs(deviation(cell, half)) <= 1 for half in halves)


def within_tolerance(found: Explored, name: str, cell: Printed) -> tuple[bool, bool]:
    """Whether a printed cell is within its tolerance in the shipped setting, and in any setting."""
    held = [
        not any(each.setting)
        for each in found.tried
        if name in each.cells and _is_within(cell, each.cells[name])
    ]
    return any(held), bool(held)


def _value(value: float, cell: Printed) -> str:
    if math.isinf(value):
        return NOT_REACHED
    return significant(value) if cell.ratio else f"{value:.4f}"
