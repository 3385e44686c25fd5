"""Made-up evidence for rules: an answer to every question, the same for the same question."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from dpmf_cli.core.streams import named_generator
from dpmf_cli.datasets.loading import expected
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.evaluation.crossings import Crossing, Status
from dpmf_cli.evaluation.curves import Experiment, Measured, Stage
from dpmf_cli.evaluation.folds import Portion
from dpmf_cli.papers.evidence import Evidence, MissingEvidence, Proof

GRIDS = {
    "wang_fig1": np.geomspace(0.1, 100, 10),
    "wang_fig2": np.geomspace(2, 20_000, 13),
    "wang_tricks": np.array([1.0, 10, 100, 200]),
    "neera": np.array([0.1, 0.5, 1.0, 1.6, 3.0]),
    "explore_neera": np.array([0.1, 0.5, 1.0, 1.6, 3.0]),
    "": np.geomspace(0.1, 100, 7),
}
SWEPT = {
    "zhang_fig5": (0.4, 0.445, 0.6, 0.7, 0.8, 1.0),
    "zhang": (0.1, 0.2, 0.3, 0.4),
    "friedman_fig6_pairs": (0.02, 0.04, 0.08, 0.1),
    "": (1.0, 2.0, 5.0, 10.0, 20.0),
}
"""The ε of a config's curves, and the values of its sweeps, by how its name begins."""

BY_SIZE = ("ml-100k", "ml-1m", "netflix-sample", "ml-10m", "netflix", "jester-1")


@cache
def numbers(seed: int, *question: str) -> list[float]:
    """Returns numbers on [−1, 1] that are drawn for a question."""
    drawn: list[float] = (2 * named_generator("made up", seed, *question).random(100) - 1).tolist()
    return drawn


@cache
def made_curve(seed: int, data: str, name: str, label: str, spread: float) -> Measured:
    draw = iter(numbers(seed, data, "curve", name, label)).__next__
    grid = next(each for start, each in GRIDS.items() if name.startswith(start))
    level, slope = 1 + spread * draw(), spread * draw() / 5
    if label.endswith("d 3, 0.08"):
        level -= spread
    if label == "blp_mog_mf" and draw() > 0:
        level -= 0.2
    if label in ("pge", "pknn"):
        level -= spread / 2
    rmse = np.array([round(level + slope * at + spread * draw() / 5, 3) for at in range(len(grid))])
    if draw() < -0.9:
        rmse[-2:] = np.inf
    shares = 0.7 if "fig3" in name else 0.65
    cdf = [[round(shares + limit + spread * draw() / 5, 3) for limit in (0, 0.1, 0.2)] for _ in grid]
    return Measured(
        label,
        label,
        grid,
        rmse[None, None],
        1.1 * grid,
        1.1 * grid * (1 if draw() < 0 else np.inf if draw() > 0.5 else np.linspace(1, 2, len(grid))),
        thetas=grid / 10,
        noise_free={"rmse": np.full((1, 1, 1), rmse.min() - 0.02 * abs(draw()))},
        limits=(1.0, 1.5, 2.0),
        others={"error_cdf": np.array([[cdf]])},
    )


@dataclass(frozen=True)
class MadeUp(Evidence):
    """Evidence whose answers are drawn, and rounded so that some are the same.

    hidden   a question to which there is no answer
    asked    all that was asked
    """

    seed: int = 0
    hidden: str = ""
    asked: list[str] = field(default_factory=list)

    def answered(self, *question: str) -> Callable[[], float]:
        """Notes the question, and returns what draws numbers on [−1, 1] for it."""
        self.asked.append(" ".join((self.data, *question)))
        if self.asked[-1] == self.hidden:
            raise MissingEvidence(self.hidden)
        return iter(numbers(self.seed, self.data, *question)).__next__

    def spread(self, name: str) -> float:
        """By how much the results of a config vary: little in one experiment, much in another."""
        drawn = numbers(self.seed, "spread", name.rpartition("_")[0])[0]
        return (0.002, 0.02, 0.1, 0.5)[int(2 * (drawn + 1))]

    def was_run(self, name: str) -> bool:
        return "explore" not in name or numbers(self.seed, "run", name)[0] < 0.2

    def curve(self, name: str, label: str) -> Measured:
        self.answered("curve", name, label)
        return made_curve(self.seed, self.data, name, label, self.spread(name))

    def best(self, name: str, algorithm: str) -> tuple[np.ndarray, np.ndarray]:
        found, draw = self.curve(name, algorithm), self.answered("best", name, algorithm)
        rmse = found.mean() - (0.3 if draw() > 0.4 else 0)
        return found.epsilons, np.where(np.arange(len(rmse)) < 9 + 6 * draw(), rmse, np.inf)

    def baseline(self, name: str, key: str) -> float:
        draw = self.answered("baseline", name, key)
        known = {"ga": 1.1, "pmf": 1.2 if draw() < -0.9 else 0.9}
        return known.get(key, round(1 + self.spread(name) * draw(), 3))

    def line(self, name: str, line: str) -> list[tuple[float, Measured]]:
        draw = self.answered("line", name, line)
        values = next(each for start, each in SWEPT.items() if name.startswith(start))
        if line.endswith(", k"):
            values = (3.0, 5.0, 7.0, 9.0)
        step, curved = 0.05 * draw() * (draw() > -0.5), 0.02 * draw() * (draw() > 0)
        shift = 0.3 * max(draw(), 0)
        points = [self.curve(name, f"{line}, {value:g}") for value in values]
        return [
            (value, replace(point, rmse=point.rmse - shift + step * at + curved * at * at))
            for at, (value, point) in enumerate(zip(values, points, strict=True))
        ]

    def crossing_epsilon(self, name: str, label: str, baseline: str) -> float:
        draw = self.answered("crossing", name, label, baseline)
        within = [1.0, 1.05, 1.1, 1.3, 1.6, 2.0, 2.5, 5.0, 10.0, 20.0]
        known = within if numbers(self.seed, "all are reached")[0] < 0.4 else [0.0, math.inf, *within]
        near = known[: 3 if self.spread(name) < 0.01 else len(known)]
        earlier = 100 ** BY_SIZE.index(self.data) if numbers(self.seed, "larger data")[0] < -0.2 else 1
        return near[int(len(near) * (draw() + 1) / 2)] / earlier

    def crossing(self, name: str, label: str, baseline: str, printed: float | None = None) -> Crossing:
        found = self.crossing_epsilon(name, label, baseline)
        kind = "crossed" if 0 < found < math.inf else "below the grid"
        measured = found if kind == "crossed" else None
        return Crossing("", "", "", "", "", baseline, Status(kind), printed, measured, gap=0.1, off=1.0)

    def experiment(self, name: str) -> Experiment:
        draw = self.answered("experiment", name)
        labels = ("kNN", "SVD") if "fig2_recent" in name else ("blp_mog_mf", "isgd_local", "pg_mf", "other")
        stages = tuple(
            Stage(
                Portion(share, 100, 10, None),
                tuple(
                    replace(self.curve(name, f"{label}, {share}"), label=label, algorithm=label)
                    for label in (labels if draw() > -0.9 or "fig2_recent" in name else labels[:2])
                ),
                (),
            )
            for share in (0.2, 0.5, 1.0)
        )
        made = Experiment(name, self.data, "Made", 1, 5 if draw() > 0 else 1, 1, 1, stages[-1].curves, ())
        return replace(made, growth=stages, density=expected(CatalogSpec(name=self.data)).density)

    def proof(self, entry: str) -> Proof:
        draw = self.answered("proof", entry)
        provable = (0.5, 1.0, 2.0, math.inf)[int(2 * (draw() + 1))]
        found = ("a flaw, a step", "another") if draw() > 0 else ()
        return Proof(provable, found, {"covariance": 1 + draw() / 4, "weights": 1 + draw() / 4})
