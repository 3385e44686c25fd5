"""A run that takes a second: its config, its number of tasks, and the files that it promises."""

import csv
from pathlib import Path

TINY = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 120, items: 80, ratings: 2400}
folds: 4
runs: 3
epsilons: [0.5, 2, 8]
baselines: [ga, ia, ge, {algorithm: als, factors: 2, iterations: 3}]
algorithms:
  - algorithm: pge
  - {algorithm: isgd, factors: 2, epochs: 1500}
"""
OUTPUTS = ("curves.csv", "crossings.csv", "crossings.md", "ledger.csv", "curves.png", "curves.svg")
TASKS = 4 * 3 + 3 * 4 * 3


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file."""
    return list(csv.DictReader(path.read_text().splitlines()))


def outputs(folder: Path) -> dict[str, bytes]:
    return {name: (folder / "results" / "tiny" / name).read_bytes() for name in OUTPUTS}
