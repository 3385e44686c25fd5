"""Reads a config, and those that it extends, as one document in which each key and value keeps its place in its file.

A name means a shipped config wherever there is no file of that name.
"""

import difflib
import glob
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.files import PACKAGE, read_file
from dpmf_cli.core.terminal import say

PLAIN_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
MAXIMUM_DEPTH = 16
MAXIMUM_VALUES = 20_000
MAXIMUM_BYTES = 256 << 10
MAXIMUM_NUMBER = 2**64

KeyPath = tuple[str | int, ...]
"""The path to a value from the top: keys of mappings and indices of lists."""


MARK = "."
"""Separates an experiment's own name from the marks of what was changed. Names of shipped configs do not have it."""

HELD_OUT, RUNS = "held-out-", "runs-"
"""How the marks for fewer held-out folds and for fewer runs begin. The mark for another data set is its key."""


def whole_name(name: str) -> str:
    """The name of the complete experiment, given that of a reduction or its own."""
    return name.partition(MARK)[0]


def is_reduction(name: str, whole: str) -> bool:
    """Whether the experiment of that name is a reduction of `whole`, which may be a reduction itself."""
    return name.startswith(f"{whole}{MARK}")


def is_on_own_data(name: str) -> bool:
    """Whether an experiment of that name uses its config's data set: no mark names another data set."""
    _, *marks = name.split(MARK)
    return all(mark.startswith((HELD_OUT, RUNS)) for mark in marks)


@dataclass(frozen=True)
class Place:
    """1-based line and column in a file. A config that a program gives has the path `Path()`, and no lines."""

    path: Path
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}" if self.path.name else "config"


@dataclass
class Document:
    """A parsed YAML file: plain data, and (the place of the key, the place of the value) of each part of them."""

    path: Path
    data: Any
    places: dict[KeyPath, tuple[Place, Place]] = field(default_factory=dict)

    def place_of(self, path: KeyPath, *, key: bool) -> Place:
        """The place of the key or value at `path`, or of the nearest enclosing one in the file."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]][0 if key else 1]
        return Place(self.path, 1, 1)


class _Loader(yaml.SafeLoader):
    """A loader of safe YAML, in which `1e-3` is a number, unlike in YAML 1.1."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)[eE][-+]?[0-9]+$"),
    list("-+0123456789."),
)


def read(path: Path) -> Document:
    """The document of a YAML file. Raises DpmfError, with the place, for anything but one mapping of plain data."""
    try:
        data = read_file(path, MAXIMUM_BYTES + 1)
        if len(data) > MAXIMUM_BYTES:
            raise DpmfError(f"{path}:1:1: more than {MAXIMUM_BYTES >> 10} KiB, too large for a config")
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line, column = _place_in(data[: error.start].decode("latin-1"))
        raise DpmfError(f"{path}:{line}:{column}: is not UTF-8 text; save the file as UTF-8") from None
    except OSError as error:
        raise DpmfError(f"{path}: cannot be read: {error.strerror or error}; name a config") from None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        document = Document(path, None)
        if node is None:
            raise DpmfError(f"{path}:1:1: the file is empty; it needs at least `dataset` and `algorithms`")
        document.data = _build(loader, node, (), document, None)
    except yaml.reader.ReaderError as error:
        line, column = _place_in(text[: error.position])
        raise DpmfError(f"{path}:{line}:{column}: not valid YAML: {error.reason}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        fix = "; indent by spaces instead of tabs" * ("'\\t'" in str(error.problem))
        raise DpmfError(f"{path}:{at}: not valid YAML: {error.problem}{fix}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise DpmfError(f"{path}:1:1: not valid YAML: {error}") from None
    if not isinstance(document.data, dict):
        raise DpmfError(f"{path}:1:1: a config is a mapping of keys to values, like `dataset: ml-100k`")
    return document


def _build(loader: _Loader, node: yaml.Node, path: KeyPath, document: Document, key_at: Place | None) -> Any:
    """The plain data of a node, and notes its places. Follows aliases within limits: nested aliases can blow
    a few bytes up to gigabytes, and an alias inside its own anchor never ends."""
    if len(path) > MAXIMUM_DEPTH or len(document.places) > MAXIMUM_VALUES:
        raise DpmfError(f"{_place_of(document.path, node)}: too large or nested too deep for a config")
    here = _place_of(document.path, node)
    document.places[path] = key_at or here, here
    if isinstance(node, yaml.CollectionNode) and node.tag not in PLAIN_COLLECTIONS:
        raise DpmfError(f"{here}: not valid YAML here: the tag {node.tag} is not plain data")
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node)
            at = _place_of(document.path, key_node)
            if not isinstance(key, str):
                raise DpmfError(f"{at}: key {key!r} is not a word; put it in quotes")
            key = "split" if (path, key) == ((), "test") else key  # its older spelling
            if key in mapping:
                older = " (`test` is its older name)" if (path, key) == ((), "split") else ""
                raise DpmfError(f'{at}: duplicate key "{key}"{older}; keep one of the two')
            mapping[key] = _build(loader, value_node, (*path, key), document, at)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_build(loader, child, (*path, at), document, None) for at, child in enumerate(node.value)]
    value = loader.construct_object(node)
    if isinstance(value, int) and abs(value) > MAXIMUM_NUMBER:
        raise DpmfError(f"{here}: the number is too large for a config")
    # Only escapes in quotes can make a NUL or half of a character.
    if isinstance(value, str) and any(each == "\0" or "\ud800" <= each <= "\udfff" for each in value):
        raise DpmfError(f"{here}: the text holds a character that no file can hold")
    return value


def _place_in(before: str) -> tuple[int, int]:
    return before.count("\n") + 1, len(before) - before.rfind("\n")


def _place_of(path: Path, node: yaml.Node) -> Place:
    return Place(path, node.start_mark.line + 1, node.start_mark.column + 1)


FOLDER = PACKAGE / "shipped"
"""The folder of shipped configs. In the repository it links to configs/, so that a built package has them, too."""

SUFFIXES = (".yaml", ".yml")


@cache
def shipped_names() -> tuple[str, ...]:
    """The names of all shipped configs, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def shipped_file(path: Path) -> Path | None:
    """The shipped config of that name, with or without its suffix; None for other names, and for a path."""
    name = path.stem if path.suffix in SUFFIXES else path.name
    return FOLDER / f"{name}.yaml" if path == Path(path.name) and name in shipped_names() else None


def near_names(path: Path) -> str:
    """A hint at the shipped config with the nearest name, or at the command that lists all."""
    near = difflib.get_close_matches(path.stem, shipped_names(), n=1, cutoff=0.6)
    return did_you_mean(path.stem, near) or "; `dpmf configs` lists the shipped configs"


def means_a_config(path: Path) -> bool:
    """Whether a path means a config and not a folder of results: the name of a file, or of a shipped config."""
    return not os.path.isdir(path) and (path.suffix in SUFFIXES or shipped_file(path) is not None)


def config_file(path: Path) -> Path:
    """The config file that a path means: the file, with or without its suffix, else the shipped config. Says
    which one it took if that is not the path as written. Raises DpmfError if there is none."""
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


_tell = cache(say)
"""Says a message once in a process, however often a config is read."""

EXTENDS = "extends"
MOST_FILES = 8
"""Most files in one chain. A reader could not follow more either."""


def read_whole(path: Path) -> Document:
    """A config with what it extends. Raises DpmfError, with the place, for what cannot be extended."""
    found = config_file(path)
    return _whole(read(found), (found.resolve(),))


def given(data: Mapping[str, Any]) -> Document:
    """A config that a program gives as plain data, with what it extends. Paths are relative to the working
    directory. Raises DpmfError for what is no plain data; arrays and NumPy's numbers are."""
    document = Document(Path(), None)
    try:
        loader = _Loader(json.dumps(data, ensure_ascii=False, default=lambda each: each.tolist()))
        node = loader.get_single_node()
        assert node, "JSON is never empty"
        document.data = _build(loader, node, (), document, None)
    except (TypeError, ValueError, AttributeError, RecursionError, yaml.YAMLError) as error:
        raise DpmfError(f"config: is not plain data ({error}); give what a YAML file could hold") from None
    return _whole(document, ())


def _whole(document: Document, chain: tuple[Path, ...]) -> Document:
    """`document` on top of what it extends. `chain` has the files that led here, `document` last."""
    if EXTENDS not in document.data:
        return document
    place = document.place_of((EXTENDS,), key=False)
    named = document.data.pop(EXTENDS)
    if not isinstance(named, str) or not named:
        raise DpmfError(f"{place}: {EXTENDS}: name one file, relative to this one: `{EXTENDS}: other.yaml`")
    path = document.path.parent / named
    if not os.path.isfile(path):  # reading a pipe or a device might never end
        shipped = shipped_file(Path(named))
        if shipped is None:
            beside = glob.glob("*.y*ml", root_dir=path.parent)
            near = difflib.get_close_matches(path.name, beside, n=1)
            raise DpmfError(f"{place}: {EXTENDS}: there is no file {path}{did_you_mean(path.name, near)}")
        path = shipped
    if path.resolve() in chain:
        circle = " → ".join(each.name for each in (*chain, path))
        raise DpmfError(f"{place}: {EXTENDS}: {circle} is a circle; remove one `{EXTENDS}` of it")
    if len(chain) == MOST_FILES:
        many = f"more than {MOST_FILES} files in one chain"
        raise DpmfError(f"{place}: {EXTENDS}: {many}; copy one into another")
    base = _whole(read(path), (*chain, path.resolve()))
    base.data.pop("name", None)  # it names a results folder
    relative_to(document.path.parent, base)
    replaced: set[KeyPath] = set()
    data = _merged(document.data, base.data, (), replaced)
    kept = {
        at: places
        for at, places in base.places.items()
        if not any(at[:length] in replaced for length in range(len(at) + 1))
    }
    return Document(document.path, data, {**kept, **document.places})


def _merged(
    own: dict[str, Any], base: dict[str, Any], path: KeyPath, replaced: set[KeyPath]
) -> dict[str, Any]:
    """Two mappings merged key by key. Any other value in `own` replaces the base's, and null removes it. So does a
    data set of another `kind` and a split `by` something else, which may not hold the same keys.

    replaced   receives the paths at and below which nothing of the base is left
    """
    merged = dict(base)
    for key, value in own.items():
        before, here = base.get(key), (*path, key)
        tag = "by" if key == "split" else "kind"
        kind = before.get(tag) if isinstance(before, dict) else None
        if isinstance(value, dict) and isinstance(before, dict) and value.get(tag, kind) == kind:
            merged[key] = _merged(value, before, here, replaced)
            continue
        replaced.add(here)
        merged[key] = value
        if value is None and key in base:
            del merged[key]
    return merged


def relative_to(folder: Path, base: Document) -> None:
    """Rewrites the paths of the base's data set and test file, relative to the base, to be relative to `folder`."""
    if base.path.parent == folder:
        return
    for holder in map(base.data.get, ("dataset", "split")):
        path = holder.get("path") if isinstance(holder, dict) else None
        if isinstance(holder, dict) and isinstance(path, str) and path and not path.startswith(("/", "~")):
            holder["path"] = os.path.relpath(base.path.parent / path, folder)
