"""The configs that dpmf ships. A name means a shipped config wherever there is no file of that name."""

import difflib
import os
from functools import cache
from pathlib import Path

import dpmf_cli
from dpmf_cli.errors import DpmfError, did_you_mean
from dpmf_cli.terminal import say

FOLDER = Path(dpmf_cli.__file__).parent / "shipped"
"""The folder of shipped configs. In the repository it links to configs/, so that a built package has them, too."""

SUFFIXES = (".yaml", ".yml")


@cache
def names() -> tuple[str, ...]:
    """Returns the names of all shipped configs, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def shipped_file(path: Path) -> Path | None:
    """Returns the shipped config of that name, with or without its suffix.

    Returns None if there is none, or if `path` has a folder before the name.
    """
    name = path.stem if path.suffix in SUFFIXES else path.name
    return FOLDER / f"{name}.yaml" if path == Path(path.name) and name in names() else None


def near_names(path: Path) -> str:
    """Returns a hint at the shipped config with the nearest name, or at the command that lists all."""
    near = difflib.get_close_matches(path.stem, names(), n=1, cutoff=0.6)
    return did_you_mean(path.stem, near) or "; `dpmf configs` lists the shipped configs"


def means_a_config(path: Path) -> bool:
    """Whether a path means a config and not a folder of results: the name of a file, or of a shipped config."""
    return not os.path.isdir(path) and (path.suffix in SUFFIXES or shipped_file(path) is not None)


def config_file(path: Path) -> Path:
    """Returns the config file that a path means: the file, with or without its suffix, else the shipped config.

    Says which one it took if that is not the path as written. Raises DpmfError if there is none.
    """
    if os.path.exists(path) and not os.path.isdir(path):
        return path
    beside = path.with_name(f"{path.name}.yaml") if path.name else path
    if os.path.isfile(beside):
        _tell(f"{path}: no such file; using {beside}")
        return beside
    if (found := shipped_file(path)) is not None:
        _tell(f"{path}: no such file here; using the shipped config of that name")
        return found
    raise DpmfError(f"{path}: no such file{near_names(path)}")


@cache
def _tell(message: str) -> None:
    """Says a message once in a process, however often a config is read."""
    say(message)
