"""The configs that dpmf ships, which a name means wherever there is no file of that name."""

import difflib
import os
from functools import cache
from pathlib import Path

import dpmf_cli
from dpmf_cli.errors import DpmfError, did_you_mean
from dpmf_cli.terminal import say

FOLDER = Path(dpmf_cli.__file__).parent / "shipped"
"""In the repository a link to its configs/, so that a built package has them too."""

SUFFIXES = (".yaml", ".yml")


@cache
def names() -> tuple[str, ...]:
    """Of all configs that are shipped, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def shipped_file(path: Path) -> Path | None:
    """The shipped config of that name, with or without its suffix; None where none has it, or a folder is named."""
    name = path.stem if path.suffix in SUFFIXES else path.name
    return FOLDER / f"{name}.yaml" if path == Path(path.name) and name in names() else None


def near_names(path: Path) -> str:
    """A hint at the shipped config whose name is nearest, or at the command that lists all."""
    near = difflib.get_close_matches(path.stem, names(), n=1, cutoff=0.6)
    return did_you_mean(path.stem, near) or "; `dpmf configs` lists those that dpmf ships"


def means_a_config(path: Path) -> bool:
    """Whether it is not a folder of results but a config: a file's name, or the name of a shipped one."""
    return not os.path.isdir(path) and (path.suffix in SUFFIXES or shipped_file(path) is not None)


def config_file(path: Path) -> Path:
    """The file that is meant: the one that is there, with or without its suffix, else the shipped one of that name.

    It is told which one was taken where that is not what was written. Raises DpmfError where there is none.
    """
    if os.path.exists(path) and not os.path.isdir(path):
        return path
    beside = path.with_name(f"{path.name}.yaml") if path.name else path
    if os.path.isfile(beside):
        _tell(f"{path}: taken from {beside}, which is here")
        return beside
    if (found := shipped_file(path)) is not None:
        _tell(f"{path}: there is no such file here; taken from the configs that dpmf ships")
        return found
    raise DpmfError(f"{path}: no such file{near_names(path)}")


@cache
def _tell(message: str) -> None:
    """Once in a process, however often a config is read."""
    say(message)
