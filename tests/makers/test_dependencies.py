"""The table of what an installation holds names every package of pyproject.toml, with what needs it."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from docs.makers.dependencies import USERS, dependencies_text, needed, reasons

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
EXTRAS = {"–": PROJECT["dependencies"], **{each: PROJECT["optional-dependencies"][each] for each in USERS}}


def test_the_table_tells_what_needs_each_package_and_which_extra_brings_it() -> None:
    because = reasons()
    page = (REPOSITORY / "docs" / "generated" / "performance.md").read_text()
    for text in (dependencies_text(), page):
        for extra, listed in EXTRAS.items():
            for name in (Requirement(each).name.replace(".", "-") for each in listed):
                assert re.search(
                    rf"\n\| {name} \| {extra} \| \d+\.\d \| {re.escape(because[name])} \|\n", text
                )
        plain = len(re.findall(r"^\| \S+ \| – \|", text, re.MULTILINE))
        assert f"A plain installation has {plain} packages" in text
    assert len(because) == sum(map(len, EXTRAS.values()))
    brought = needed(["pandas>=2", "requests; python_version < '3'"])
    assert brought["numpy"] == {"pandas"}
    assert brought.keys().isdisjoint({"pyarrow", "requests"})
