"""Figures: deterministic bytes, readable labels, sensible axes."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.figures.rmse_curves import draw, rmse_curves_bytes
from dpmf_cli.report.figures.style import MARKER_SIZE
from tests.evaluation.made_curves import twin_of
from tests.report.conftest import of_theta
from tests.report.figures.lines import xs, ys

Make = Callable[..., Experiment]


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for text in (*figure.axes[0].texts, *figure.texts)]


@pytest.mark.parametrize(("form", "head"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_equal_results_give_equal_bytes(made: Make, form: str, head: bytes) -> None:
    drawn = rmse_curves_bytes(made(), form)
    assert drawn.startswith(head)
    assert rmse_curves_bytes(made(), form) == drawn
    for word in (b"Software", b"<dc:date>", b"<dc:creator>"):
        assert word not in drawn


def test_global_style_and_pyplot_are_left_alone(made: Make) -> None:
    with matplotlib.rc_context({"font.size": 33, "axes.facecolor": "pink"}):
        changed = rmse_curves_bytes(made(), dpi=40)
        assert matplotlib.rcParams["font.size"] == 33
    assert changed == rmse_curves_bytes(made(), dpi=40)
    code = "import sys, dpmf_cli.report.figures.rmse_curves; sys.exit('matplotlib.pyplot' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("count", [1, 4, 6])
def test_labels_do_not_overlap_and_stay_inside_the_figure(made: Make, count: int) -> None:
    experiment = made(count)
    figure = draw(experiment, experiment.curves)
    figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in figure.axes[0].texts), key=lambda box: box.y0)
    assert len(boxes) == count + 4
    assert all(lower.y1 <= upper.y0 + 1.5 for lower, upper in pairwise(boxes))
    width, _ = figure.canvas.get_width_height()
    assert max(box.x1 for box in boxes) <= width


def test_every_line_is_named_and_every_crossing_marked(made: Make) -> None:
    experiment = made(4)
    figure = draw(experiment, experiment.curves)
    assert {"pge", "isgd", "psgd", "pals", "GA 1.117", "Clean MF (ALS) 0.860"} <= set(texts(figure))
    markers = [
        line for line in figure.axes[0].lines if line.get_markersize() == 6 and line.get_marker() == "o"
    ]
    assert len(markers) == 7  # PGE does not reach GE
    assert "MovieLens 1M, bounded, published mode, 10 folds × 5 runs" in figure.axes[0].get_title(loc="left")


def test_notes_say_what_is_cut_missing_and_resampled(made: Make) -> None:
    experiment = made(4, incomplete="psgd")
    notes = "".join(texts(draw(experiment, experiment.curves)))
    assert "Cut at the top: pge; isgd; pals." in notes
    assert "Incomplete and not drawn: psgd." in notes
    assert "over the 10 folds" in notes
    one_fold = made(1, folds=1)
    assert "over the runs of the one fold" in "".join(texts(draw(one_fold, one_fold.curves)))
    single = made(1, folds=1, runs=1)
    figure = draw(single, single.curves)
    assert "Bands" not in "".join(texts(figure))
    assert figure.axes[0].get_title(loc="left").endswith("1 fold × 1 run")


def test_the_axis_says_whether_the_claim_is_provable(made: Make) -> None:
    experiment = made(2)
    assert "provable differs" in draw(experiment, experiment.curves).axes[0].get_xlabel()
    assert draw(experiment, experiment.curves[:1]).axes[0].get_xlabel() == "total ε, claimed and provable"


def test_a_grid_of_theta_is_drawn_over_theta(made: Make) -> None:
    experiment = of_theta(made(3))
    figure = draw(experiment, experiment.curves)
    (axes,) = figure.axes
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
    assert "ε at θ = 20.0: 20.0 for pge; 40.0 for isgd; 60.0 for psgd" in " ".join(
        "".join(texts(figure)).split()
    )


def test_epsilon_of_an_epsilon_axis_names_its_delta(made: Make) -> None:
    experiment = replace(of_theta(made(3)), axis="epsilon")
    figure = draw(experiment, experiment.curves)
    assert figure.axes[0].get_xlabel().startswith("total ε")
    assert figure.axes[0].get_xlim()[1] > 60  # the third curve's grid ends at 3·20
    assert "(ε, δ) with δ = 1e-06: pge; isgd." in "".join(texts(figure)).replace("\n", " ")


def test_twins_are_dashed_and_references_dotted_and_both_explained(made: Make) -> None:
    experiment = of_theta(made(2))
    figure = draw(experiment, experiment.curves)
    level = [line for line in figure.axes[0].lines if len(set(ys(line))) == 1 and len(xs(line)) == 2]
    dashed = [line for line in level if line.get_linewidth() == 0.8]
    colours = [line.get_color() for line in figure.axes[0].lines if line.get_markersize() == MARKER_SIZE]
    twins = [curve.twin["rmse"].mean() for curve in experiment.curves if curve.twin is not None]
    assert [line.get_color() for line in dashed] == colours
    assert [ys(line)[0] for line in dashed] == twins
    assert {line.get_linestyle() for line in dashed} == {"--"}
    best = replace(experiment.curves[0], twin=twin_of(np.full(10, 0.7)))
    assert draw(experiment, [best]).axes[0].get_ylim()[0] < 0.7
    words = texts(figure)
    assert {"Cinematch probe 0.947", "Cinematch quiz 0.951"} <= set(words)
    assert {ys(line)[0] for line in level} >= {0.9474, 0.9514}
    notes = " ".join(words).replace("\n", " ")
    assert "Circles: crossings of IA, GE, Cinematch probe and Cinematch quiz." in notes
    assert "Dotted: printed errors, not measured." in notes
    assert "Dashed and level: the algorithm of that colour without noise." in notes
    plain = " ".join(texts(draw(made(2), made(2).curves)))
    assert "Circles: crossings of IA and GE." in plain
    assert "Dotted" not in plain
    assert "Dashed" not in plain


def test_curves_are_chosen_by_neighbours_and_mode(made: Make) -> None:
    experiment = made(2)
    curves = (experiment.curves[0], replace(experiment.curves[1], neighbours="unbounded", mode="corrected"))
    mixed = replace(experiment, curves=curves)
    only = replace(experiment, curves=curves[:1])
    assert rmse_curves_bytes(mixed, dpi=40, neighbours="bounded") == rmse_curves_bytes(only, dpi=40)
    assert rmse_curves_bytes(mixed, dpi=40, mode="published") == rmse_curves_bytes(only, dpi=40)
    both = replace(experiment, curves=(curves[0], replace(curves[1], neighbours="bounded")))
    assert rmse_curves_bytes(both, dpi=40) != rmse_curves_bytes(only, dpi=40)


def test_no_figure_mixes_what_is_protected(made: Make) -> None:
    experiment = made(2)
    first, second = experiment.curves
    for other in (replace(second, neighbours="unbounded"), replace(second, protects=Protection.PERSONALISED)):
        with pytest.raises(DpmfError, match="one figure cannot show several guarantees"):
            rmse_curves_bytes(replace(experiment, curves=(first, other)))


def test_an_algorithm_keeps_its_colour_in_both_modes_and_changes_its_marker(made: Make) -> None:
    experiment = made(2)
    corrected = [replace(curve, mode="corrected", label=f"{curve.label} c") for curve in experiment.curves]
    figure = draw(experiment, [*experiment.curves, *corrected])
    lines = [line for line in figure.axes[0].lines if line.get_markersize() == MARKER_SIZE]
    assert {line.get_linestyle() for line in lines} == {"-"}
    assert len({line.get_marker() for line in lines}) == 4
    colours = [line.get_color() for line in lines]
    assert colours[:2] == colours[2:]
    assert colours[0] != colours[1]


def test_odd_experiments_are_drawn(made: Make) -> None:
    experiment = made(1)
    (curve,) = experiment.curves
    one_epsilon = replace(
        curve,
        epsilons=curve.epsilons[:1],
        rmse=curve.rmse[:, :, :1],
        claimed=curve.claimed[:1],
        provable=curve.provable[:1],
    )
    rmse = curve.rmse.copy()
    rmse[0, 0, :3] = np.inf
    diverged = replace(curve, label="diverged", rmse=rmse)
    many = tuple(replace(curve, label=f"pge{index}") for index in range(20))
    for odd in (
        replace(experiment, curves=(one_epsilon,)),
        replace(experiment, curves=(diverged,)),
        replace(experiment, curves=many),
        replace(experiment, baselines=()),
    ):
        assert rmse_curves_bytes(odd, dpi=40).startswith(b"\x89PNG")


def test_a_curve_that_ends_above_the_axes_points_there(made: Make) -> None:
    experiment = made(2)
    useless = replace(experiment.curves[0], rmse=experiment.curves[0].rmse + 5)
    words = texts(draw(experiment, [useless, experiment.curves[1]]))
    assert {"pge ↑", "isgd"} <= set(words)


def test_what_cannot_be_drawn_is_an_error_that_says_so(made: Make) -> None:
    with pytest.raises(DpmfError, match='did you mean "png"'):
        rmse_curves_bytes(made(1), "pgn")
    with pytest.raises(DpmfError, match="no complete curve"):
        rmse_curves_bytes(made(1, incomplete="pge"))
    with pytest.raises(DpmfError, match="no complete curve"):
        rmse_curves_bytes(made(1), neighbours="user")


def test_a_figure_of_the_local_model_cuts_no_curve(made: Make) -> None:
    experiment = made(2)
    high = replace(experiment.curves[0], rmse=experiment.curves[0].rmse * 1.7)
    assert "Cut at the top" in "".join(texts(draw(experiment, [high])))
    local = replace(high, neighbours="local")
    assert "Cut at the top" not in "".join(texts(draw(experiment, [local])))


def test_the_factorisation_by_sgd_is_named_as_such(made: Make) -> None:
    experiment = made(1)
    clean = replace(experiment.baselines[-1], algorithm="mf_sgd", label="Clean MF (SGD)")
    words = texts(draw(replace(experiment, baselines=(clean,)), experiment.curves))
    assert "Clean MF (SGD) 0.860" in words
