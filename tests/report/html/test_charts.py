"""Charts hold the measured values, and their pictures stay within their frames."""

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.report.html.chart import Chart, ChartLine, Level
from dpmf_cli.report.html.charts import charts_of
from dpmf_cli.report.html.svg import PLOT_RIGHT, draw, place_of
from tests.report.conftest import of_theta

Make = Callable[..., Experiment]


def test_the_chart_of_curves_holds_them(made: Make) -> None:
    experiment = made(4, incomplete="psgd")
    (chart,) = charts_of(experiment)
    assert [line.name for line in chart.lines] == ["pge", "isgd", "pals"]
    assert len({line.colour for line in chart.lines}) == 3
    for line in chart.lines:
        curve = next(each for each in experiment.curves if each.label == line.name)
        assert np.array(line.points)[:, 0] == pytest.approx(curve.epsilons)
        assert np.array(line.points)[:, 1] == pytest.approx(curve.mean())
        assert (np.array(line.points)[:, 2] < curve.mean()).all()
    assert [len(line.marks) for line in chart.lines] == [1, 2, 2]  # PGE does not reach GE
    assert [level.name for level in chart.levels] == ["GA", "IA", "GE", "Clean MF (ALS)"]
    assert any("Incomplete and not drawn: psgd." in note for note in chart.notes)


def test_theta_twins_and_references_are_there(made: Make) -> None:
    (chart,) = charts_of(of_theta(made(2)))
    assert chart.x_name == "θ"
    assert np.array(chart.lines[1].points)[:, 0] == pytest.approx(np.geomspace(0.1, 20, 16))
    names = [level.name for level in chart.levels]
    assert names[-4:] == ["Cinematch probe", "Cinematch quiz", "pge, no noise", "isgd, no noise"]


def test_nothing_complete_is_no_chart(made: Make) -> None:
    assert charts_of(made(1, incomplete="pge")) == []


def test_a_single_epsilon_is_no_curve(made: Make) -> None:
    experiment = made(1)
    (curve,) = experiment.curves
    point = replace(
        curve,
        epsilons=curve.epsilons[:1],
        rmse=curve.rmse[:, :, :1],
        claimed=curve.claimed[:1],
        provable=curve.provable[:1],
    )
    assert charts_of(replace(experiment, curves=(point,))) == []


def chart(*lines: ChartLine, **more: object) -> Chart:
    fields = {
        "key": "k",
        "title": "T",
        "x_name": "x",
        "y_name": "y",
        "lines": lines,
        "levels": (),
        "low": 0.0,
        "high": 1.0,
    }
    return Chart(**{**fields, **more})  # type: ignore[arg-type]


def line(name: str, *points: tuple[float, float], **more: object) -> ChartLine:
    return ChartLine(name, tuple((x, y, np.nan, np.nan) for x, y in points), 0, 0, **more)  # type: ignore[arg-type]


def test_places_are_linear_or_by_the_logarithm() -> None:
    points = (1.0, 0.5), (10.0, 0.5), (100.0, 0.5)
    middle = (place_of(chart(line("a", *points)), 1.0) + place_of(chart(line("a", *points)), 100.0)) / 2
    assert place_of(chart(line("a", *points), log=True), 10.0) == pytest.approx(middle, abs=0.1)
    assert place_of(chart(line("a", *points)), 50.5) == pytest.approx(middle, abs=0.1)
    assert place_of(chart(line("a", (3.0, 0.5))), 3.0) == pytest.approx(middle, abs=0.1)


def test_values_beyond_the_frame_and_diverged_ones_do_no_harm() -> None:
    svg = draw(chart(line("a", (1.0, 1e9), (2.0, np.nan), (3.0, np.inf), (4.0, 0.5))))
    assert "nan" not in svg
    assert "inf" not in svg
    assert all(abs(float(number)) < 2000 for number in re.findall(r'[xy][12]?="([-\d.]+)"', svg))
    assert draw(chart(line("a", (1.0, np.nan))))


def test_labels_do_not_overlap_and_are_short_enough() -> None:
    lines = [line(f"a rather long name of a method, number {k}", (1.0, 0.5), (2.0, 0.5)) for k in range(25)]
    svg = draw(chart(*lines, levels=(Level("GA", 0.5), Level("hidden", 0.5, labelled=False))))
    labels = re.findall(r'<text x="586" y="([\d.]+)">([^<]*)</text>', svg)
    assert len(labels) == 26
    heights = sorted(float(y) for y, _ in labels)
    assert min(np.diff(heights)) >= 13.5
    assert all(len(text) <= 30 for _, text in labels)
    height = float(re.search(r'viewBox="0 0 836 ([\d.]+)"', svg).group(1))  # type: ignore[union-attr]
    assert heights[-1] < height
    assert float(labels[0][0]) > 0
    assert PLOT_RIGHT < 586


def test_what_leaves_the_chart_at_its_end_says_so() -> None:
    svg = draw(chart(line("up", (1.0, 0.5), (2.0, 7.0)), line("in", (1.0, 0.5), (2.0, 0.6))))
    assert ">up ↑<" in svg
    assert ">in<" in svg


def test_names_are_escaped() -> None:
    svg = draw(chart(line("<b>&", (1.0, 0.5)), x_name="<i>"))
    assert "<b>" not in svg
    assert "<i>" not in svg
    assert "&lt;b&gt;&amp;" in svg
