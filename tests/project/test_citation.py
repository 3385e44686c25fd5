"""All places that state the version state the same one."""

import re
from pathlib import Path

import yaml

import dpmf_cli

ROOT = Path(__file__).resolve().parents[2]


def test_the_version_is_cited_and_stands_in_the_changelog() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert cited["version"] == dpmf_cli.__version__
    versions = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert versions[:2] == ["Unreleased", dpmf_cli.__version__]
