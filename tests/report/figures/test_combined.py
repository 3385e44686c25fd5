"""The combined figure: one panel for each thing protected and from whom, each with its own axes."""

from collections.abc import Callable
from dataclasses import replace

import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.ranking import by_guarantee, standings
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.report.figures.combined import combined_figure, draw
from tests.report.conftest import of_theta
from tests.report.figures.lines import xs

Make = Callable[..., Experiment]
KINDS = (Protection.USER, Protection.VALUE, Protection.VALUE, Protection.LOCAL)


def mixed(made: Make, **options: object) -> Experiment:
    experiment = made(4, **options)
    curves = (replace(each, protects=kind) for each, kind in zip(experiment.curves, KINDS, strict=True))
    return replace(experiment, curves=tuple(curves))


def panels(*experiments: Experiment) -> Figure:
    return draw(by_guarantee([each for experiment in experiments for each in standings(experiment)]))


def written(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def curves_in(axes: Axes) -> int:
    return sum(len(xs(line)) == 16 for line in axes.lines)


def test_a_panel_for_each_kind_says_what_its_epsilon_is(made: Make) -> None:
    figure = panels(mixed(made))
    assert [axes.get_title("left") for axes in figure.axes] == [
        "MovieLens 1M: rating value, towards everybody",
        "MovieLens 1M: user, towards everybody",
        "MovieLens 1M: local, towards everybody",
    ]
    assert [axes.get_xlabel() for axes in figure.axes] == [
        "ε, rating value, towards everybody; as claimed",
        "ε, user, towards everybody; as claimed",
        "ε, local, towards everybody; as claimed",
    ]
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


def test_no_two_panels_share_an_axis(made: Make) -> None:
    for axes in panels(mixed(made)).axes:
        assert len(axes.get_shared_x_axes().get_siblings(axes)) == 1
        assert len(axes.get_shared_y_axes().get_siblings(axes)) == 1


def test_panels_lie_side_by_side_and_do_not_overlap(made: Make) -> None:
    experiment = mixed(made)
    longest = replace(experiment.curves[0], label="x", protects=Protection.PERSONALISED, joint=True)
    experiment = replace(experiment, curves=(*experiment.curves, longest))
    figure = panels(experiment, replace(experiment, title="MovieLens 100K", name="other"))
    assert len(figure.axes) == 8
    boxes = [box for axes in figure.axes if (box := axes.get_tightbbox())]
    assert len(boxes) == 8
    assert not any(a.overlaps(b) for at, a in enumerate(boxes) for b in boxes[:at])
    whole = figure.bbox
    assert all(whole.x0 <= box.x0 and box.x1 <= whole.x1 and box.y1 <= whole.y1 for box in boxes)
    assert figure.texts[0].get_window_extent().y1 <= min(box.y0 for box in boxes)


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
    assert {published.get_linestyle(), corrected.get_linestyle()} == {"-"}
    assert published.get_marker() != corrected.get_marker()


def test_an_experiment_over_theta_is_drawn_over_epsilon(made: Make) -> None:
    experiment = of_theta(mixed(made))
    value = panels(experiment).axes[0]
    drawn = [xs(line) for line in value.lines if len(xs(line)) == 16]
    assert drawn[0] == pytest.approx(experiment.curves[1].epsilons)
    assert drawn[0] != pytest.approx(experiment.curves[1].thetas)


def test_what_is_incomplete_is_not_drawn(made: Make) -> None:
    assert len(panels_of_bytes(mixed(made))) > 0
    with pytest.raises(DpmfError, match="no complete curve"):
        combined_figure([replace(mixed(made), curves=mixed(made, incomplete="isgd").curves[1:2])])


def panels_of_bytes(experiment: Experiment) -> bytes:
    data = combined_figure([experiment], "svg")
    assert data == combined_figure([experiment], "svg")
    return data


def test_an_unknown_format_is_told(made: Make) -> None:
    with pytest.raises(DpmfError, match='unknown figure format "pgf"'):
        combined_figure([mixed(made)], "pgf")
