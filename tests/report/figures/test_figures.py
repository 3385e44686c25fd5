"""Figures of one experiment: readable labels, sensible axes, notes that say what is shown."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.evaluation.curves import Experiment, Growth, Stage
from dpmf_cli.evaluation.folds import Order, Portion
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.figures.charts import curves_chart, growth_chart, growth_lines
from dpmf_cli.report.figures.drawings import curves_figure, drawings, growth_figure
from dpmf_cli.report.figures.shown import MOST_LINES, title_of
from dpmf_cli.report.figures.style import MARKER_SIZE
from tests.evaluation.made_curves import twin_of
from tests.report.conftest import of_theta
from tests.report.figures.made import SHARES, cut, grown, many, xs, ys

Make = Callable[..., Experiment]


def draw(experiment: Experiment) -> Figure:
    return curves_figure(title_of(experiment, experiment.curves), curves_chart(experiment))


def draw_growth(experiment: Experiment) -> Figure:
    return growth_figure("title", experiment, growth_chart(experiment))


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in (*figure.axes[0].texts, *figure.texts)]


def notes(experiment: Experiment) -> str:
    return " ".join(curves_chart(experiment).notes)


def test_global_style_and_pyplot_are_left_alone(made: Make) -> None:
    plain = drawings(made())["curves"]("svg")
    with matplotlib.rc_context({"font.size": 33, "axes.facecolor": "pink"}):
        assert drawings(made())["curves"]("svg") == plain
        assert matplotlib.rcParams["font.size"] == 33
    code = "import sys, dpmf_cli.report.figures.drawings; sys.exit('matplotlib.pyplot' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("count", [1, 4, 6, MOST_LINES])
def test_labels_do_not_overlap_and_stay_inside_the_figure(made: Make, count: int) -> None:
    figure = draw(many(made(1), count) if count > 6 else made(count))
    figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in figure.axes[0].texts), key=lambda box: box.y0)
    assert len(boxes) == count + 4
    assert all(lower.y1 <= upper.y0 + 1.5 for lower, upper in pairwise(boxes))
    width, _ = figure.canvas.get_width_height()
    assert max(box.x1 for box in boxes) <= width


def test_every_line_is_named_and_every_crossing_marked(made: Make) -> None:
    figure = draw(made(4))
    assert {"pge", "isgd", "psgd", "pals", "GA 1.117", "Clean MF (ALS) 0.860"} <= set(texts(figure))
    circles = [
        line for line in figure.axes[0].lines if line.get_markersize() == 6 and line.get_marker() == "o"
    ]
    assert len(circles) == 7  # PGE does not reach GE
    assert "MovieLens 1M, bounded, published mode, 10 folds × 5 runs" in figure.axes[0].get_title(loc="left")


def test_notes_say_what_is_cut_missing_and_resampled(made: Make) -> None:
    written = notes(made(4, incomplete="psgd"))
    assert "Cut at the top: pge; isgd; pals." in written
    assert "Incomplete and not drawn: psgd." in written
    assert "over the 10 folds" in written
    assert written in "".join(texts(draw(made(4, incomplete="psgd")))).replace("\n", " ")
    assert "over the runs of the one fold" in notes(made(1, folds=1))
    single = made(1, folds=1, runs=1)
    assert "Bands" not in notes(single)
    assert title_of(single, single.curves).endswith("1 fold × 1 run")


def test_the_axis_says_whether_the_claim_is_provable(made: Make) -> None:
    assert "provable differs" in curves_chart(made(2)).x_name
    assert curves_chart(made(1)).x_name == "total ε, claimed and provable"


def test_a_grid_of_theta_is_drawn_over_theta(made: Make) -> None:
    experiment = of_theta(made(3))
    (axes,) = draw(experiment).axes
    assert axes.get_xlabel() == "θ"
    low, high = axes.get_xlim()
    assert 0.085 < low < 0.1 < 20 < high < 23
    drawn = [line for line in axes.lines if line.get_markersize() == MARKER_SIZE]
    assert len(drawn) == 3
    for line in drawn:
        np.testing.assert_array_equal(xs(line), experiment.curves[0].thetas)
    circles = [line for line in axes.lines if line.get_markersize() == 6 and line.get_marker() == "o"]
    crossings = [cell.theta for cell in find_crossings(experiment) if cell.theta is not None]
    assert [float(xs(circle)[0]) for circle in circles] == crossings
    assert len(crossings) > 6


def test_fits_without_noise_and_printed_errors_are_level_lines_of_their_own_dashes(made: Make) -> None:
    experiment = of_theta(made(2))
    figure = draw(experiment)
    level = [line for line in figure.axes[0].lines if len(set(ys(line))) == 1 and len(xs(line)) == 2]
    dashed = [line for line in level if line.get_linewidth() == 0.8]
    colours = [line.get_color() for line in figure.axes[0].lines if line.get_markersize() == MARKER_SIZE]
    twins = [curve.twin["rmse"].mean() for curve in experiment.curves if curve.twin is not None]
    assert [line.get_color() for line in dashed] == colours
    assert [ys(line)[0] for line in dashed] == twins
    assert {line.get_linestyle() for line in dashed} == {"--"}
    best = replace(experiment.curves[0], twin=twin_of(np.full(10, 0.7)))
    assert curves_chart(replace(experiment, curves=(best,))).limits[0] < 0.7
    assert {"Cinematch probe 0.947", "Cinematch quiz 0.951"} <= set(texts(figure))
    written = notes(experiment)
    for expected in (
        "Circles: crossings of IA, GE, Cinematch probe and Cinematch quiz.",
        "(ε, δ) with δ = 1e-06: all curves.",
        "ε at θ = 20.0: 20.0 for pge; 40.0 for isgd.",
        "Dotted: printed errors, not measured.",
        "Dashed and level: the algorithm of that colour without noise.",
    ):
        assert expected in written
    by_epsilon = curves_chart(replace(of_theta(made(3)), axis="epsilon"))
    assert by_epsilon.x_name.startswith("total ε")
    assert by_epsilon.places[-1] == 60  # the third curve's grid ends at 3·20
    assert "(ε, δ) with δ = 1e-06: pge; isgd." in by_epsilon.notes
    plain = notes(made(2))
    assert "Circles: crossings of IA and GE." in plain
    assert not any(word in plain for word in ("Dotted", "Dashed", "Joint", "δ ="))
    joint = replace(made(2), curves=(replace(made(2).curves[0], joint=True), made(2).curves[1]))
    with pytest.raises(DpmfError, match="one figure cannot show several guarantees"):
        notes(joint)
    assert "clean ratings: all curves." in notes(replace(joint, curves=joint.curves[:1]))


def test_no_figure_mixes_what_is_protected(made: Make) -> None:
    first, second = made(2).curves
    for other in (replace(second, neighbours="unbounded"), replace(second, protects=Protection.PERSONALISED)):
        with pytest.raises(DpmfError, match="one figure cannot show several guarantees"):
            draw(replace(made(2), curves=(first, other)))


def test_an_algorithm_keeps_its_colour_in_both_modes_and_changes_its_marker(made: Make) -> None:
    experiment = made(2)
    corrected = [replace(curve, mode="corrected", label=f"{curve.label} c") for curve in experiment.curves]
    figure = draw(replace(experiment, curves=(*experiment.curves, *corrected)))
    lines = [line for line in figure.axes[0].lines if line.get_markersize() == MARKER_SIZE]
    assert {line.get_linestyle() for line in lines} == {"-"}
    assert len({line.get_marker() for line in lines}) == 4
    colours = [line.get_color() for line in lines]
    assert colours[:2] == colours[2:]
    assert colours[0] != colours[1]


def test_odd_experiments_are_drawn(made: Make) -> None:
    experiment = made(1)
    (curve,) = experiment.curves
    rmse = curve.rmse.copy()
    rmse[0, 0, :3] = np.inf
    many = tuple(replace(curve, label=f"pge{index}") for index in range(20))
    for odd in (
        replace(experiment, curves=(cut(curve, slice(1)),)),
        replace(experiment, curves=(replace(curve, label="diverged", rmse=rmse),)),
        replace(experiment, curves=many),
        replace(experiment, baselines=()),
    ):
        assert drawings(odd)["curves"]("png").startswith(b"\x89PNG")


def test_a_curve_that_ends_above_the_axes_points_there(made: Make) -> None:
    first, second = made(2).curves
    words = texts(draw(replace(made(2), curves=(replace(first, rmse=first.rmse + 5), second))))
    assert {"pge ↑", "isgd"} <= set(words)


def test_a_figure_of_the_local_model_cuts_no_curve(made: Make) -> None:
    first = made(2).curves[0]
    high = replace(first, rmse=first.rmse * 1.7)
    assert "Cut at the top" in notes(replace(made(2), curves=(high,)))
    assert "Cut at the top" not in notes(replace(made(2), curves=(replace(high, neighbours="local"),)))


def test_baselines_of_one_algorithm_go_by_their_labels(made: Make) -> None:
    clean = replace(made(1).baselines[-1], algorithm="mf_sgd", label="x")
    (ga, *_) = made(1).baselines
    chart = curves_chart(replace(made(1), baselines=(clean, ga, replace(ga, label="other"))))
    assert [level.name for level in chart.levels] == ["Clean MF (SGD)", "ga", "other"]


def test_over_time_the_ratings_have_the_scale_on_the_right(made: Make) -> None:
    axes, right = draw_growth(grown(made(3))).axes
    assert axes.get_xlabel() == "days since the first rating"
    lines = [line for line in axes.lines if line.get_markersize() == MARKER_SIZE]
    assert [xs(line) for line in lines] == [[20, 50, 100]] * 3
    for line in lines:
        assert all(before > after for before, after in pairwise(ys(line)))
    (ratings,) = right.lines
    assert ys(ratings) == [200, 500, 1000]
    assert "ratings" in right.get_ylabel()


def test_in_a_random_order_the_ratings_are_the_axis(made: Make) -> None:
    (axes,) = draw_growth(grown(made(2), "random")).axes
    assert axes.get_xlabel() == "ratings"
    assert [xs(line) for line in axes.lines if line.get_markersize() == MARKER_SIZE] == [[200, 500, 1000]] * 2


@pytest.mark.parametrize("order", ["timestamp", "random"])
@pytest.mark.parametrize("label", ["pge", "x" * 30])
def test_every_line_is_named_in_the_order_of_their_ends_beside_the_axes(
    made: Make, order: Order, label: str
) -> None:
    first, *others = made(4).curves
    experiment = grown(replace(made(4), curves=(replace(first, label=label), *others)), order)
    figure = draw_growth(experiment)
    figure.canvas.draw()
    (legend,) = figure.legends
    ends = {line.name: line.y[-1] for line in growth_lines(experiment)}
    words = [text.get_text() for text in legend.get_texts()]
    assert words == sorted(ends, key=lambda name: -ends[name])
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    taken = [figure.axes[0].get_window_extent(), figure.axes[-1].yaxis.get_tightbbox()]
    assert max(box.x1 for box in taken if box) <= legend.get_window_extent().x0 + 2


def test_several_points_of_a_grid_are_lines_of_their_own_and_name_it(made: Make) -> None:
    whole = of_theta(made(1))
    stages = tuple(Stage(Portion(share, 10, 5, None), whole.curves, ()) for share in SHARES)
    experiment = replace(whole, growth=Growth("random", stages))
    names = [line.name for line in growth_lines(experiment)]
    assert len(names) == 16
    assert names[0] == "pge, θ = 0.1"
    assert growth_lines(replace(experiment, axis="epsilon"))[0].name == "pge, ε = 0.1"


def test_a_stage_that_is_incomplete_is_left_out_of_its_line(made: Make) -> None:
    experiment = grown(made(1))
    assert experiment.growth is not None
    first, second, third = experiment.growth.stages
    waiting = replace(second, curves=(replace(second.curves[0], missing=1),))
    (line,) = growth_lines(replace(experiment, growth=Growth("timestamp", (first, waiting, third))))
    assert line.x.tolist() == [200, 1000]
    assert growth_lines(made(2)) == []
