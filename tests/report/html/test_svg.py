"""Charts hold the measured values, and their pictures stay within their frames."""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from dpmf_cli.report.figures.charts import Chart, Level, Line, charts_of
from dpmf_cli.report.figures.style import Look
from dpmf_cli.report.html.page import Drawn
from tests.report.conftest import make
from tests.report.figures.made import cut, picture


def test_nothing_complete_and_a_single_epsilon_are_no_chart() -> None:
    assert charts_of(make(1, incomplete="pge")) == []
    assert charts_of(replace(make(1), curves=(cut(make(1).curves[0], slice(1)),))) == []


def chart(*series: Line | Level, x_name: str = "x", log: bool = False) -> Drawn:
    return Drawn(Chart("k", "T", x_name, "y", series, (0.0, 1.0), log))


def line(name: str, *points: tuple[float, float], **more: Any) -> Line:
    x, y = np.array(points).T
    return Line(name, Look(0, 0), x, y, **more)


def test_values_beyond_the_frame_and_diverged_ones_do_no_harm() -> None:
    svg = picture(chart(line("a", (1.0, 1e9), (2.0, np.nan), (3.0, np.inf), (4.0, 0.5))))
    assert "nan" not in svg
    assert "inf" not in svg
    assert all(abs(float(number)) < 2000 for number in re.findall(r'[xy][12]?="([-\d.]+)"', svg))
    assert picture(chart(line("a", (1.0, np.nan))))


def test_labels_do_not_overlap_and_are_short_enough() -> None:
    lines = [line(f"a rather long name of a method, number {k}", (1.0, 0.5), (2.0, 0.5)) for k in range(25)]
    svg = picture(chart(*lines, Level("GA", 0.5), Level("hidden", 0.5, labelled=False)))
    labels = re.findall(r'<text x="586" y="([\d.]+)">([^<]*)</text>', svg)
    assert len(labels) == 26
    heights = sorted(float(y) for y, _ in labels)
    assert min(np.diff(heights)) >= 13.5
    assert all(len(text) <= 30 for _, text in labels)
    height = float(re.search(r'viewBox="0 0 836 ([\d.]+)"', svg).group(1))  # type: ignore[union-attr]
    assert heights[-1] < height
    assert float(labels[0][0]) > 0
    assert Drawn.right < 586


def test_names_are_escaped() -> None:
    svg = picture(chart(line("<b>&", (1.0, 0.5)), x_name="<i>"))
    assert "<b>" not in svg
    assert "<i>" not in svg
    assert "&lt;b&gt;&amp;" in svg
