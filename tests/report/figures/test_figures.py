"""Figures of one experiment: readable labels, sensible axes, notes that say what is shown."""

import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import matplotlib
import pytest
from matplotlib.figure import Figure

from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.folds import Order
from dpmf_cli.report.figures import charts
from dpmf_cli.report.figures.charts import curves_chart, growth_chart, growth_lines
from dpmf_cli.report.figures.drawings import curves_figure, drawings, growth_figure
from tests.report.conftest import make
from tests.report.figures.made import grown, many, values_of


def draw(experiment: Experiment) -> Figure:
    return curves_figure(charts.title_of(experiment, experiment.curves), curves_chart(experiment))


def draw_growth(experiment: Experiment) -> Figure:
    return growth_figure(experiment, "title", growth_chart(experiment))


def test_global_style_and_pyplot_are_left_alone() -> None:
    plain = drawings(make())["curves"]("svg")
    with matplotlib.rc_context({"font.size": 33, "axes.facecolor": "pink"}):
        assert drawings(make())["curves"]("svg") == plain
        assert matplotlib.rcParams["font.size"] == 33
    code = "import sys, dpmf_cli.report.figures.drawings; sys.exit('matplotlib.pyplot' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("count", [1, 4, 6, charts.MOST_LINES])
def test_labels_do_not_overlap_and_stay_inside_the_figure(count: int) -> None:
    figure = draw(many(make(1), count) if count > 6 else make(count))
    figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in figure.axes[0].texts), key=lambda box: box.y0)
    assert len(boxes) == count + 4
    assert all(lower.y1 <= upper.y0 + 1.5 for lower, upper in pairwise(boxes))
    width, _ = figure.canvas.get_width_height()
    assert max(box.x1 for box in boxes) <= width


def test_a_title_says_the_mode_of_what_is_drawn() -> None:
    first, second = make(2).curves
    swept = values_of(replace(second, mode="corrected"), "epsilon", "x")
    found = drawings(replace(make(2), curves=(first, *swept)))
    assert b"published mode" in found["curves"]("svg")
    assert b"corrected mode" in found["sweep-k"]("svg")


@pytest.mark.parametrize("order", ["timestamp", "random"])
@pytest.mark.parametrize("label", ["pge", "x" * 30])
def test_every_line_is_named_in_the_order_of_their_ends_beside_the_axes(order: Order, label: str) -> None:
    first, *others = make(4).curves
    experiment = grown(replace(make(4), curves=(replace(first, label=label), *others)), order)
    figure = draw_growth(experiment)
    figure.canvas.draw()
    (legend,) = figure.legends
    ends = {line.name: line.y[-1] for line in growth_lines(experiment)}
    words = [text.get_text() for text in legend.get_texts()]
    assert words == sorted(ends, key=lambda name: -ends[name])
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    taken = [figure.axes[0].get_window_extent(), figure.axes[-1].yaxis.get_tightbbox()]
    assert max(box.x1 for box in taken if box) <= legend.get_window_extent().x0 + 2
