"""The cells of Friedman, Berkovsky and Kaafar's (2016) tables 3 to 5 and of section 5.4, beside what was measured."""

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.printed import CROSSING_TABLES, load, printed_baseline, printed_crossings
from dpmf_cli.papers.rules.base import Cell
from dpmf_cli.papers.rules.friedman_shared import TOLERANCES, figure, table

BASELINES = ("GA", "IA", "GE", "ALS")


@dataclass(frozen=True)
class Crossed:
    """A printed crossing, and what was measured: interpolated, and the first ε of the grid from there on."""

    name: str
    printed: float
    interpolated: float
    on_grid: float


def cells(evidence: Evidence) -> Iterator[Cell]:
    """Yields all measured cells of one data set, and the mean ratio of measured to printed over all crossings.

    The mean is 1 if the paper is reproduced. It is given twice: for interpolated crossings, and for the next ε of the
    grid.
    """
    yield from _baselines(evidence)
    crossed = [*_crossings(evidence, "{}_bounded"), *_crossings(evidence, "{}_unbounded")]
    yield from map(_cell, crossed)
    yield from map(_cell, _crossings(evidence, "{}_unbounded_table3", ", λ of table 3"))
    yield from map(_cell, _section_5_4(evidence))
    if crossed:
        ratio = TOLERANCES["mean_ratio"]
        yield Cell(
            "mean ratio to tables 4 and 5",
            1,
            _mean([(c.interpolated, c.printed) for c in crossed]),
            ratio,
            True,
        )
        on_grid = _mean([(c.on_grid, c.printed) for c in crossed])
        yield Cell("mean ratio, next ε of the grid", 1, on_grid, ratio, True)


def _baselines(evidence: Evidence) -> Iterator[Cell]:
    for baseline in BASELINES:
        printed = printed_baseline(evidence.data, baseline)
        with suppress(MissingEvidence):
            measured = evidence.baseline(table(evidence, "bounded"), baseline.lower())
            if printed is not None:
                tolerance = TOLERANCES["als" if baseline == "ALS" else "baseline"]
                yield Cell(f"table 3, {baseline}", printed, measured, tolerance)


def _crossings(evidence: Evidence, pattern: str, remark: str = "") -> Iterator[Crossed]:
    kind = "unbounded" if "unbounded" in pattern else "bounded"
    for cell in printed_crossings():
        if (cell.dataset, cell.neighbours) == (evidence.data, kind) and cell.epsilon is not None:
            name = f"table {CROSSING_TABLES[kind][-1]}, {cell.algorithm.upper()}, {cell.baseline}{remark}"
            with suppress(MissingEvidence):
                config = evidence.named(pattern)
                yield _crossed(evidence, config, cell.algorithm, cell.baseline, name, cell.epsilon)


def _section_5_4(evidence: Evidence) -> Iterator[Crossed]:
    for algorithm, printed in load("friedman2016")["section5_4"].get(evidence.data, {}).items():
        for baseline, epsilon in printed.items():
            name = f"section 5.4, {algorithm.upper()}, {baseline}"
            with suppress(MissingEvidence):
                yield _crossed(evidence, figure(evidence, "fig5"), algorithm, baseline, name, epsilon)


def _crossed(
    evidence: Evidence, config: str, algorithm: str, baseline: str, name: str, printed: float
) -> Crossed:
    crossing = evidence.crossing(config, algorithm, baseline)
    curve, level = evidence.curve(config, algorithm), evidence.baseline(config, baseline.lower())
    there = curve.epsilons[curve.mean() <= level]
    return Crossed(name, printed, crossing, float(there[0]) if len(there) else math.inf)


def _cell(crossed: Crossed) -> Cell:
    return Cell(crossed.name, crossed.printed, crossed.interpolated, TOLERANCES["crossing"], ratio=True)


def _mean(pairs: list[tuple[float, float]]) -> float:
    """Returns the geometric mean of the ratios of crossings within the grid."""
    ratios = [measured / printed for measured, printed in pairs if 0 < measured < math.inf]
    return float(np.exp(np.mean(np.log(ratios)))) if ratios else math.inf
