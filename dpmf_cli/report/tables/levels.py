"""The table of RMSE, or another metric, at one ε. Formats are those of `formats`."""

from collections.abc import Iterator, Sequence

from dpmf_cli.evaluation.levels import LevelAt
from dpmf_cli.evaluation.metrics import RMSE, Metric
from dpmf_cli.report.tables.cells import NONE, OVER_RUNS, epsilon_cell, guarantee_notes, marks
from dpmf_cli.report.tables.formats import render
from dpmf_cli.report.tables.layout import Group, TextTable


def levels_table(levels: Sequence[LevelAt], epsilon: float, form: str = "table") -> str:
    """Draws a row for each curve and baseline, by experiment. Raises `DpmfError` for an unknown format."""
    names = {field: field for field in LevelAt.__dataclass_fields__ if field != "metric"}
    names["value"] = _metric(levels).key
    records = ({name: getattr(level, field) for field, name in names.items()} for level in levels)
    return render(_text(levels, epsilon), list(names.values()), records, form)


def _metric(levels: Sequence[LevelAt]) -> Metric:
    return levels[0].metric if levels else RMSE


def _text(levels: Sequence[LevelAt], epsilon: float) -> TextTable:
    groups: dict[str, list[LevelAt]] = {}
    for level in levels:
        kind = "without privacy" if level.neighbours == "none" else f"{level.neighbours}, {level.mode}"
        partial = f" ({level.partial} so far)" if level.partial else ""
        groups.setdefault(f"{level.experiment}: {level.dataset}, {kind}{partial}", []).append(level)
    return TextTable(
        header=("algorithm", f"{_metric(levels).title} at ε = {epsilon:g}", "MAE", "claimed", "provable"),
        alignment="llrrr",
        groups=tuple(Group(title, tuple(map(_cells, group))) for title, group in groups.items()),
        notes=tuple(_notes(levels)),
    )


def _notes(levels: Sequence[LevelAt]) -> Iterator[str]:
    if any(level.interpolated for level in levels):
        yield f"≈ between two ε of the grid: {_metric(levels).title} is taken as linear in log ε there"
    if any(level.over != "none" for level in levels):
        yield "[low, high]: 95 % bootstrap interval, including the uncertainty of interpolation"
    if any(level.over == "runs" for level in levels):
        yield OVER_RUNS
    yield (
        "claimed: the ε that the method's publication states for what was run; "
        "provable: the ε that can be proved for it (∞: none)"
    )
    yield from guarantee_notes(levels)


def _cells(level: LevelAt) -> tuple[str, ...]:
    value = "incomplete" if level.value is None else f"{level.value:.4f}"
    if level.low is not None and level.high is not None:
        value += f" [{level.low:.4f}, {level.high:.4f}]" + ("*" if level.over == "runs" else "")
    private = level.neighbours != "none"
    return (
        level.label + marks(joint=level.joint, delta=level.delta),
        value + (" ≈" if level.interpolated else ""),
        NONE if level.mae is None else f"{level.mae:.4f}",
        epsilon_cell(level.claimed) if private else NONE,
        epsilon_cell(level.provable) if private else NONE,
    )
