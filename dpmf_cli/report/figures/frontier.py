"""The figure of frontiers: RMSE over provable ε, with a strong line for the envelope.

Each data set and guarantee has a panel.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from matplotlib.axes import Axes

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.ranking import Frontier, Lead, Standing
from dpmf_cli.privacy.protection import GUARANTEES
from dpmf_cli.report.figures.axes import scale_axes
from dpmf_cli.report.figures.combined import levels_of
from dpmf_cli.report.figures.labels import End
from dpmf_cli.report.figures.looks import looks
from dpmf_cli.report.figures.panel_grid import LABEL_SIZE, Panel, draw_grid
from dpmf_cli.report.figures.rmse_curves import draw_level
from dpmf_cli.report.figures.shown import is_drawable, level_names, level_of
from dpmf_cli.report.figures.style import COLOURS, MARKER_SIZE, MARKERS, check_form, drawing, file_of
from dpmf_cli.report.tables.columns import epsilon_cell
from dpmf_cli.report.tables.ranked import found_in, kind, short_marked

NOTES = (
    "Strong: at each ε the lowest mean RMSE of all methods with at most that provable ε, with its 95 % interval.",
    "Faint: all methods that keep the guarantee. ‡ joint DP; § (ε, δ)-DP. Panels have axes of their own:",
    "their ε are not comparable. A benchmark on public ratings: ties by `dpmf frontier`.",
)

_FAINT = "#C4C4C4"
_MOST_LABELS = 22
"""The height of a panel, in labels. The names of stretches are inside the panel."""


def frontier_figure(experiments: Sequence[Experiment], form: str = "png", *, dpi: int = 150) -> bytes:
    """Draws a column of panels for each data set and a row for each guarantee with its δ; as PNG, SVG or PDF.

    Raises `DpmfError` for an unknown format, and if no complete curve has a provable ε.
    """
    check_form(form)
    found = found_in(experiments)
    if not found:
        raise DpmfError("no complete curve with a provable ε to plot; finish the experiments with `dpmf run`")
    panels = {(each.title, each.guarantee): _panel(each) for each in found}
    rows = sorted(
        {each.guarantee for each in found},
        key=lambda guarantee: (GUARANTEES.index(guarantee.at_any_delta), guarantee.delta),
    )
    with drawing():
        return file_of(draw_grid(panels, rows, NOTES), form, dpi=dpi)


def _panel(frontier: Frontier) -> Panel:
    return Panel(
        f"{frontier.title}: {frontier.guarantee}",
        f"provable ε, {kind(frontier.guarantee.delta)}",
        _MOST_LABELS,
        partial(draw_frontier, frontier),
    )


def draw_frontier(frontier: Frontier, axes: Axes) -> list[End]:
    """Draws all members faintly, the envelope over them, and the levels of baselines; returns the levels' ends."""
    levels = [
        *levels_of(frontier.members),
        *_levels(frontier.members, "ga"),
        *_levels(frontier.members, "als"),
    ]
    curves = [_over_provable(each.curve) for each in frontier.members]
    scale_axes(axes, curves, [level_of(level) for _, level in levels], "epsilon")
    axes.set_xlim(axes.get_xlim()[0], min(axes.get_xlim()[1], 1.1 * frontier.leads[-1].epsilon))
    for curve in curves:
        mean = np.where(np.isfinite(curve.mean()), curve.mean(), np.nan)
        axes.plot(curve.epsilons, mean, color=_FAINT, linewidth=0.8, zorder=1)
    _draw_envelope(axes, frontier)
    return [draw_level(axes, level, level_names(experiment)) for experiment, level in levels]


def _draw_envelope(axes: Axes, frontier: Frontier) -> None:
    """Draws each stretch in its method's colour and marker.

    The legend lists the stretches from left to right, each with the ε at which it leads.
    """
    stretches = frontier.stretches
    labels = list(dict.fromkeys(standing.curve.label for standing, _ in stretches))
    look_of = dict(zip(labels, looks(labels), strict=True))
    top = axes.get_ylim()[1]
    axes.plot(*_points(frontier.leads), color="black", linewidth=2.4, zorder=2)
    for standing, leads in stretches:
        look = look_of[standing.curve.label]
        for lead in leads:
            if lead.low is not None and lead.high is not None and lead.first.rmse <= top:
                axes.vlines(
                    lead.epsilon, lead.low, lead.high, color=COLOURS[look.colour], linewidth=0.9, zorder=2
                )
        axes.plot(
            *_points(leads),
            color=COLOURS[look.colour],
            linewidth=2.4,
            marker=MARKERS[look.marker],
            markersize=1.4 * MARKER_SIZE,
            zorder=3,
            label=f"{_range(leads)}: {short_marked(leads[0].standing)}",
        )
    legend = axes.legend(
        loc="best", fontsize=LABEL_SIZE, framealpha=0.85, edgecolor="none", title="leads at ε"
    )
    legend.get_title().set_fontsize(LABEL_SIZE)


def _points(leads: Sequence[Lead]) -> tuple[list[float], list[float]]:
    return [lead.epsilon for lead in leads], [lead.first.rmse for lead in leads]


def _range(leads: Sequence[Lead]) -> str:
    first, last = (epsilon_cell(leads[at].epsilon) for at in (0, -1))
    return first if len(leads) == 1 else f"{first} to {last}"


def _levels(members: Sequence[Standing], key: str) -> list[tuple[Experiment, Measured]]:
    """Returns the baseline of that key, of the first experiment that has it."""
    found = [(each.experiment, each.experiment.baseline(key)) for each in members]
    return [(experiment, level) for experiment, level in found if level and is_drawable(level)][:1]


def _over_provable(curve: Measured) -> Measured:
    """Returns a curve over its provable ε, without the points that have none."""
    known = np.isfinite(curve.provable)
    provable = curve.provable[known]
    return replace(
        curve, epsilons=provable, claimed=provable, provable=provable, rmse=curve.rmse[:, :, known], twin=None
    )
