"""LaTeX tables fit a column of a two-column page, by the widths of Computer Modern's letters."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import matplotlib
import pytest
from matplotlib.ft2font import FT2Font

from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.papers.printed_cells import beside_print, with_printed_cells
from dpmf_cli.report.tables.baselines import baseline_rows, baselines_table
from dpmf_cli.report.tables.crossings import crossings_table
from dpmf_cli.report.tables.layout import draw
from tests.report.conftest import of_theta

Make = Callable[..., Experiment]

COLUMN = 241.0
"""Points of a column in ACM's two-column format, the narrowest of the common ones."""
GAP = 6.0
"""Points between two columns: twice \tabcolsep."""
SMALL = 8 / 7
"""How much wider letters of 7 points are than letters of 10 points made smaller."""


def points(text: str) -> float:
    r"""The width of a LaTeX cell in \scriptsize; each command counts as a letter."""
    plain = re.sub(r"\\allowbreak\{\}|\\textsuperscript|[${}]", "", text).replace("–", "--")
    font = FT2Font(str(Path(matplotlib.get_data_path()) / "fonts/ttf/cmr10.ttf"))
    font.set_size(7, 72)
    font.set_text(re.sub(r"\\[A-Za-z]+", "m", plain).replace("\\", ""))
    return SMALL * font.get_width_height()[0] / 64


def least_width(drawn: str) -> float:
    """The width that a table needs: the longest word of columns that break lines, the longest cell of others."""
    spec = re.search(r"tabularx\}\{\\linewidth\}\{@\{\}(.*)@\{\}\}", drawn)
    assert spec
    sides = spec.group(1).replace(r">{\raggedright\arraybackslash}", "")
    rows = [line.removesuffix(r" \\").split(" & ") for line in drawn.splitlines() if " & " in line]
    assert all(len(row) == len(sides) for row in rows)
    columns = zip(sides, zip(*rows, strict=True), strict=True)
    widths = [
        max(
            points(word)
            for cell in cells
            for word in (re.split(r" |\\allowbreak\{\}", cell) if side == "X" else [cell])
        )
        for side, cells in columns
    ]
    return sum(widths) + GAP * (len(sides) - 1)


@pytest.mark.parametrize("form", ["own", "printed", "theta"])
def test_crossings_fit_a_column(made: Make, form: str) -> None:
    experiment = replace(of_theta(made(4)) if form == "theta" else made(6), name="ml1m_bounded")
    longer = replace(
        experiment.curves[0], label="Gradient perturbation, private_covariance_estimate, λ = 0.05"
    )
    experiment = replace(experiment, curves=(longer, *experiment.curves[1:]))
    crossings = find_crossings(experiment)
    if form == "printed":
        crossings = with_printed_cells(beside_print(crossings))
    drawn = draw(crossings_table(crossings), "latex")
    assert "not reached in the grid" in drawn
    assert ("printed" in drawn.splitlines()[3]) == (form == "printed")
    assert 120 < least_width(drawn) <= COLUMN


def test_baselines_fit_a_column(made: Make) -> None:
    assert least_width(draw(baselines_table(baseline_rows(made(1))), "latex")) <= COLUMN
