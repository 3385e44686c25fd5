"""The table of what an installation holds names every package of pyproject.toml, with what needs it."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

from docs.makers.dependencies import USERS, dependencies_text, needed, reasons

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
PAGE = (REPOSITORY / "docs" / "generated" / "performance.md").read_text()


def test_the_table_tells_what_needs_each_package_and_which_extra_brings_it() -> None:
    extras = {extra: PROJECT["optional-dependencies"][extra] for extra in USERS}
    brought = {"–": PROJECT["dependencies"], **extras}
    named = {
        Requirement(each).name.replace(".", "-"): extra
        for extra, listed in brought.items()
        for each in listed
    }
    because, made = reasons(), dependencies_text()
    assert set(because) == set(named)
    for text in (made, PAGE):
        for name, extra in named.items():
            row = rf"^\| {name} \| {extra} \| \d+\.\d \| {re.escape(because[name])} \|$"
            assert re.search(row, text, re.MULTILINE), row
        plain = len(re.findall(r"^\| \S+ \| – \|", text, re.MULTILINE))
        assert f"A plain installation has {plain} packages" in text


def test_what_packages_require_is_followed_but_not_their_extras() -> None:
    brought = needed(["pandas>=2", "requests; python_version < '3'"])
    assert brought["pandas"] == set()
    assert brought["numpy"] == {"pandas"}
    assert brought.keys().isdisjoint({"pyarrow", "requests"})
