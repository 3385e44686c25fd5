"""The combined figure: RMSE over ε, a panel for each data set and each guarantee."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.crossings import crossing_targets
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.ranking import Standing, by_guarantee, standings
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee
from dpmf_cli.report.figures.axes import scale_axes
from dpmf_cli.report.figures.labels import End
from dpmf_cli.report.figures.legible import least_loss, lowest
from dpmf_cli.report.figures.looks import looks
from dpmf_cli.report.figures.panel_grid import Panel, draw_grid
from dpmf_cli.report.figures.rmse_curves import draw_curve, draw_level
from dpmf_cli.report.figures.shown import is_drawable, level_names, level_of
from dpmf_cli.report.figures.style import check_form, drawing, file_of
from dpmf_cli.report.tables.columns import marks
from dpmf_cli.report.tables.ranked import short_label

NOTES = (
    "Each panel has axes of its own: ε of different panels are statements about different things,",
    "and not comparable. A method has one colour, and each mode its marker. Circles: crossings with the levels.",
    "‡ joint DP; § (ε, δ)-DP; ∞ no ε can be proved; ↑ above the panel. Intervals: `dpmf combined`.",
)

Groups = Mapping[tuple[str, Guarantee], Sequence[Standing]]


def combined_figure(experiments: Sequence[Experiment], form: str = "png", *, dpi: int = 150) -> bytes:
    """Draws a column of panels for each data set and a row for each guarantee; as PNG, SVG or PDF.

    Incomplete curves are not drawn. Raises `DpmfError` for an unknown format, and if there is nothing to draw.
    """
    check_form(form)
    found = [each for experiment in experiments for each in standings(experiment) if is_drawable(each.curve)]
    if not found:
        raise DpmfError("no complete curve to plot; finish the experiments with `dpmf run`")
    with drawing():
        return file_of(draw(by_guarantee(found)), form, dpi=dpi)


def draw(groups: Groups) -> Figure:
    """Draws the panels of groups of complete curves, in whatever style is set.

    Of a large group it draws the curves with the lowest RMSE, and the panel's title says how many.
    """
    return draw_grid({key: _panel(*key, group) for key, group in groups.items()}, GUARANTEES, NOTES)


def _panel(title: str, guarantee: Guarantee, whole: Sequence[Standing]) -> Panel:
    group = lowest(whole, lambda each: least_loss(each.curve))
    cut = f", {len(group)} of {len(whole):,} curves (lowest RMSE)" if len(group) < len(whole) else ""
    return Panel(
        f"{title}: {guarantee}{cut}",
        f"ε, {guarantee}; as claimed",
        len(group) + len(levels_of(group)),
        partial(_draw_panel, group),
    )


def levels_of(group: Sequence[Standing]) -> list[tuple[Experiment, Measured]]:
    """Returns the baselines that crossings are with. A baseline that several experiments share comes once."""
    found: dict[tuple[str, float], tuple[Experiment, Measured]] = {}
    for each in group:
        for target in crossing_targets(each.experiment):
            if isinstance(target, Measured) and is_drawable(target):
                found.setdefault((target.label, level_of(target)), (each.experiment, target))
    return list(found.values())


def _draw_panel(group: Sequence[Standing], axes: Axes) -> list[End]:
    """Draws the levels of the baselines and every curve of the group; returns their ends, to be labelled."""
    levels = levels_of(group)
    scale_axes(axes, [each.curve for each in group], [level_of(level) for _, level in levels], "epsilon")
    ends = [draw_level(axes, level, level_names(experiment)) for experiment, level in levels]
    # An algorithm keeps its colour in both modes.
    for each, look in zip(group, looks([short_label(each) for each in group]), strict=True):
        over_epsilon = replace(each.experiment, axis="epsilon")
        end = draw_curve(axes, over_epsilon, each.curve, look, bands=False)
        above = " ↑" if end.text.endswith("↑") else ""
        ends.append(End(f"{_name(each)}{above}", end.colour, end.x, end.y))
    return ends


def _name(standing: Standing) -> str:
    curve = standing.curve
    unproved = "" if standing.provable else " ∞"
    published = f", {curve.mode}" if curve.mode == Mode.PUBLISHED else ""
    return f"{short_label(standing)}{marks(joint=curve.joint, delta=curve.delta)}{published}{unproved}"
