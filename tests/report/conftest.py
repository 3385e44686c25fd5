"""A made-up experiment like Friedman et al.'s figure 2: sixteen ε, baselines, falling curves."""

from dataclasses import replace

import numpy as np

from dpmf_cli.evaluation.curves import Experiment, Measured, Reference
from tests.evaluation.made_curves import noise_free_of
from tests.report.results import results

__all__ = ["results"]

#: Level at large ε, size and power of what noise adds, of each curve.
SHAPES = {
    "pge": (0.916, 0.028, 1.0),
    "isgd": (0.862, 0.13, 0.9),
    "psgd": (0.893, 0.10, 0.8),
    "pals": (0.880, 0.12, 0.7),
    "pknn": (0.905, 0.05, 0.9),
    "dpals": (0.870, 0.30, 0.8),
}
INFINITE = np.array([np.inf])


def make(count: int = 4, *, folds: int = 10, runs: int = 5, incomplete: str = "") -> Experiment:
    """`count` curves; the one named `incomplete` lacks a task."""
    rng = np.random.default_rng(3)
    epsilons = np.geomspace(0.1, 20, 16)
    difficulty = rng.normal(0, 0.002, (folds, 1, 1))
    baselines = tuple(
        Measured(key, key, INFINITE, level + difficulty, INFINITE, INFINITE)
        for key, level in {"ga": 1.1171, "ia": 0.9795, "ge": 0.9161, "als": 0.8604}.items()
    )
    curves = []
    for name, (level, size, power) in list(SHAPES.items())[:count]:
        rmse = level + size / epsilons**power + difficulty + rng.normal(0, 0.002, (folds, runs, 1))
        if name == incomplete:
            rmse[-1, -1] = np.nan
        curves.append(
            Measured(
                algorithm=name,
                label=name,
                epsilons=epsilons,
                rmse=rmse,
                claimed=epsilons,
                provable=epsilons if name == "pge" else np.full(16, np.inf),
                neighbours="bounded",
                mode="published",
                missing=int(name == incomplete),
            )
        )
    return Experiment("made", "ml-1m", "MovieLens 1M", folds, folds, runs, 7, tuple(curves), baselines)


def of_theta(experiment: Experiment) -> Experiment:
    """The same over a grid of θ: each curve has its own ε, the first two are (ε, δ), all have noise-free runs, and
    Cinematch's printed errors are added."""
    curves = tuple(
        replace(
            curve,
            epsilons=curve.epsilons * (rank + 1),
            thetas=curve.epsilons,
            delta=1e-6 if rank < 2 else 0.0,
            noise_free=noise_free_of(curve.rmse.mean(axis=(1, 2)) - 0.05),
        )
        for rank, curve in enumerate(experiment.curves)
    )
    printed = (Reference("Cinematch probe", 0.9474, True), Reference("Cinematch quiz", 0.9514, False))
    return replace(experiment, curves=curves, axis="theta", references=printed)
