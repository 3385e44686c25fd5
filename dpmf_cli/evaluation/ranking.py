"""Which private recommender needs least ε: ranked among those whose ε protects the same thing, never across.

An ε is a statement about a pair of neighbouring data sets. Whether they differ in one rating's value, in its
presence, in a whole user, or in a rating that not even the aggregator sees decides what it is worth, and no factor
turns one into another. Nor is an ε that holds towards the other users alone one that holds towards everybody. So
`ranked` orders the curves of one data set and one `Guarantee`, and refuses any others. Nor is an ε that is only
claimed held against one that can be proved: such curves stand behind the ranked ones, without a rank.

Within a group some ε are pure and others come with a δ. Pure ε-DP is (ε, δ)-DP for every δ, not the other way round:
so there are two rankings, one of all, for whom the δ will do, and one of the pure ones, for whom none will.
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
    """One curve of an experiment, and where it meets the baselines: those that the experiment has."""

    experiment: Experiment
    curve: Measured
    crossings: dict[Bar, Crossing]

    @property
    def guarantee(self) -> Guarantee:
        """What its ε protects from whom, at any δ."""
        return self.curve.guarantee.at_any_delta

    @property
    def complete(self) -> bool:
        return is_complete(self.curve)

    @property
    def provable(self) -> bool:
        """Whether an ε can be proved for the curve somewhere on its grid, as far as is known."""
        return not self.complete or bool(np.isfinite(self.curve.provable).any())

    @property
    def best(self) -> float | None:
        """The lowest mean RMSE for which an ε of at most `MODEST` can be proved; None where there is none."""
        if not self.complete:
            return None
        mean = self.curve.mean()[self.curve.provable <= MODEST * (1 + TOLERANCE)]
        finite = mean[np.isfinite(mean)]
        return float(finite.min()) if len(finite) else None

    def needs(self, bar: Bar, *, claimed: bool = False) -> float:
        """The ε that can be proved (or is claimed) for a run that meets a baseline; ∞ where none can, or it does not.

        A curve that is there at the smallest ε of its grid needs that at most.
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
    """A curve with its ranks among those that protect the same; None where it meets the baseline at no provable ε.

    rank   among all, by the ε of an (ε, δ) that all of them keep: δ is 0 for the pure ones
    pure   among those whose ε is pure; None for the others
    """

    rank: int | None
    pure: int | None
    standing: Standing


def standings(experiment: Experiment, bars: Sequence[Bar] = BARS) -> list[Standing]:
    """Every curve of an experiment that is one over ε, in its order. The points of sweeps are not: `swept_labels`."""
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
    """The curves that are points of a sweep, whose axis is not ε."""
    return [curve.label for curve in experiment.curves if curve.swept is not None]


def by_guarantee(found: Iterable[Standing]) -> dict[tuple[str, Guarantee], list[Standing]]:
    """Those that may be ranked together: by title of the data set, in the order given, then by what is protected from
    whom."""
    groups: dict[tuple[str, Guarantee], list[Standing]] = {}
    for standing in found:
        groups.setdefault((standing.experiment.title, standing.guarantee), []).append(standing)
    titles = list(dict.fromkeys(title for title, _ in groups))
    order = sorted(groups, key=lambda key: (titles.index(key[0]), GUARANTEES.index(key[1])))
    return {key: groups[key] for key in order}


def ranked(found: Sequence[Standing], bar: Bar = "ia") -> list[Ranked]:
    """Curves by the provable ε that they need to meet `bar`, those without a provable ε last, by what they claim.

    Equal ε share a rank. Those that do not meet it have none, and are ordered by `Standing.best`. Raises `DpmfError`
    for curves that protect different things, or from others, or of different data: their ε cannot be ranked against
    each other.
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
            "the others, so a smaller one is not better; rank within each kind (docs/privacy.md)"
        )
    if len(guarantees) > 1:
        raise DpmfError(
            f"no ranking across whom an ε protects from ({'; '.join(map(str, guarantees))}): joint DP leaves open "
            "what the predictions for a user show of that user, so a smaller ε is not better; rank within each "
            "(docs/privacy.md)"
        )
    if len(titles) > 1:
        raise DpmfError(
            f"no ranking across data sets ({', '.join(titles)}): which ε a method needs depends on the data; rank "
            "within each"
        )


def _rank(need: float, needs: Sequence[float]) -> int | None:
    """The place of one of the ascending `needs`; equal ones share it."""
    return bisect_left(needs, need) + 1 if math.isfinite(need) else None


def _no_better(standing: Standing) -> float:
    return math.inf if standing.best is None else standing.best
