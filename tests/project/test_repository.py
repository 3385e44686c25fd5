"""Facts of the repository: CI runs from a clone only, one version is stated, and a built package has every file."""

import re
import tomllib
from pathlib import Path

import yaml

import dpmf_cli

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = (ROOT / ".ci" / "run").read_text()


def test_no_path_leads_outside_of_the_repository() -> None:
    program = re.sub(r"#.*", "", SCRIPT)
    first, *rest = [line for line in program.splitlines() if ".." in line]
    assert first == 'cd "$(dirname "$0")/.."'
    assert rest == []
    assert set(re.findall(r"(?<![\w.}])/[\w/]+", program)) <= {"/dev/null", "/usr/bin/env"}


def test_the_version_is_cited_and_stands_in_the_changelog() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == dpmf_cli.__version__
    versions = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[:2] == ["Unreleased", dpmf_cli.__version__]


PACKAGE = ROOT / "dpmf_cli"


def test_files_that_are_not_modules_are_packed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    packed = {path for pattern in settings["package-data"]["dpmf_cli"] for path in PACKAGE.glob(pattern)}
    files = {
        path for path in PACKAGE.rglob("*.*") if path.suffix != ".py" and path.parent.name != "__pycache__"
    }
    assert {path.name for path in files} >= {"catalog.yaml", "friedman2016.yaml", "style.css", "py.typed"}
    assert files - packed == set()
