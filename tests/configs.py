"""The shipped configs, and helpers to read configs from text, for tests of what is accepted and what is not."""

from pathlib import Path

from dpmf_cli.experiment.config import ExperimentConfig, load_config
from tests.committed import ROOT, committed


def shipped(root: Path = ROOT) -> list[Path]:
    """The configs that are part of the repository."""
    return committed("configs/*.yaml", root=root)


SHIPPED = shipped()

GOOD = """\
dataset: ml-100k
epsilons: [0.1, 1, 10]
algorithms:
  - algorithm: pge
  - algorithm: isgd
    factors: 3
"""
THETAS = GOOD.replace("epsilons", "thetas")
NETFLIX = GOOD.replace("ml-100k", "netflix")
TWINS = "twins: true\n"
GROWTH = "growth: {portions: [0.5, 1], order: timestamp}\n"


def load(tmp_path: Path, text: str) -> ExperimentConfig:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    return load_config(path)
