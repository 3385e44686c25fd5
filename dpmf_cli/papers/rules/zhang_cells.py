"""The printed cells of Zhang et al. (2018): the numbers that its text gives for its pictures."""

from collections.abc import Iterator
from contextlib import suppress

from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.rules.base import Cell
from dpmf_cli.papers.rules.zhang_figures import (
    PRINTED,
    TOLERANCES,
    at_most_one,
    best_and_fall,
    figure_2,
    figure_3,
)


def cells(evidence: Evidence) -> Iterator[Cell]:
    for of in (_of_the_larger_sets, _of_figure_5):
        with suppress(MissingEvidence):
            yield from of(evidence)


def _of_the_larger_sets(evidence: Evidence) -> Iterator[Cell]:
    """Yields the cells of figures 2 and 3. The text gives numbers for ML-1M and Netflix only."""
    if evidence.data == "ml-100k":
        return
    level, share = PRINTED["figure2_level"], PRINTED["errors_at_most_one"]
    for f_c, rmse in zip(*figure_2(evidence), strict=True):
        yield Cell(f"figure 2, f_c = {f_c:g}, RMSE", level, rmse, TOLERANCES["level"])
    for curve in figure_3(evidence):
        name = f"figure 3, {curve.label}, % of errors at most 1"
        yield Cell(name, share, at_most_one(curve), TOLERANCES["percent"])


def _of_figure_5(evidence: Evidence) -> Iterator[Cell]:
    printed = PRINTED["figure5"]
    for limit, t, fall in zip(printed["errors"], *best_and_fall(evidence), strict=True):
        name = f"figure 5(b), errors at most {limit:g}"
        yield Cell(f"{name}, best t", printed["best_threshold"], t, TOLERANCES["threshold"])
        yield Cell(f"{name}, points lost from t = 0.7 to 1", printed["fall"], fall, TOLERANCES["fall"])
