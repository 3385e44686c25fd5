"""The shipped configs, and helpers to read configs from text, for tests of what is accepted and what is not."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from dpmf_cli.experiment.config import ExperimentConfig, load_config
from tests.committed import ROOT, committed


def shipped(root: Path = ROOT) -> list[Path]:
    """The configs that are part of the repository."""
    return committed("configs/*.yaml", root=root)


SHIPPED = shipped()
loaded = cache(load_config)  # for the shipped ones, at which several tests look: to load all takes seconds

GOOD = """\
dataset: ml-100k
epsilons: [0.1, 1, 10]
algorithms:
  - algorithm: pge
  - algorithm: isgd
    factors: 3
"""
HEAD = "dataset: ml-100k\nepsilons: [1]\n"
FILE = """\
dataset:
  kind: csv
  name: shop
  path: ratings.csv
  columns: {user: customer, item: sku, rating: stars}
  scale: {minimum: 1, maximum: 5}
epsilons: [0.1, 1, 10]
algorithms: [pge]
"""
SHOP = """\
dataset: {kind: csv, name: shop, path: a.csv, columns: {user: a, item: b, rating: c, timestamp: d},
          scale: {minimum: 1, maximum: 5}}
epsilons: [0.1, 1, 10]
"""


def load(tmp_path: Path, text: str) -> ExperimentConfig:
    path = tmp_path / "x.yaml"
    path.write_text(text)
    return load_config(path)


def cases(name: str) -> dict[str, Any]:
    """The table `tests/config/name.yaml`, by the name of each case: a text, and no two alike."""
    text = (ROOT / "tests" / "config" / f"{name}.yaml").read_text()
    found: dict[str, Any] = yaml.safe_load(text)
    node: Any = yaml.compose(text, yaml.SafeLoader)
    assert list(found) == [key.value for key, _ in node.value]
    return found


def written(folder: Path, case: dict[str, Any]) -> Path:
    """Writes the files of a case, and returns the path of the config."""
    text = FILE if case.get("from") == "file" else GOOD
    for before, after in case.get("replace", {}).items():
        assert before in text
        text = text.replace(before, after)
    text += case.get("more", "")
    for key, head in (("text", ""), ("entries", HEAD), ("shop", SHOP)):
        text = head + case[key] if key in case else text
    if "own" in case:
        (folder / "base.yaml").write_text(text)
        text = case["own"]
    path = folder / "x.yaml"
    path.write_bytes(bytes.fromhex(case["bytes"]) if "bytes" in case else text.encode())
    return path
