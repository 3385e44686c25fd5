"""Figures of several experiments: one panel for each guarantee, each with its own axes; the frontier's envelope."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.ranking import Frontier, by_guarantee, standings
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.figures.drawings import End
from dpmf_cli.report.figures.panels import combined_figure, draw_combined, frontier_figure, frontier_panel
from dpmf_cli.report.tables.ranked import found_in
from tests.report.conftest import of_theta
from tests.report.figures.made import xs, ys
from tests.report.tables.test_ranked import provable

Make = Callable[..., Experiment]
KINDS = (Protection.USER, Protection.VALUE, Protection.VALUE, Protection.LOCAL)


def mixed(made: Make, **options: object) -> Experiment:
    experiment = made(4, **options)
    curves = (replace(each, protects=kind) for each, kind in zip(experiment.curves, KINDS, strict=True))
    return replace(experiment, curves=tuple(curves))


def panels(*experiments: Experiment) -> Figure:
    return draw_combined(by_guarantee([each for experiment in experiments for each in standings(experiment)]))


def written(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def curves_in(axes: Axes) -> int:
    return sum(len(xs(line)) == 16 for line in axes.lines)


def test_a_panel_for_each_kind_says_what_its_epsilon_is(made: Make) -> None:
    figure = panels(mixed(made))
    kinds = [f"{kind}, towards everybody" for kind in ("rating value", "user", "local")]
    assert [axes.get_title("left") for axes in figure.axes] == [f"MovieLens 1M: {kind}" for kind in kinds]
    assert [axes.get_xlabel() for axes in figure.axes] == [f"ε, {kind}; as claimed" for kind in kinds]
    assert [curves_in(axes) for axes in figure.axes] == [2, 1, 1]
    assert "not comparable" in figure.texts[0].get_text()


def test_what_protects_from_the_other_users_alone_has_a_panel_of_its_own(made: Make) -> None:
    experiment = mixed(made)
    curves = (*experiment.curves[:2], replace(experiment.curves[2], joint=True), experiment.curves[3])
    figure = panels(replace(experiment, curves=curves))
    assert [axes.get_title("left") for axes in figure.axes][:2] == [
        "MovieLens 1M: rating value, towards everybody",
        "MovieLens 1M: rating value, towards other users (joint DP)",
    ]
    assert [curves_in(axes) for axes in figure.axes] == [1, 1, 1, 1]
    assert "psgd‡, published ∞" in written(figure.axes[1])


def test_panels_lie_side_by_side_and_share_nothing(made: Make) -> None:
    experiment = mixed(made)
    longest = replace(experiment.curves[0], label="x", protects=Protection.PERSONALISED, joint=True)
    experiment = replace(experiment, curves=(*experiment.curves, longest))
    figure = panels(experiment, replace(experiment, title="MovieLens 100K", name="other"))
    boxes = [box for axes in figure.axes if (box := axes.get_tightbbox())]
    assert len(boxes) == len(figure.axes) == 8
    assert not any(a.overlaps(b) for at, a in enumerate(boxes) for b in boxes[:at])
    whole = figure.bbox
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 and box.y1 <= whole.y1 for box in boxes)
    assert figure.texts[0].get_window_extent().y1 <= min(box.y0 for box in boxes)
    for axes in figure.axes:
        assert len(axes.get_shared_x_axes().get_siblings(axes)) == 1
        assert len(axes.get_shared_y_axes().get_siblings(axes)) == 1


def test_levels_and_curves_are_labelled_with_what_can_be_proved(made: Make) -> None:
    value, user, _ = panels(mixed(made)).axes
    assert {"psgd, published ∞", "isgd, published ∞"} <= set(written(value))
    assert "pge, published" in written(user)
    for axes in (value, user):
        assert {text.split()[0] for text in written(axes)} >= {"IA", "GE"}
        assert not any(text.startswith(("GA", "Clean")) for text in written(axes))


def test_an_algorithm_keeps_its_colour_in_both_modes_and_has_a_marker_for_each(made: Make) -> None:
    experiment = mixed(made)
    twice = [
        replace(experiment.curves[1], label=f"isgd, bounded, {mode}", mode=mode)
        for mode in ("published", "corrected")
    ]
    (axes,) = panels(replace(experiment, curves=tuple(twice))).axes
    published, corrected = (line for line in axes.lines if len(xs(line)) == 16)
    assert published.get_color() == corrected.get_color()
    assert published.get_marker() != corrected.get_marker()


def test_an_experiment_over_theta_is_drawn_over_epsilon(made: Make) -> None:
    experiment = of_theta(mixed(made))
    value = panels(experiment).axes[0]
    drawn = [xs(line) for line in value.lines if len(xs(line)) == 16]
    assert drawn[0] == pytest.approx(experiment.curves[1].epsilons)
    assert drawn[0] != pytest.approx(experiment.curves[1].thetas)


def drawn(frontier: Frontier) -> tuple[Axes, list[End]]:
    axes = Figure().add_subplot()
    return axes, list(frontier_panel(frontier).draw(axes))


def test_the_envelope_is_drawn_over_provable_epsilon_and_each_stretch_named(made: Make) -> None:
    (pure, _) = found_in([provable(made)])
    axes, ends = drawn(pure)
    whole, *stretches = [line for line in axes.lines if line.get_linewidth() > 2]
    assert xs(whole) == [lead.epsilon for lead in pure.leads]
    assert ys(whole) == [lead.first.rmse for lead in pure.leads]
    assert sum(len(xs(line)) for line in stretches) == len(pure.leads)
    assert len({(line.get_color(), line.get_marker()) for line in stretches}) == len(stretches) == 2
    legend = axes.get_legend()
    assert legend is not None
    named = [text.get_text() for text in legend.get_texts()]
    assert named[0].startswith("0.100 to ")
    assert [name.rpartition(": ")[2] for name in named] == ["pge", "isgd"]
    assert {end.text.split()[0] for end in ends} == {"GA", "IA", "GE", "Clean"}
    faint = [line for line in axes.lines if line.get_linewidth() == 0.8]
    assert len(faint) == len(pure.members)


def test_what_is_provable_is_the_axis(made: Make) -> None:
    experiment = provable(made)
    unknown = np.where(np.arange(16) < 3, np.inf, 3 * experiment.curves[0].epsilons)
    (frontier,) = found_in([replace(experiment, curves=(replace(experiment.curves[0], provable=unknown),))])
    axes, _ = drawn(frontier)
    faint = next(line for line in axes.lines if line.get_linewidth() == 0.8)
    assert xs(faint) == unknown[3:].tolist()


def test_the_same_results_are_the_same_bytes_in_every_form(made: Make) -> None:
    one, two = provable(made), replace(provable(made), title="MovieLens 100K", name="other")
    for draw in (frontier_figure, combined_figure):
        assert draw([one, two], "svg") == draw([one, two], "svg")
        assert draw([one], "png").startswith(b"\x89PNG")


def test_nothing_to_draw_and_an_unknown_format_are_told(made: Make) -> None:
    with pytest.raises(DpmfError, match="no complete curve"):
        combined_figure([replace(mixed(made), curves=mixed(made, incomplete="isgd").curves[1:2])])
    with pytest.raises(DpmfError, match="no complete curve with a provable ε"):
        frontier_figure([replace(provable(made), curves=provable(made).curves[3:])])
    for draw in (frontier_figure, combined_figure):
        with pytest.raises(DpmfError, match='unknown figure format "pgf"'):
            draw([provable(made)], "pgf")
