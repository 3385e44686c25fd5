"""The cells of Friedman, Berkovsky and Kaafar's (2016) tables 3 to 5 and of section 5.4, beside what was measured."""

from collections.abc import Iterator
from contextlib import suppress

from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.printed import CROSSING_TABLES, load, printed_baseline, printed_crossings
from dpmf_cli.papers.rules.base import Cell
from dpmf_cli.papers.rules.friedman_shared import TOLERANCES, figure, table

BASELINES = ("GA", "IA", "GE", "ALS")


def cells(evidence: Evidence) -> Iterator[Cell]:
    """Yields each printed cell of one data set that is measured, once."""
    yield from _baselines(evidence)
    yield from _crossings(evidence)
    yield from _section_5_4(evidence)


def _baselines(evidence: Evidence) -> Iterator[Cell]:
    for baseline in BASELINES:
        printed = printed_baseline(evidence.data, baseline)
        with suppress(MissingEvidence):
            measured = evidence.baseline(table(evidence, "bounded"), baseline.lower())
            if printed is not None:
                tolerance = TOLERANCES["als" if baseline == "ALS" else "baseline"]
                yield Cell(f"table 3, {baseline}", printed, measured, tolerance)


def _crossings(evidence: Evidence) -> Iterator[Cell]:
    for cell in printed_crossings():
        if cell.dataset == evidence.data and cell.epsilon is not None:
            name = f"table {CROSSING_TABLES[cell.neighbours][-1]}, {cell.algorithm.upper()}, {cell.baseline}"
            with suppress(MissingEvidence):
                config = table(evidence, cell.neighbours)
                yield _crossed(evidence, config, cell.algorithm, cell.baseline, name, cell.epsilon)


def _section_5_4(evidence: Evidence) -> Iterator[Cell]:
    for algorithm, printed in load("friedman2016")["section5_4"].get(evidence.data, {}).items():
        for baseline, epsilon in printed.items():
            name = f"section 5.4, {algorithm.upper()}, {baseline}"
            with suppress(MissingEvidence):
                yield _crossed(evidence, figure(evidence, "fig5"), algorithm, baseline, name, epsilon)


def _crossed(
    evidence: Evidence, config: str, algorithm: str, baseline: str, name: str, printed: float
) -> Cell:
    measured = evidence.crossing(config, algorithm, baseline)
    return Cell(name, printed, measured, TOLERANCES["crossing"], ratio=True)
