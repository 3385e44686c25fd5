"""The figure of frontiers: a panel for each guarantee with its δ, the envelope on top, its stretches named."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.report.figures.frontier import draw_frontier, frontier_figure
from dpmf_cli.report.tables.ranked import found_in
from tests.report.figures.lines import xs
from tests.report.tables.test_ranked import provable

Make = Callable[..., Experiment]


def test_the_envelope_is_drawn_over_provable_epsilon_and_each_stretch_named(made: Make) -> None:
    experiment = provable(made)
    (pure, _) = found_in([experiment])
    axes = Figure().add_subplot()
    ends = draw_frontier(pure, axes)
    strong = [line for line in axes.lines if line.get_linewidth() > 2]
    whole, *stretches = strong
    assert list(xs(whole)) == [lead.epsilon for lead in pure.leads]
    assert list(np.asarray(whole.get_ydata())) == [lead.first.rmse for lead in pure.leads]
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
    dear = replace(experiment.curves[0], provable=3 * experiment.curves[0].epsilons)
    (frontier,) = found_in([replace(experiment, curves=(dear,))])
    axes = Figure().add_subplot()
    draw_frontier(frontier, axes)
    faint = next(line for line in axes.lines if line.get_linewidth() == 0.8)
    assert list(xs(faint)) == list(dear.provable)


def test_the_same_results_are_the_same_bytes_in_every_form(made: Make) -> None:
    one, two = provable(made), replace(provable(made), title="MovieLens 100K", name="other")
    drawn = frontier_figure([one, two], "svg")
    assert drawn == frontier_figure([one, two], "svg")
    assert frontier_figure([one], "png").startswith(b"\x89PNG")


def test_nothing_that_is_provable_is_nothing_to_draw(made: Make) -> None:
    with pytest.raises(DpmfError, match="no complete curve with a provable ε"):
        frontier_figure([replace(provable(made), curves=provable(made).curves[3:])])
    with pytest.raises(DpmfError, match='unknown figure format "pgf"'):
        frontier_figure([provable(made)], "pgf")
