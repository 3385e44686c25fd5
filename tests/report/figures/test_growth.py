"""Growth: losses paired with twins, as CSV and as a figure."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment, Growth, Stage
from dpmf_cli.evaluation.folds import Order, Portion
from dpmf_cli.report.figures.growth import draw, growth_bytes, growth_lines
from dpmf_cli.report.figures.growth_csv import COLUMNS, growth_csv, loss_of
from dpmf_cli.report.figures.style import MARKER_SIZE
from tests.evaluation.made_curves import twin_of
from tests.report.conftest import of_theta
from tests.report.figures.lines import xs, ys

Make = Callable[..., Experiment]
SHARES = (0.2, 0.5, 1.0)


def grown(experiment: Experiment, order: Order = "timestamp", *, at: int = 4) -> Experiment:
    """`experiment` with growth: the smaller the portion, the larger the loss; one point of the grid."""
    whole = of_theta(experiment)
    stages = []
    for share in SHARES:
        curves = tuple(
            replace(
                curve,
                epsilons=curve.epsilons[at : at + 1],
                thetas=None if curve.thetas is None else curve.thetas[at : at + 1],
                claimed=curve.claimed[at : at + 1],
                provable=curve.provable[at : at + 1],
                rmse=curve.rmse[:, :, at : at + 1] + 0.1 / share,
            )
            for curve in whole.curves
        )
        days = 100 * share if order == "timestamp" else None
        stages.append(Stage(Portion(share, int(1000 * share), 30, days), curves, whole.baselines))
    return replace(whole, curves=stages[-1].curves, growth=Growth(order, tuple(stages)))


def read(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_loss_is_paired_by_fold(made: Make) -> None:
    (curve,) = of_theta(made(1)).curves
    levels = np.linspace(0.8, 1.2, 10)
    paired = replace(curve, twin=twin_of(levels), rmse=levels[:, None, None] + np.full((10, 5, 16), 0.1))
    loss = loss_of(made(1), paired)
    for figure in (loss.mean, loss.low, loss.high):
        np.testing.assert_allclose(figure, 0.1)
    np.testing.assert_allclose(loss.sd, 0.0, atol=1e-12)


def test_a_loss_that_is_not_known_is_no_number(made: Make) -> None:
    (curve,) = of_theta(made(1)).curves
    for unknown in (replace(curve, twin=None), replace(curve, missing=1)):
        assert np.isnan(loss_of(made(1), unknown).mean).all()
    diverged = curve.rmse.copy()
    diverged[2, 1, 3] = np.inf
    loss = loss_of(made(1), replace(curve, rmse=diverged))
    assert np.flatnonzero(np.isnan(loss.mean)).tolist() == [3]


def test_a_row_for_every_portion_curve_and_baseline(made: Make) -> None:
    experiment = grown(made(2))
    rows = read(growth_csv(experiment))
    assert tuple(rows[0]) == COLUMNS
    assert [row["label"] for row in rows] == ["pge", "isgd", "ga", "ia", "ge", "als"] * 3
    assert [float(row["portion"]) for row in rows[::6]] == list(SHARES)
    assert [(row["ratings"], row["users"], row["days"]) for row in rows[::6]] == [
        ("200", "30", "20.0"),
        ("500", "30", "50.0"),
        ("1000", "30", "100.0"),
    ]
    isgd = rows[1]
    stages = experiment.growth.stages if experiment.growth else ()
    curve = stages[0].curves[1]
    assert curve.thetas is not None
    assert curve.twin is not None
    assert (float(isgd["epsilon"]), float(isgd["theta"])) == (curve.epsilons[0], curve.thetas[0])
    loss = curve.rmse[:, :, 0] - curve.twin["rmse"][:, :, 0]
    assert float(isgd["rmse"]) == curve.rmse.mean()
    assert float(isgd["twin_rmse"]) == curve.twin["rmse"].mean()
    assert float(isgd["loss"]) == pytest.approx(loss.mean())
    assert float(isgd["loss_sd"]) == pytest.approx(loss.std(ddof=1))
    assert float(isgd["loss_low"]) < loss.mean() < float(isgd["loss_high"])
    baseline = rows[2]
    assert (baseline["epsilon"], baseline["theta"], baseline["twin_rmse"], baseline["loss"]) == (
        "inf",
        "",
        "",
        "",
    )
    random = read(growth_csv(grown(made(1), "random")))
    assert {row["days"] for row in random} == {""}


def test_over_time_the_ratings_have_the_scale_on_the_right(made: Make) -> None:
    figure = draw(grown(made(3)))
    axes, right = figure.axes
    assert axes.get_xlabel() == "days since the first rating"
    lines = [line for line in axes.lines if line.get_markersize() == MARKER_SIZE]
    assert [xs(line) for line in lines] == [[20, 50, 100]] * 3
    for line in lines:
        assert all(before > after for before, after in pairwise(ys(line)))
    (ratings,) = right.lines
    assert ys(ratings) == [200, 500, 1000]
    assert "ratings" in right.get_ylabel()


def test_in_a_random_order_the_ratings_are_the_axis(made: Make) -> None:
    figure = draw(grown(made(2), "random"))
    (axes,) = figure.axes
    assert axes.get_xlabel() == "ratings"
    assert [xs(line) for line in axes.lines if line.get_markersize() == MARKER_SIZE] == [[200, 500, 1000]] * 2


@pytest.mark.parametrize("order", ["timestamp", "random"])
@pytest.mark.parametrize("label", ["pge", "x" * 30])
def test_every_line_is_named_in_the_order_of_their_ends_beside_the_axes(
    made: Make, order: Order, label: str
) -> None:
    experiment = grown(made(4), order)
    stages = experiment.growth.stages if experiment.growth else ()
    named = tuple(
        replace(stage, curves=(replace(stage.curves[0], label=label), *stage.curves[1:])) for stage in stages
    )
    experiment = replace(experiment, curves=named[-1].curves, growth=Growth(order, named))
    figure = draw(experiment)
    figure.canvas.draw()
    (legend,) = figure.legends
    ends = {line.label: line.loss[-1] for line in growth_lines(experiment)}
    words = [text.get_text() for text in legend.get_texts()]
    assert words == sorted(ends, key=lambda name: -ends[name])
    assert legend.get_window_extent().x1 <= figure.bbox.x1
    taken = [figure.axes[0].get_window_extent(), figure.axes[-1].yaxis.get_tightbbox()]
    assert max(box.x1 for box in taken if box) <= legend.get_window_extent().x0 + 2


def test_several_points_of_a_grid_are_lines_of_their_own_and_name_it(made: Make) -> None:
    whole = of_theta(made(1))
    stages = tuple(Stage(Portion(share, 10, 5, None), whole.curves, ()) for share in SHARES)
    experiment = replace(whole, growth=Growth("random", stages))
    labels = [line.label for line in growth_lines(experiment)]
    assert len(labels) == 16
    assert labels[0] == "pge, θ = 0.1"
    assert growth_lines(replace(experiment, axis="epsilon"))[0].label == "pge, ε = 0.1"


def test_a_stage_that_is_incomplete_is_left_out_of_its_line(made: Make) -> None:
    experiment = grown(made(1))
    stages = experiment.growth.stages if experiment.growth else ()
    waiting = replace(stages[1], curves=(replace(stages[1].curves[0], missing=1),))
    (line,) = growth_lines(replace(experiment, growth=Growth("timestamp", (stages[0], waiting, stages[2]))))
    assert line.stages.tolist() == [0, 2]
    assert growth_lines(made(2)) == []


@pytest.mark.parametrize(("form", "head"), [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_equal_results_give_equal_bytes(made: Make, form: str, head: bytes) -> None:
    drawn = growth_bytes(grown(made(2)), form)
    assert drawn.startswith(head)
    assert growth_bytes(grown(made(2)), form) == drawn
