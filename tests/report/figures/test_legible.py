"""Figures of very many curves show those with the lowest RMSE, and say how many there are."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dpmf_cli.evaluation.curves import Experiment, Growth, Measured, Stage
from dpmf_cli.evaluation.folds import Portion
from dpmf_cli.evaluation.ranking import standings
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.figures import combined, legible, rmse_curves
from dpmf_cli.report.figures.legible import MOST_LINES
from dpmf_cli.report.figures.which import drawings
from dpmf_cli.report.html.charts import charts_of

Make = Callable[..., Experiment]


def many(experiment: Experiment, count: int = MOST_LINES + 7) -> Experiment:
    """The experiment with that many copies of its first curve; the first of them is the worst, the last the best."""
    (curve, *_) = experiment.curves
    copies = (
        replace(curve, label=f"curve {rank}", rmse=curve.rmse + 0.001 * (count - rank))
        for rank in range(count)
    )
    return replace(experiment, curves=tuple(copies))


def labels(measured: tuple[Measured, ...]) -> list[str]:
    return [each.label for each in measured]


def test_as_many_as_there_is_room_for_stay_as_they_are(made: Make) -> None:
    experiment = many(made(1), MOST_LINES)
    assert legible.legible(experiment) is experiment


def test_of_more_curves_those_with_the_lowest_rmse_are_left_in_their_order(made: Make) -> None:
    shown = legible.legible(many(made(1)))
    assert labels(shown.curves) == [f"curve {rank}" for rank in range(7, MOST_LINES + 7)]
    assert shown.title == "MovieLens 1M, 50 of 57 curves (lowest RMSE)"
    assert labels(shown.baselines) == labels(made(1).baselines)


def test_what_is_incomplete_or_diverged_makes_room_for_what_is_not(made: Make) -> None:
    experiment = many(made(1))
    (*others, best) = experiment.curves
    missing = replace(best, missing=1)
    assert best.label not in labels(legible.legible(replace(experiment, curves=(*others, missing))).curves)
    diverged = replace(best, rmse=np.full_like(best.rmse, np.inf))
    assert best.label not in labels(legible.legible(replace(experiment, curves=(*others, diverged))).curves)
    partly = replace(best, rmse=np.where(np.arange(16) == 0, np.inf, best.rmse))
    assert best.label in labels(legible.legible(replace(experiment, curves=(*others, partly))).curves)


def test_baselines_of_crossings_stay_before_better_ones(made: Make) -> None:
    (_, ia, _, als) = made(1).baselines
    better = tuple(
        replace(als, label=f"als {rank}", rmse=als.rmse - 0.01 * rank) for rank in range(MOST_LINES)
    )
    shown = legible.legible(replace(made(1), baselines=(*better, ia)))
    assert labels(shown.baselines) == [*(f"als {rank}" for rank in range(1, MOST_LINES)), "ia"]
    assert shown.title == "MovieLens 1M, 50 of 51 baselines (lowest RMSE)"


def test_a_sweep_is_one_line_however_many_values_it_has(made: Make) -> None:
    (curve,) = made(1).curves

    def sweep(line: str, values: int, shift: float = 0.0) -> tuple[Measured, ...]:
        return tuple(
            replace(
                curve, label=f"{line}, k {k}", line=line, swept=("k", float(k)), rmse=curve.rmse + shift + k
            )
            for k in range(values)
        )

    long = replace(made(1), curves=(*sweep("one", 3 * MOST_LINES), *many(made(1), MOST_LINES).curves))
    assert legible.legible(long) is long
    lines = [each for rank in range(MOST_LINES + 2) for each in sweep(f"line {rank}", 2, -0.01 * rank)]
    shown = legible.legible(replace(made(1), curves=tuple(lines)))
    assert labels(shown.curves) == labels(tuple(lines[4:]))
    assert shown.title == "MovieLens 1M, 50 of 52 curves (lowest RMSE)"


def test_growth_keeps_the_same_curves_at_every_portion(made: Make) -> None:
    experiment = many(made(1))
    earlier = tuple(replace(curve, rmse=-curve.rmse) for curve in experiment.curves)
    stages = tuple(
        Stage(Portion(share, 9, 9, None), curves, experiment.baselines)
        for share, curves in ((0.5, earlier), (1.0, experiment.curves))
    )
    shown = legible.legible(replace(experiment, growth=Growth("random", stages)))
    assert shown.growth is not None
    assert [labels(stage.curves) for stage in shown.growth.stages] == [labels(shown.curves)] * 2


def test_figures_and_charts_show_these_alone_and_say_so(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Experiment] = []
    monkeypatch.setattr(
        "dpmf_cli.report.figures.which.rmse_curves_bytes", lambda shown, form: drawn.append(shown)
    )
    experiment = many(made(1))
    drawings(experiment)["curves"]("png")
    assert labels(drawn[0].curves) == labels(experiment.curves[7:])
    (chart,) = charts_of(experiment)
    assert [line.name for line in chart.lines] == labels(experiment.curves[7:])
    assert chart.notes[0] == "Shown: 50 of 57 curves (lowest RMSE); all are in curves.csv."
    assert "Shown" not in "".join(charts_of(made(2))[0].notes)


def test_fifty_labels_do_not_overlap(made: Make) -> None:
    experiment = many(made(1), MOST_LINES)
    figure = rmse_curves.draw(experiment, experiment.curves)
    figure.canvas.draw()
    boxes = sorted((text.get_window_extent() for text in figure.axes[0].texts), key=lambda box: box.y0)
    assert len(boxes) == MOST_LINES + 4
    assert all(lower.y1 <= upper.y0 + 1.5 for lower, upper in pairwise(boxes))


def test_a_panel_of_the_combined_figure_too(made: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(legible, "MOST_LINES", 3)
    experiment = many(made(1), 5)
    curves = tuple(replace(curve, protects=Protection.VALUE) for curve in experiment.curves)
    found = standings(replace(experiment, curves=curves))
    (axes,) = combined.draw({("MovieLens 1M", found[0].guarantee): found}).axes
    names = {text.get_text().split(" ↑")[0] for text in axes.texts}
    assert {"curve 2, published", "curve 3, published", "curve 4, published"} <= names
    assert not names & {"curve 0, published", "curve 1, published"}
    assert axes.get_title(loc="left").endswith(", 3 of 5 curves (lowest RMSE)")
