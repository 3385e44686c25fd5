"""Cells of the tables of crossings, as text, and the notes that explain their marks."""

import math
from collections.abc import Iterator, Sequence

from dpmf_cli.evaluation.crossings import Crossing, End, Status
from dpmf_cli.evaluation.levels import LevelAt
from dpmf_cli.evaluation.numbers import significant

OVER_RUNS = "* one fold: the interval is over runs only, not over the choice of test ratings"

JOINT = "‡ predicts from the target user's own clean ratings: joint DP, which protects from others only"

#: The cell of a missing number.
NONE = "–"


def crossing_cell(crossing: Crossing) -> str:
    """Returns `2.40†‖ [2.10, >20]*`: the point of the crossing, or why there is none, and the interval."""
    found = crossing.status.value if crossing.reproduced is None else significant(crossing.reproduced)
    return (
        found + ("†" if crossing.recrosses else "") + ("‖" if crossing.coarse else "") + _interval(crossing)
    )


def epsilon_cell(value: End) -> str:
    """Returns an ε to three figures; ∞ if it is infinite, and `NONE` if there is none."""
    if not isinstance(value, float):
        return NONE
    return "∞" if math.isinf(value) else significant(value)


def marks(*, joint: bool, delta: float) -> str:
    """Returns the marks after a curve's name: ‡ for joint DP, § for (ε, δ)."""
    return ("‡" if joint else "") + ("§" if delta else "")


def end_records(crossing: Crossing) -> dict[str, float | str | None]:
    """Returns the ends of the interval for programs: a number, or None and the side of the grid on which it lies."""
    record: dict[str, float | str | None] = {}
    for name, end in (("low", crossing.low), ("high", crossing.high)):
        record[name] = end if isinstance(end, float) else None
        record[f"{name}_status"] = end.value if isinstance(end, Status) else None
    return record


def interval_notes(crossings: Sequence[Crossing]) -> Iterator[str]:
    """Explains intervals, if there are any."""
    if any(crossing.over != "none" for crossing in crossings):
        yield "[low, high]: 95 % bootstrap interval; < and >: beyond the grid's smallest and largest ε"
    if any(crossing.over == "runs" for crossing in crossings):
        yield OVER_RUNS


def guarantee_notes(rows: Sequence[Crossing | LevelAt]) -> Iterator[str]:
    """Explains the `marks` that these rows have."""
    if any(row.joint for row in rows):
        yield JOINT
    deltas: dict[float, dict[str, None]] = {}
    for row in rows:
        if row.delta:
            deltas.setdefault(row.delta, {})[row.label] = None
    for delta, labels in sorted(deltas.items()):
        yield f"§ (ε, δ)-DP with δ = {delta:g}" + (f": {', '.join(labels)}" if len(deltas) > 1 else "")


def mark_notes(crossings: Sequence[Crossing]) -> Iterator[str]:
    """Explains ‡, §, † and ‖, if these crossings have them."""
    yield from guarantee_notes(crossings)
    if any(crossing.recrosses for crossing in crossings):
        worse = "below" if any(crossing.metric.larger_is_better for crossing in crossings) else "above"
        yield f"† {worse} the baseline again at a larger ε"
    if any(crossing.coarse for crossing in crossings):
        yield "‖ the grid is coarse here: interpolation may move the crossing more than noise; the interval has both"


def _interval(crossing: Crossing) -> str:
    """Returns ` [low, high]`; "" if there is no interval, or if all of it lies outside the grid."""
    if crossing.over == "none" or crossing.low == crossing.high == crossing.status:
        return ""
    ends = f" [{_end(crossing.low, crossing)}, {_end(crossing.high, crossing)}]"
    return ends + ("*" if crossing.over == "runs" else "")


def _end(end: End, crossing: Crossing) -> str:
    if end == Status.BELOW_GRID:
        return f"<{crossing.grid_low:g}"
    if end == Status.NOT_REACHED:
        return f">{crossing.grid_high:g}"
    return epsilon_cell(end)
