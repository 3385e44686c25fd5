"""Results as rules read them: by data set and name of the config, and only if they are complete."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.evaluation import crossings
from dpmf_cli.evaluation.curves import Experiment, Measured

T = TypeVar("T")

IN_NAMES = {"jester-1": "jester"}
"""The names of data sets in names of configs, where this is not the key without hyphens or with underscores."""

Found = Mapping[str, Mapping[str, Experiment]]
"""Experiments, by the key of their data set and the name of the config before any reduction."""

REPLICATES = 2
"""Bootstrap replicates. Two are enough, because rules read crossings and not their intervals."""

BEST = "best "
"""Before the key of an algorithm: the label of the best of all of its curves at each ε, chosen on other folds."""


class MissingEvidence(Exception):
    """A rule needs a result that is not there."""


@dataclass(frozen=True)
class Proof:
    """What is known about the privacy of an algorithm.

    provable   the ε that dpmf proves for it, as a multiple of the claimed ε; inf if none is provable
    found      findings of a replay of neighbouring ratings against the claim
    moves      by step, the largest move of its clean numbers, in units of the sensitivity that its noise is scaled to
    """

    provable: float
    found: tuple[str, ...] = ()
    moves: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Evidence:
    """The experiments at hand, and the data set on which a claim is judged.

    proofs   what is known about the privacy of audited algorithms, by their labels
    """

    found: Found
    data: str
    proofs: Mapping[str, Proof] = field(default_factory=dict)

    def of_fold(self, fold: int) -> "Evidence":
        """The evidence on one fold alone, of the experiments that have it."""
        found = {
            data: {name: each.of_folds([fold]) for name, each in under.items() if fold < each.folds}
            for data, under in self.found.items()
        }
        return replace(self, found=found)

    def named(self, pattern: str) -> str:
        """The name of a config for this data set: "zhang_fig2_{}" is "zhang_fig2_ml1m" on ML-1M."""
        written = IN_NAMES.get(self.data) or self.data.replace("ml-", "ml").replace("-", "_")
        return pattern.format(written)

    def was_run(self, name: str) -> bool:
        return name in self.found.get(self.data, {})

    def experiment(self, name: str) -> Experiment:
        """The experiment of a config. Raises MissingEvidence if the config was not run."""
        try:
            return self.found[self.data][name]
        except KeyError:
            raise MissingEvidence(f"{name} on {self.data}") from None

    def proof(self, entry: str) -> Proof:
        """The proof of an algorithm. Raises MissingEvidence if the algorithm was not audited."""
        if entry not in self.proofs:
            raise MissingEvidence(entry)
        return self.proofs[entry]

    def curve(self, name: str, label: str) -> Measured:
        """The first complete curve with that label, or with an algorithm of that key."""
        curves = self.experiment(name).curves
        return _only(
            name, (c for c in curves if label in (c.label, c.algorithm) and crossings.is_complete(c))
        )

    def best(self, name: str, algorithm: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(E,) the ε of an experiment, and (E,) the lowest mean RMSE of the algorithm's curves at each ε.

        Raises MissingEvidence unless all of these curves are complete.
        """
        curves = [each for each in self.experiment(name).curves if each.algorithm == algorithm]
        curves = [each for each in curves if each.label.startswith(BEST)] or curves
        if not curves or not all(map(crossings.is_complete, curves)):
            raise MissingEvidence(name)
        return curves[0].epsilons, np.min([each.mean() for each in curves], axis=0)

    def baseline(self, name: str, key: str) -> float:
        """The mean RMSE of a complete baseline, or a published one."""
        for each in self.experiment(name).references:
            if each.name == key:
                return each.rmse
        baselines = self.experiment(name).baselines
        found = _only(
            name, (b for b in baselines if key in (b.label, b.algorithm) and crossings.is_complete(b))
        )
        return float(found.mean()[0])

    def line(self, name: str, line: str) -> list[tuple[float, Measured]]:
        """The points of a sweep, (value, what was measured), ascending: at least two, and all complete."""
        experiment = self.experiment(name)
        points = [
            (each.swept[1], each)
            for each in (*experiment.curves, *experiment.baselines)
            if each.swept and line in (each.line, each.algorithm)
        ]
        if len(points) < 2 or not all(crossings.is_complete(each) for _, each in points):
            raise MissingEvidence(name)
        return sorted(points, key=lambda point: point[0])

    def crossing_epsilon(self, name: str, label: str, baseline: str) -> float:
        """The ε at which a curve crosses a baseline: 0 below the grid, ∞ if it is not reached."""
        found = self.crossing(name, label, baseline)
        if found.status == crossings.Status.NOT_REACHED:
            return math.inf
        if found.status in (crossings.Status.BELOW_GRID, crossings.Status.NO_EPSILON):
            return 0.0
        if found.reproduced is None:
            raise MissingEvidence(name)
        return found.reproduced

    def crossing(
        self, name: str, label: str, baseline: str, printed: float | None = None
    ) -> crossings.Crossing:
        """The crossing of a curve with a baseline, beside a printed ε."""
        experiment, curve = self.experiment(name), self.curve(name, label)
        targets = {crossings.target_name(each): each for each in crossings.crossing_targets(experiment)}
        if baseline not in targets:
            raise MissingEvidence(f"{baseline} of {name}")
        return crossings.measure_crossing(
            experiment, curve, targets[baseline], lambda *_: printed, replicates=REPLICATES
        )


def _only(name: str, found: Iterable[T]) -> T:
    for each in found:
        return each
    raise MissingEvidence(name)
