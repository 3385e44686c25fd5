"""The combined figure: RMSE over ε, a panel for each data set and each guarantee.

No two panels share an axis: an ε is one thing in one panel and another in the next, and so is what it costs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.crossings import crossing_targets
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.ranking import Standing, by_guarantee, standings
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee
from dpmf_cli.report.figures.axes import scale_axes
from dpmf_cli.report.figures.labels import End, label_ends, label_width
from dpmf_cli.report.figures.legible import least_loss, lowest
from dpmf_cli.report.figures.looks import looks
from dpmf_cli.report.figures.rmse_curves import draw_curve, draw_level
from dpmf_cli.report.figures.shown import is_drawable, level_names, level_of
from dpmf_cli.report.figures.style import GREY, check_form, drawing, file_of
from dpmf_cli.report.tables.cells import marks
from dpmf_cli.report.tables.combined import short_label

NOTES = (
    "Each panel has axes of its own: ε of different panels are statements about different things,",
    "and not comparable. A method has one colour, its modes a marker each. Circles: crossings with the levels.",
    "‡ joint DP; § (ε, δ)-DP; ∞ no ε can be proved; ↑ above the panel. Intervals: `dpmf combined`.",
)

# Inches, and points.
_WIDTH, _LEFT, _TOP, _BOTTOM, _NOTES = 6.2, 0.65, 0.35, 0.5, 0.6
_LEAST_HEIGHT, _LABEL_GAP, _LABEL_OFFSET = 2.2, 0.115, 0.2
_LABEL_SIZE, _NOTE_SIZE, _TITLE_SIZE = 6.5, 7.0, 9.0

Groups = Mapping[tuple[str, Guarantee], Sequence[Standing]]


def combined_figure(experiments: Sequence[Experiment], form: str = "png", *, dpi: int = 150) -> bytes:
    """A column of panels for each data set, a row for each guarantee; as PNG, SVG or PDF.

    Incomplete curves are not drawn. Raises `DpmfError` for an unknown format, and where there is nothing to draw.
    """
    check_form(form)
    found = [each for experiment in experiments for each in standings(experiment) if is_drawable(each.curve)]
    if not found:
        raise DpmfError("no complete curve to plot; finish the experiments with `dpmf run`")
    with drawing():
        return file_of(draw(by_guarantee(found)), form, dpi=dpi)


def draw(groups: Groups) -> Figure:
    """The panels of groups of complete curves, in whatever style is set: of a large group those with the lowest RMSE.

    A panel's title says what is left out.
    """
    sizes = {key: len(group) for key, group in groups.items()}
    groups = {key: lowest(group, lambda each: least_loss(each.curve)) for key, group in groups.items()}
    titles = list(dict.fromkeys(title for title, _ in groups))
    found = {guarantee for _, guarantee in groups}
    heights = {
        guarantee: max(_panel_height(groups.get((title, guarantee), ())) for title in titles)
        for guarantee in GUARANTEES
        if guarantee in found
    }
    width, height = _WIDTH * len(titles), sum(heights.values()) + _NOTES
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    figure.text(0.1 / width, 0.1 / height, "\n".join(NOTES), fontsize=_NOTE_SIZE, color=GREY, va="bottom")
    top = height
    for guarantee, tall in heights.items():
        top -= tall
        for column, title in enumerate(titles):
            if group := groups.get((title, guarantee)):
                axes = figure.add_axes((0.1, 0.1, 0.5, 0.5))
                ends = _draw_panel(axes, group)
                of_all, part = sizes[title, guarantee], len(group)
                cut = f", {part} of {of_all:,} curves (lowest RMSE)" if part < of_all else ""
                axes.set_title(
                    f"{title}: {guarantee}{cut}", loc="left", parse_math=False, fontsize=_TITLE_SIZE
                )
                axes.set_xlabel(f"ε, {guarantee}; as claimed")
                _place(figure, axes, ends, left=_WIDTH * column, bottom=top, height=tall)
    return figure


def _panel_height(group: Sequence[Standing]) -> float:
    return max(_LEAST_HEIGHT, _LABEL_GAP * (len(group) + len(_levels(group)))) + _TOP + _BOTTOM


def _levels(group: Sequence[Standing]) -> list[tuple[Experiment, Measured]]:
    """The baselines that crossings are with, those of several experiments once where they are the same."""
    found: dict[tuple[str, float], tuple[Experiment, Measured]] = {}
    for each in group:
        for target in crossing_targets(each.experiment):
            if isinstance(target, Measured) and is_drawable(target):
                found.setdefault((target.label, level_of(target)), (each.experiment, target))
    return list(found.values())


def _draw_panel(axes: Axes, group: Sequence[Standing]) -> list[End]:
    """The levels of the baselines, and every curve of the group; their ends, to be labelled."""
    levels = _levels(group)
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


def _place(
    figure: Figure, axes: Axes, ends: Sequence[End], *, left: float, bottom: float, height: float
) -> None:
    """Put a panel where it belongs, in inches, and its labels beside it."""
    whole_width, whole_height = figure.get_size_inches()
    inner = height - _TOP - _BOTTOM
    shrunk = _LABEL_SIZE / 9.0  # label_width measures at the style's own size
    width = _WIDTH - _LEFT - _LABEL_OFFSET - shrunk * label_width(figure, ends) - 0.1
    axes.set_position(
        (
            (left + _LEFT) / whole_width,
            (bottom + _BOTTOM) / whole_height,
            width / whole_width,
            inner / whole_height,
        )
    )
    before = len(axes.texts)
    label_ends(axes, ends, gap=_LABEL_GAP / inner, offset=_LABEL_OFFSET / width)
    for text in axes.texts[before:]:
        text.set_fontsize(_LABEL_SIZE)
