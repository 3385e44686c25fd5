"""Compares results with aims: in each group, whether one of dpmf's own methods stands first, and by how much.

An aim is an entry of a YAML list: a group, a quantity, where dpmf stood before, and an upper limit of the quantity.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import TypeAdapter, ValidationError

from dpmf_cli.algorithms.shared.base import Paper
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import read_file
from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.evaluation.crossings import Status, band
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.evaluation.ranking import MODEST, Bar, Frontier, Standing, best_at
from dpmf_cli.privacy.protection import Guarantee, Protection
from dpmf_cli.report.advice import Attempt
from dpmf_cli.report.tables.layout import NONE, Group, TextTable
from dpmf_cli.report.tables.ranked import CAVEAT, baselines_and_design, found_in, short_marked

Quantity = Literal["ia", "ge", "rmse"]

IN_WORDS: dict[Quantity, str] = {
    "ia": "meets IA at ε",
    "ge": "meets GE at ε",
    "rmse": f"RMSE, ε ≤ {MODEST:g}",
}


class Aim(StrictModel):
    """An aim: one of dpmf's own methods stands first, outside the intervals of all other methods.

    title     title of the data set
    before    the best value of any method when the aim was set; `by` names that method
    at_most   upper limit that the quantity must keep as well; None if there is none
    """

    title: str
    protects: Protection
    joint: bool = False
    quantity: Quantity
    before: float
    by: str
    at_most: float | None = None


@dataclass(frozen=True)
class Reached:
    """What one method reached of a quantity: ∞ if it did not get there. Without an interval, its ends are NaN.

    below  whether the method got there below every ε that was tried; `value` is then the smallest ε that was tried
    """

    standing: Standing
    value: float
    low: float
    high: float
    below: bool = False

    @property
    def is_own(self) -> bool:
        return self.standing.curve.source == Paper.DPMF


FIELDS = (
    *("title", "protects", "towards", "quantity", "before", "before_by", "at_most"),
    *("own", "own_low", "own_high", "own_by", "other", "other_low", "other_high", "other_by", "verdict"),
)
"""The columns of csv, and the keys of json."""


def aims_table(experiments: Sequence[Experiment], path: Path, notes: Sequence[str] = ()) -> TextTable:
    """Returns a row for each aim of a file. Raises `DpmfError` for a file without aims."""
    groups: dict[str, list[tuple[str, ...]]] = {}
    records: list[tuple[Any, ...]] = []
    aims, found = read_aims(path), found_in(experiments)
    for aim in aims:
        reached = _reached(found, aim)
        own, other = (
            next((each for each in reached if each.is_own is whose), None) for whose in (True, False)
        )
        verdict = _verdict(aim, reached)
        title = f"{aim.title}: {Guarantee(aim.protects, aim.joint)}"
        groups.setdefault(title, []).append(_cells(aim, own, other, verdict))
        records.append(tuple(_record(aim, own, other, verdict).values()))
    return TextTable(
        header=("", "before", "by", "aim", "dpmf's best", "by", "best of others", "by", "aim reached?"),
        alignment="lrllrlrll",
        groups=tuple(Group(title, tuple(rows)) for title, rows in groups.items()),
        notes=(
            "aim: one of dpmf's own methods (its source is dpmf) stands first, its interval lies entirely below the "
            "intervals of all methods that are not dpmf's own, and its value is at most the number, if one is given",
            "results with any δ count; ε is the provable ε; [low, high]: 95 % bootstrap interval",
            CAVEAT,
            *baselines_and_design(experiments),
            *notes,
        ),
        fields=FIELDS,
        records=tuple(records),
    )


def read_aims(path: Path) -> list[Aim]:
    """Reads the aims of a file. Raises `DpmfError` if the file cannot be read or holds something else."""
    try:
        return TypeAdapter(list[Aim]).validate_python(yaml.safe_load(read_file(path)))
    except OSError as error:
        raise DpmfError(f"{path}: cannot be read: {error.strerror}; name a YAML file with aims") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise DpmfError(f"{path}: {where}: {first['msg']}" if where else f"{path}: {first['msg']}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise DpmfError(f"{path}: not YAML: {' '.join(str(error).split())}") from None


def _reached(found: Sequence[Frontier], aim: Aim) -> list[Reached]:
    """Returns what every method of an aim's group reached, best first."""
    wanted = Guarantee(aim.protects, aim.joint)
    group = [each for each in found if (each.title, each.guarantee.at_any_delta) == (aim.title, wanted)]
    # The last frontier has the largest δ; its members include the methods with a smaller δ.
    members = group[-1].members if group else ()
    reached = map(_OF_QUANTITY[aim.quantity], members)
    return sorted(reached, key=lambda each: (each.value, each.standing.curve.mode))


def _crossing(bar: Bar) -> Callable[[Standing], Reached]:
    def reached(standing: Standing) -> Reached:
        value = standing.needs(bar)
        if math.isinf(value):
            return Reached(standing, value, value, value)
        crossing = standing.crossings[bar]
        low, high = (
            (math.nan, math.nan) if crossing.over == "none" else Attempt(crossing, standing.curve).range
        )
        return Reached(standing, value, low, high, below=crossing.status is Status.BELOW_GRID)

    return reached


def _lowest(standing: Standing) -> Reached:
    best = best_at(standing, MODEST)
    if best is None:
        return Reached(standing, math.inf, math.inf, math.inf)
    low, high = (float(ends[best.at]) for ends in band(standing.experiment, standing.curve))
    return Reached(standing, best.rmse, low, high)


_OF_QUANTITY: Mapping[Quantity, Callable[[Standing], Reached]] = {
    "ia": _crossing("ia"),
    "ge": _crossing("ge"),
    "rmse": _lowest,
}


def _verdict(aim: Aim, reached: Sequence[Reached]) -> str:
    """Says whether the aim is reached. `reached` is everything in its group, best first."""
    own = next((each for each in reached if each.is_own), None)
    if own is None or math.isinf(own.value):
        return "no: none of dpmf's own gets there" if reached else "not run"
    others = [each for each in reached if not each.is_own]
    if any(math.isnan(end) for each in (own, *others) for end in (each.low, each.high)):
        rank = "no intervals, so nobody can tell"
    elif all(own.high < each.low for each in others):
        rank = "first"
    elif all(own.value <= each.value for each in others):
        rank = "first, within another's interval"
    else:
        rank = "not first"
    if aim.at_most is None or own.value <= aim.at_most:
        return "yes" if rank == "first" else f"no: {rank}"
    return f"no: {rank}, and {own.value / aim.at_most:.2f} times the aim"


def _cells(aim: Aim, own: Reached | None, other: Reached | None, verdict: str) -> tuple[str, ...]:
    return (
        IN_WORDS[aim.quantity],
        _number(aim, aim.before),
        aim.by,
        "first" if aim.at_most is None else f"first, ≤ {_number(aim, aim.at_most)}",
        *(cell for each in (own, other) for cell in _reached_cells(aim, each)),
        verdict,
    )


def _reached_cells(aim: Aim, found: Reached | None) -> tuple[str, str]:
    if found is None or math.isinf(found.value):
        return NONE, NONE
    ends = [NONE if math.isnan(end) else _number(aim, end) for end in (found.low, found.high)]
    return f"{'≤ ' * found.below}{_number(aim, found.value)} [{', '.join(ends)}]", short_marked(
        found.standing
    )


def _number(aim: Aim, value: float) -> str:
    if math.isinf(value):
        return "beyond the grid"
    if aim.quantity != "rmse" and value <= 0:
        return "below the grid"
    return f"{value:.4f}" if aim.quantity == "rmse" else significant(value)


def _record(aim: Aim, own: Reached | None, other: Reached | None, verdict: str) -> Mapping[str, Any]:
    """Returns a row for programs, with the keys `FIELDS`."""
    record: dict[str, Any] = {
        "title": aim.title,
        "protects": aim.protects.value,
        "towards": Guarantee(aim.protects, aim.joint).towards,
        "quantity": aim.quantity,
        "before": aim.before,
        "before_by": aim.by,
        "at_most": aim.at_most,
        "verdict": verdict,
    }
    for name, found in (("own", own), ("other", other)):
        ends = (None, None, None) if found is None else (found.value, found.low, found.high)
        record |= dict(zip((name, f"{name}_low", f"{name}_high"), map(_known, ends), strict=True))
        record[f"{name}_by"] = found.standing.curve.label if found else None
    return {key: record[key] for key in FIELDS}


def _known(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value
