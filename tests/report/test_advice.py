"""Advice on a real run, by its command. What it says of each crossing is in `expected/words.txt`."""

from pathlib import Path

import pytest

from dpmf_cli.cli import main as cli
from dpmf_cli.evaluation.crossings import Status, find_crossings
from tests.command import run_config

SHOP = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 200, items: 60, ratings: 5000}
folds: 4
runs: 2
epsilons: [0.2, 2, 20]
twins: true
algorithms:
  - algorithm: pge
  - {algorithm: mm_averages, noise: laplace}
"""


def test_the_command_answers_in_words_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    crossings = find_crossings(run_config(tmp_path, "shop", SHOP).collected.experiment)
    pge, mm = (
        next(c for c in crossings if c.algorithm == key and c.baseline == "IA")
        for key in ("pge", "mm_averages")
    )
    assert pge.status == mm.status == Status.CROSSED
    capsys.readouterr()
    cli.app(["explain", str(tmp_path / "results" / "shop")], standalone_mode=False)
    text = " ".join(capsys.readouterr().out.split())
    for said in (
        f"For IA, take PGE: a provable ε of {pge.provable:.3g}",
        "; neighbours: bounded), by pure ε-DP:",
        "; neighbours: unbounded), from everybody but the user who gets the prediction (joint), by pure ε-DP:",
        "An ε under one heading cannot be compared with an ε under another.",
        "Without noise it is GE itself",
    ):
        assert said in text
