"""The shipped configs; and configs as text, and reading them, for the tests of what is accepted and what is not."""

import subprocess
from pathlib import Path

from dpmf_cli.config import ExperimentConfig, load_config

ROOT = Path(__file__).resolve().parents[1]


def shipped(root: Path = ROOT) -> list[Path]:
    """The configs that git knows: a user's own may lie beside them. All that are there, where there is no git."""
    asked = ["git", "-C", str(root), "ls-files", "-z", "--", "configs/*.yaml"]
    try:
        listed = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    except FileNotFoundError:
        listed = ""
    known = [root / name for name in listed.split("\0") if name]
    return sorted(path for path in known or (root / "configs").glob("*.yaml") if path.exists())


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
