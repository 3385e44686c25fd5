"""Ranks private recommenders by the ε that they need, among those whose ε protects the same thing, never across.

An ε is a statement about a pair of neighbouring data sets. They may differ in one rating's value, in its presence,
in all ratings of a user, or in a rating that not even the aggregator sees. An ε of one of these kinds cannot be
converted into an ε of another kind. An ε that holds against the other users only says nothing about an observer who
sees everything. So `ranked` orders the curves of one data set and one `Guarantee`, and refuses mixtures. Claimed ε
are not compared with provable ones: curves with only a claimed ε follow the ranked ones, without a rank.

Within a group some ε are pure and others come with a δ. Pure ε-DP implies (ε, δ)-DP for every δ; the converse is
false. So there are two rankings: one of all curves, for readers who accept the δ, and one of the pure ones, for
readers who accept no δ.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.crossings import Crossing, Status, is_complete, measure_crossing
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.privacy.ledger import TOLERANCE
from dpmf_cli.privacy.protection import GUARANTEES, Guarantee

Bar = Literal["ia", "ge"]
"""The baseline that a curve has to meet: item average, or global effects."""
BARS: tuple[Bar, ...] = get_args(Bar)

MODEST = 1.0
"""The ε up to which `Standing.best` looks for the lowest RMSE."""


@dataclass(frozen=True)
class Standing:
    """One curve of an experiment, with its crossings with those baselines that the experiment has."""

    experiment: Experiment
    curve: Measured
    crossings: dict[Bar, Crossing]

    @property
    def guarantee(self) -> Guarantee:
        """What the curve's ε protects and from whom, whatever its δ."""
        return self.curve.guarantee.at_any_delta

    @property
    def complete(self) -> bool:
        return is_complete(self.curve)

    @property
    def provable(self) -> bool:
        """Whether an ε can be proved for the curve somewhere on its grid; True while results are missing."""
        return not self.complete or bool(np.isfinite(self.curve.provable).any())

    @property
    def best(self) -> float | None:
        """The lowest mean RMSE at a provable ε of at most `MODEST`; None where there is none."""
        if not self.complete:
            return None
        mean = self.curve.mean()[self.curve.provable <= MODEST * (1 + TOLERANCE)]
        finite = mean[np.isfinite(mean)]
        return float(finite.min()) if len(finite) else None

    def needs(self, bar: Bar, *, claimed: bool = False) -> float:
        """The provable (or claimed) ε of a run at the crossing with a baseline; ∞ if there is no such ε or crossing.

        A curve that meets the baseline at the smallest ε of its grid needs at most that ε.
        """
        crossing = self.crossings.get(bar)
        spent = self.curve.claimed if claimed else self.curve.provable
        if crossing is None or crossing.status not in (Status.CROSSED, Status.BELOW_GRID):
            return math.inf
        if crossing.status is Status.BELOW_GRID:
            return float(spent[0])
        found = crossing.claimed if claimed else crossing.provable
        return math.inf if found is None else found


@dataclass(frozen=True)
class Ranked:
    """A curve with its ranks among those of one guarantee; None where it meets the baseline at no provable ε.

    rank   among all of them, by ε, whatever δ comes with it
    pure   among those whose ε is pure; None for the others
    """

    rank: int | None
    pure: int | None
    standing: Standing


def standings(experiment: Experiment, bars: Sequence[Bar] = BARS) -> list[Standing]:
    """Every curve over ε of an experiment, in its order. Points of sweeps are left out (see `swept_labels`)."""
    baselines = {bar: baseline for bar in bars if (baseline := experiment.baseline(bar)) is not None}
    found = []
    for curve in experiment.curves:
        if curve.swept is not None:
            continue
        if curve.protects is None:
            raise ValueError(f"{curve.label}: it is not known what its ε protects")
        crossings = {bar: measure_crossing(experiment, curve, each) for bar, each in baselines.items()}
        found.append(Standing(experiment, curve, crossings))
    return found


def swept_labels(experiment: Experiment) -> list[str]:
    """The labels of the curves that are points of a sweep, whose axis is not ε."""
    return [curve.label for curve in experiment.curves if curve.swept is not None]


def by_guarantee(found: Iterable[Standing]) -> dict[tuple[str, Guarantee], list[Standing]]:
    """Groups of standings that may be ranked together: one for each title of a data set and each guarantee.

    Groups are ordered by title as given, then by guarantee as in tables.
    """
    groups: dict[tuple[str, Guarantee], list[Standing]] = {}
    for standing in found:
        groups.setdefault((standing.experiment.title, standing.guarantee), []).append(standing)
    titles = list(dict.fromkeys(title for title, _ in groups))
    order = sorted(groups, key=lambda key: (titles.index(key[0]), GUARANTEES.index(key[1])))
    return {key: groups[key] for key in order}


def ranked(found: Sequence[Standing], bar: Bar = "ia") -> list[Ranked]:
    """Ranks curves by the provable ε that they need to meet `bar`; those without one are last, by their claimed ε.

    Equal ε share a rank. Curves that do not meet `bar` have no rank and are ordered by `Standing.best`. Raises
    `DpmfError` for curves that differ in what they protect, in from whom, or in their data: their ε cannot be ranked
    against each other.
    """
    _refuse_mixed(by_guarantee(found))
    provable = sorted(
        (each for each in found if each.provable), key=lambda each: (each.needs(bar), _no_better(each))
    )
    claimed = sorted(
        (each for each in found if not each.provable), key=lambda each: each.needs(bar, claimed=True)
    )
    needs = [each.needs(bar) for each in provable]
    pure = [each.needs(bar) for each in provable if not each.curve.delta]
    return [
        *(
            Ranked(_rank(need, needs), None if each.curve.delta else _rank(need, pure), each)
            for need, each in zip(needs, provable, strict=True)
        ),
        *(Ranked(None, None, each) for each in claimed),
    ]


def _refuse_mixed(groups: Iterable[tuple[str, Guarantee]]) -> None:
    titles = list(dict.fromkeys(title for title, _ in groups))
    guarantees = list(dict.fromkeys(guarantee for _, guarantee in groups))
    protections = list(dict.fromkeys(guarantee.protects for guarantee in guarantees))
    if len(protections) > 1:
        raise DpmfError(
            f"no ranking across what is protected ({', '.join(protections)}): an ε of one kind says nothing about "
            "the others, so a smaller ε is not better; rank within each kind (docs/privacy.md)"
        )
    if len(guarantees) > 1:
        raise DpmfError(
            f"no ranking across whom an ε protects from ({'; '.join(map(str, guarantees))}): joint DP does not limit "
            "what the predictions for a user reveal about that user, so a smaller ε is not better; rank within each "
            "(docs/privacy.md)"
        )
    if len(titles) > 1:
        raise DpmfError(
            f"no ranking across data sets ({', '.join(titles)}): the ε that a method needs depends on the data; rank "
            "within each"
        )


def _rank(need: float, needs: Sequence[float]) -> int | None:
    """The rank of `need` among the ascending `needs`, where equal ones share a rank; None if it is infinite."""
    return bisect_left(needs, need) + 1 if math.isfinite(need) else None


def _no_better(standing: Standing) -> float:
    return math.inf if standing.best is None else standing.best
