"""Figures of several experiments: one panel for each guarantee, each with its own axes; the frontier's envelope."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.figures.drawings import combined_figure, draw_combined, frontier_figure
from tests.report.ranked import provable

Make = Callable[..., Experiment]
KINDS = (Protection.USER, Protection.VALUE, Protection.VALUE, Protection.LOCAL)


def mixed(made: Make, **options: object) -> Experiment:
    experiment = made(4, **options)
    curves = (replace(each, protects=kind) for each, kind in zip(experiment.curves, KINDS, strict=True))
    return replace(experiment, curves=tuple(curves))


def test_panels_lie_side_by_side_and_share_nothing(made: Make) -> None:
    experiment = mixed(made)
    longest = replace(experiment.curves[0], label="x", protects=Protection.PERSONALISED, joint=True)
    experiment = replace(experiment, curves=(*experiment.curves, longest))
    figure = draw_combined([experiment, replace(experiment, title="MovieLens 100K", name="other")])
    boxes = [box for axes in figure.axes if (box := axes.get_tightbbox())]
    assert len(boxes) == len(figure.axes) == 8
    assert not any(a.overlaps(b) for at, a in enumerate(boxes) for b in boxes[:at])
    whole = figure.bbox
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 and box.y1 <= whole.y1 for box in boxes)
    assert figure.texts[0].get_window_extent().y1 <= min(box.y0 for box in boxes)
    for axes in figure.axes:
        assert len(axes.get_shared_x_axes().get_siblings(axes)) == 1
        assert len(axes.get_shared_y_axes().get_siblings(axes)) == 1


def test_nothing_to_draw_is_told(made: Make) -> None:
    with pytest.raises(DpmfError, match="no complete curve"):
        combined_figure([replace(mixed(made), curves=mixed(made, incomplete="isgd").curves[1:2])])
    with pytest.raises(DpmfError, match="no complete curve with a provable ε"):
        frontier_figure([replace(provable(made), curves=provable(made).curves[3:])])
