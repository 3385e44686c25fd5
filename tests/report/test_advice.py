"""Advice in words: what it says about each crossing, what it never recommends, and what it never compares."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dpmf_cli.datasets import Folders
from dpmf_cli.evaluation.crossings import Status, find_crossings
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.folders import collect_folder
from dpmf_cli.report.advice import advice
from dpmf_cli.studies.experiment import run
from tests.report.conftest import of_theta

Make = Callable[..., Experiment]


def test_lines_are_short_and_epsilon_stays_with_its_number(made: Make) -> None:
    whole = of_theta(made())
    text = advice([whole], find_crossings(whole, replicates=50))
    assert max(map(len, text.splitlines())) <= 92
    assert not any(line.endswith(("ε", "=")) for line in text.splitlines())
    assert "\u00a0" not in text


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


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder of a small run."""
    folder = tmp_path_factory.mktemp("shop")
    (folder / "shop.yaml").write_text(SHOP)
    config = load_config(folder / "shop.yaml")
    run(config, Folders(folder, folder / "cache", folder, folder))
    return folder / "shop"


def test_a_real_run(shop: Path) -> None:
    whole = collect_folder(shop).experiment
    crossings = find_crossings(whole)
    text = " ".join(advice([whole], crossings).split())
    pge, mm = (
        next(c for c in crossings if c.algorithm == key and c.baseline == "IA")
        for key in ("pge", "mm_averages")
    )
    assert pge.status == mm.status == Status.CROSSED
    assert f"For IA, take PGE: a provable ε of {pge.provable:.3g}" in text
    assert "; neighbours: bounded), by pure ε-DP:" in text
    assert (
        "; neighbours: unbounded), from everybody but the user who gets the prediction (joint), by pure ε-DP:"
        in text
    )
    assert "An ε under one heading cannot be compared with an ε under another." in text
    assert "Without noise it is GE itself" in text


def test_the_command_answers_in_words_alone(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from dpmf_cli.cli import main as cli

    cli.app(["explain", str(shop)], standalone_mode=False)
    assert "For IA, take PGE" in capsys.readouterr().out
