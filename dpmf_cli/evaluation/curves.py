"""What the tasks of one experiment measured, gathered: the input of every table and figure."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Measured:
    """The RMSE of one algorithm over folds, runs and the ε grid.

    algorithm   key of the registry ("pge", "isgd", "ge"); `label` is unique in an experiment and names the
                curve where one config runs an algorithm twice
    epsilons    (E,) total ε, ascending; a non-private baseline has the single value inf
    rmse        (folds, runs, E) float64, rating units; a deterministic baseline has one run
    claimed     (E,) ε that the method's publication states for what was run
    provable    (E,) ε that can be proved for what was run, inf where none can
    neighbours  "bounded", "unbounded", …; "none" for a baseline
    mode        "published" or "corrected"; "none" for a baseline
    joint       whether it predicts from the target user's own clean ratings: privacy towards the others only
    swept       the parameter that a sweep varies and its value here, where the curve is a point of a sweep
    missing     how many of its tasks have no result yet: where it is not 0, `rmse` holds NaN and
                no figure may be derived from it
    """

    algorithm: str
    label: str
    epsilons: NDArray[np.float64]
    rmse: NDArray[np.float64]
    claimed: NDArray[np.float64]
    provable: NDArray[np.float64]
    neighbours: str = "none"
    mode: str = "none"
    missing: int = 0
    joint: bool = False
    swept: tuple[str, float] | None = None

    @property
    def is_baseline(self) -> bool:
        return self.neighbours == "none"

    def mean(self) -> NDArray[np.float64]:
        """(E,) the curve: RMSE averaged over folds and runs."""
        mean: NDArray[np.float64] = self.rmse.mean(axis=(0, 1))
        return mean


@dataclass(frozen=True)
class Experiment:
    """One config's results. `dataset` is the key of the catalog ("ml-100k"), `title` its printed name.

    `folds` were held out of the `partition` folds that the ratings were cut into.
    """

    name: str
    dataset: str
    title: str
    folds: int
    partition: int
    runs: int
    seed: int
    curves: tuple[Measured, ...]
    baselines: tuple[Measured, ...]
    notes: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict)

    def baseline(self, key: str) -> Measured | None:
        """The baseline of that key ("ia", "ge", "ga", "als"), if the experiment has it."""
        return next((baseline for baseline in self.baselines if baseline.algorithm == key), None)
