"""Prints what an installation of dpmf holds: `make dependencies`, or `python -m docs.makers.dependencies`.

It looks at the environment that runs it: at a plain installation, then at what each extra adds to it.
What needs a package that `pyproject.toml` names is told there, in the comment after it.
"""

import platform
import re
import tomllib
from collections.abc import Iterable
from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs.makers.reference import markdown_table

_FILE = Path(__file__).resolve().parents[2] / "pyproject.toml"
USERS = ("excel", "fetch", "parquet", "zstd")
"""The extras that are not for developers."""


def reasons() -> dict[str, str]:
    """Returns what needs each package that users install, by its name."""
    told = (line.split("  # ") for line in _FILE.read_text(encoding="utf-8").splitlines() if "  # " in line)
    return {
        str(canonicalize_name(name)): reason
        for named, reason in told
        for name in re.findall(r'"([\w.-]+)[^"]*"', named)
    }


def needed(requirements: Iterable[str]) -> dict[str, set[str]]:
    """Returns the packages that these requirements bring, each with the packages that require it."""
    found: dict[str, set[str]] = {}
    waiting = [(Requirement(each), "") for each in requirements]
    while waiting:
        requirement, parent = waiting.pop()
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        name = str(canonicalize_name(requirement.name))
        if name not in found:
            found[name] = set()
            waiting += [(Requirement(each), name) for each in distribution(name).requires or ()]
        found[name] |= {parent} - {""}
    return found


def megabytes(name: str) -> float:
    """Returns the size of a package's files on the disk, with the byte code that pip made of them."""
    places = (each.locate() for each in distribution(name).files or ())
    return sum(place.stat().st_size for place in map(Path, map(str, places)) if place.is_file()) / 1e6


def dependencies_text() -> str:
    """Returns the table, and how much it is in all."""
    project, because = tomllib.loads(_FILE.read_text(encoding="utf-8"))["project"], reasons()
    extras = project["optional-dependencies"]
    parts = {"": project["dependencies"], **{extra: extras[extra] for extra in USERS}}
    held: dict[str, float] = {}
    rows, sums = [], []
    for extra, requirements in parts.items():
        brought = needed(requirements)
        sizes = {name: megabytes(name) for name in brought if name not in held}
        held |= sizes
        for name, size in sorted(sizes.items(), key=lambda each: -each[1]):
            why = because.get(name) or f"required by {', '.join(sorted(brought[name]))}"
            rows.append((name, extra or "–", f"{size:.1f}", why))
        sums.append(f"{len(held)} packages, {sum(held.values()):,.0f} MB")
    python = f"Python {platform.python_version()} on {platform.machine()}"
    end = f"A plain installation has {sums[0]}; one with all extras, {sums[-1]}. {python}.\n"
    return f"{markdown_table(('package', 'extra', 'MB', 'what needs it'), rows)}\n{end}"


if __name__ == "__main__":
    print(dependencies_text(), end="")
