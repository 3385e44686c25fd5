"""Results as rules look at them: by data set and the name of the config, and only where they are complete."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.evaluation.crossings import Crossing, Status, is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured

T = TypeVar("T")

IN_NAMES = {"jester-1": "jester"}
"""How names of configs write a data set that they do not write as its key without hyphens, or with underscores."""

Found = Mapping[str, Mapping[str, tuple[Experiment, Sequence[Crossing]]]]
"""Experiments with their crossings, by the key of their data set and the name of the whole config."""


class MissingEvidence(Exception):
    """A rule needs a result that is not there."""


@dataclass(frozen=True)
class Proof:
    """What is known of the privacy of an algorithm as published.

    provable   the ε that dpmf proves for it, as a multiple of the one that is claimed; inf where there is none
    found      what a replay of neighbouring ratings has shown against the claim
    moves      by step the largest move of its clean numbers, in units of what its noise is scaled to
    """

    provable: float
    found: tuple[str, ...] = ()
    moves: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """The experiments at hand, and the data set whose part of a claim is asked for.

    proofs   by the label of an audited algorithm what is known of its privacy
    """

    found: Found
    data: str
    proofs: Mapping[str, Proof] = field(default_factory=dict)

    def on(self, data: str) -> "Evidence":
        """The same on another data set."""
        return replace(self, data=data)

    def named(self, pattern: str) -> str:
        """The name of a config for this data set: "zhang_fig2_{}" is "zhang_fig2_ml1m" on ML-1M."""
        written = IN_NAMES.get(self.data) or self.data.replace("ml-", "ml").replace("-", "_")
        return pattern.format(written)

    def experiment(self, name: str) -> Experiment:
        """Raises MissingEvidence where the config was not run."""
        return self._of(name)[0]

    def proof(self, entry: str) -> Proof:
        """Raises MissingEvidence where the algorithm was not audited."""
        if entry not in self.proofs:
            raise MissingEvidence(entry)
        return self.proofs[entry]

    def _of(self, name: str) -> tuple[Experiment, Sequence[Crossing]]:
        try:
            return self.found[self.data][name]
        except KeyError:
            raise MissingEvidence(f"{name} on {self.data}") from None

    def curve(self, name: str, label: str) -> Measured:
        """The complete curve of that label (or, for the only one of an algorithm, of its key)."""
        curves = self.experiment(name).curves
        return _only(name, (c for c in curves if label in (c.label, c.algorithm) and is_complete(c)))

    def best(self, name: str, algorithm: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(E,) the ε of an experiment, and (E,) the lowest mean RMSE at each that a curve of the algorithm has; all
        of them complete."""
        curves = [each for each in self.experiment(name).curves if each.algorithm == algorithm]
        if not curves or not all(map(is_complete, curves)):
            raise MissingEvidence(name)
        return curves[0].epsilons, np.min([each.mean() for each in curves], axis=0)

    def baseline(self, name: str, key: str) -> float:
        """The mean RMSE of a complete baseline."""
        baselines = self.experiment(name).baselines
        found = _only(name, (b for b in baselines if key in (b.label, b.algorithm) and is_complete(b)))
        return float(found.mean()[0])

    def line(self, name: str, line: str) -> list[tuple[float, Measured]]:
        """The complete points of a sweep, (value, what was measured there), ascending; at least two."""
        experiment = self.experiment(name)
        points = [
            (each.swept[1], each)
            for each in (*experiment.curves, *experiment.baselines)
            if each.swept and line in (each.line, each.algorithm)
        ]
        if len(points) < 2 or not all(is_complete(each) for _, each in points):
            raise MissingEvidence(name)
        return sorted(points, key=lambda point: point[0])

    def crossing(self, name: str, label: str, baseline: str) -> float:
        """ε at which a curve meets a baseline: 0 below the grid, ∞ where it is not reached."""
        crossings = self._of(name)[1]
        cell = _only(
            name, (c for c in crossings if label in (c.label, c.algorithm) and c.baseline == baseline)
        )
        if cell.status == Status.NOT_REACHED:
            return math.inf
        if cell.status == Status.BELOW_GRID:
            return 0.0
        if cell.reproduced is None:
            raise MissingEvidence(name)
        return cell.reproduced


def _only(name: str, found: Iterable[T]) -> T:
    for each in found:
        return each
    raise MissingEvidence(name)
