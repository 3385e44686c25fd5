"""A built package has every file of the package in the repository.

A run from the clone would not notice a missing one.
"""

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "dpmf_cli"


def test_files_that_are_not_modules_are_packed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packed = {path for pattern in settings["package-data"]["dpmf_cli"] for path in PACKAGE.glob(pattern)}
    files = {
        path for path in PACKAGE.rglob("*.*") if path.suffix != ".py" and path.parent.name != "__pycache__"
    }
    assert {path.name for path in files} >= {"catalog.yaml", "friedman2016.yaml", "style.css", "py.typed"}
    assert files - packed == set()
