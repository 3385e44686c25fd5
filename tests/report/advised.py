"""Made-up crossings, curves and experiments for the tests of advice."""

from dataclasses import replace
from typing import Any

import numpy as np

from dpmf_cli.evaluation.crossings import Crossing, Status
from dpmf_cli.evaluation.curves import Experiment, Measured
from tests.evaluation.made_curves import noise_free_of

GRID = np.array([0.5, 2.0, 8.0])
INFINITE = np.array([np.inf])


def crossed(label: str, epsilon: float, **changed: Any) -> Crossing:
    """A crossing with GE, whose ε is provable and whose interval is ± 10 %."""
    given: dict[str, Any] = {
        "dataset": "shop",
        "neighbours": "bounded",
        "mode": "published",
        "algorithm": label.lower(),
        "label": label,
        "baseline": "GE",
        "status": Status.CROSSED,
        "reproduced": epsilon,
        "low": 0.9 * epsilon,
        "high": 1.1 * epsilon,
        "claimed": epsilon,
        "provable": epsilon,
        "over": "folds",
        "folds": 10,
        "runs": 5,
        "grid_low": 0.5,
        "grid_high": 8.0,
        "experiment": "shop",
    }
    return Crossing(**{**given, **changed})


def experiment(**changed: Any) -> Experiment:
    baselines = tuple(
        Measured(key, key.upper(), INFINITE, np.full((10, 1, 1), level), INFINITE, INFINITE)
        for key, level in (("ia", 1.0), ("ge", 0.9))
    )
    return replace(Experiment("shop", "shop", "My shop", 10, 10, 5, 1, (), baselines), **changed)


def curve(label: str, clean: float | None = None, provable: float = 1.0, **changed: Any) -> Measured:
    made = Measured(
        label.lower(), label, GRID, np.ones((10, 5, 3)), GRID, provable * GRID, "bounded", "published"
    )
    return replace(made, noise_free=None if clean is None else noise_free_of(np.full(10, clean)), **changed)
