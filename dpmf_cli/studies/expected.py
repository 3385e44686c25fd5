"""The figures that a reproduction is expected to find, with their spread: data from a run of dpmf's makers."""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.evaluation.curves import Experiment

FOLDER = Path(__file__).parent / "expected_rmse"
DIGITS = 5
LEAST_PART = 1e-3
"""How much a figure may differ however small its spread is, as a fraction: arithmetic differs between processors."""

DEVIATIONS = 2.0
"""By how many standard deviations over folds and runs a figure may differ."""

POINTS = 3
"""How many ε of a curve have figures: its first, middle and last ε."""


@dataclass(frozen=True)
class Figure:
    """Mean and standard deviation of the RMSE over folds and runs, at one ε. A single RMSE has deviation 0."""

    mean: float
    deviation: float

    def admits(self, found: float) -> bool:
        """Whether another run's mean is within the spread."""
        return abs(found - self.mean) <= max(DEVIATIONS * self.deviation, LEAST_PART * abs(self.mean))


Figures = Mapping[str, Figure]
"""Figures by curve and ε."""


@dataclass(frozen=True)
class OffFigure:
    """A figure that is not as expected. `found` is None if the figure is missing."""

    experiment: str
    figure: str
    expected: Figure
    found: float | None


def figures_of(experiment: Experiment) -> dict[str, Figure]:
    """Returns the figures of an experiment that can be expected: for each curve, those at a few ε.

    With growth, each portion of the ratings has its own.
    """
    found = {}
    stages = experiment.growth.stages if experiment.growth else ()
    parts = [(f" on {stage.portion.share:g}", (*stage.curves, *stage.baselines)) for stage in stages]
    for part, curves in parts or [("", (*experiment.curves, *experiment.baselines))]:
        for each in curves:
            kind = "" if each.is_baseline else f", {each.neighbours}, {each.mode}"
            last = len(each.epsilons) - 1
            for at in sorted({round(last * step / (POINTS - 1)) for step in range(POINTS)}):
                values = each.rmse[:, :, at].ravel()
                mean = float(values.mean())
                if math.isfinite(mean):
                    deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
                    figure = Figure(round(mean, DIGITS), round(deviation, DIGITS))
                    found[f"{each.label}{kind}{part} at {each.epsilons[at]:g}"] = figure
    return found


def figures_off(name: str, expected: Figures, found: Figures) -> Iterator[OffFigure]:
    """Yields each expected figure that an experiment lacks, or found outside the spread."""
    for figure, wanted in expected.items():
        here = found.get(figure)
        if here is None or not wanted.admits(here.mean):
            yield OffFigure(name, figure, wanted, None if here is None else here.mean)


def path_of(*, small: bool) -> Path:
    """Returns the file of expected figures, of the small or of the complete reproduction."""
    return FOLDER / ("small.json" if small else "whole.json")


def read_expected(path: Path) -> dict[str, Figures]:
    """Reads the expected figures of experiments, by name; an empty dictionary if there is no such file.

    Raises DpmfError for a file without expected figures.
    """
    try:
        held: dict[str, dict[str, list[float]]] = json.loads(path.read_text())
        return {name: {key: Figure(*pair) for key, pair in found.items()} for name, found in held.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise DpmfError(f"{path}: holds no expected figures: {error}; install dpmf again") from None
