"""Reads YAML with the place of every key and value, so that an error can say file:line:column."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from dpmf_cli.errors import DpmfError
from dpmf_cli.files import read_file

PLAIN_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
MAXIMUM_DEPTH = 16
MAXIMUM_VALUES = 20_000
MAXIMUM_BYTES = 256 << 10
MAXIMUM_NUMBER = 2**64

KeyPath = tuple[str | int, ...]
"""The path to a value from the top: keys of mappings and indices of lists."""


@dataclass(frozen=True)
class Place:
    """1-based line and column in a file."""

    path: Path
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}"


@dataclass
class Document:
    """A parsed YAML file: plain data, and the place of each key and each value."""

    path: Path
    data: Any
    keys: dict[KeyPath, Place] = field(default_factory=dict)
    values: dict[KeyPath, Place] = field(default_factory=dict)

    def place_of(self, path: KeyPath, *, key: bool) -> Place:
        """Returns the place of the key or value at `path`, or of the nearest enclosing one in the file."""
        for length in range(len(path), 0, -1):
            prefix = path[:length]
            at = (self.keys if key else self.values).get(prefix) or self.values.get(prefix)
            if at:
                return at
        return Place(self.path, 1, 1)


class _Loader(yaml.SafeLoader):
    """Loads safe YAML. `1e-3` is a number, unlike in YAML 1.1."""


_Loader.yaml_implicit_resolvers = {
    first: list(resolvers) for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)[eE][-+]?[0-9]+$"),
    list("-+0123456789."),
)


def read(path: Path) -> Document:
    """Parses a YAML file. Raises DpmfError, with the place, for anything but one mapping of plain data."""
    try:
        data = read_file(path, MAXIMUM_BYTES + 1)
        if len(data) > MAXIMUM_BYTES:
            raise DpmfError(f"{path}:1:1: more than {MAXIMUM_BYTES >> 10} KiB, too large for a config")
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise DpmfError(f"{path}:{line}:{column}: is not UTF-8 text; save the file as UTF-8") from None
    except OSError as error:
        raise DpmfError(f"{path}: cannot be read: {error.strerror or error}; name a config") from None
    try:
        loader = _Loader(text)
    except yaml.reader.ReaderError as error:
        line, column = _place_in(text, error.position)
        raise DpmfError(f"{path}:{line}:{column}: not valid YAML: {error.reason}") from None
    try:
        node = loader.get_single_node()
        document = Document(path, None)
        if node is None:
            raise DpmfError(f"{path}:1:1: the file is empty; it needs at least `dataset` and `algorithms`")
        document.data = _build(loader, node, (), document)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        at = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        raise DpmfError(f"{path}:{at}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise DpmfError(f"{path}:1:1: not valid YAML: {error}") from None
    finally:
        loader.dispose()
    if not isinstance(document.data, dict):
        raise DpmfError(f"{path}:1:1: a config is a mapping of keys to values")
    return document


def _build(loader: _Loader, node: yaml.Node, path: KeyPath, document: Document) -> Any:
    """Returns the plain data of a node, and notes its places. Follows aliases within limits: nested aliases can blow
    a few bytes up to gigabytes, and an alias inside its own anchor never ends."""
    if len(path) > MAXIMUM_DEPTH or len(document.values) > MAXIMUM_VALUES:
        raise DpmfError(f"{_place(document.path, node)}: too large or nested too deep for a config")
    here = document.values[path] = _place(document.path, node)
    if isinstance(node, yaml.CollectionNode) and node.tag not in PLAIN_COLLECTIONS:
        raise DpmfError(f"{here}: not valid YAML here: the tag {node.tag} is not plain data")
    if isinstance(node, yaml.MappingNode):
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = loader.construct_object(key_node)
            at = _place(document.path, key_node)
            if not isinstance(key, str):
                raise DpmfError(f"{at}: key {key!r} is not a word; put it in quotes")
            if key in mapping:
                raise DpmfError(f'{at}: duplicate key "{key}"; keep one of the two')
            document.keys[(*path, key)] = at
            mapping[key] = _build(loader, value_node, (*path, key), document)
        return mapping
    if isinstance(node, yaml.SequenceNode):
        return [_build(loader, child, (*path, index), document) for index, child in enumerate(node.value)]
    value = loader.construct_object(node)
    if isinstance(value, int) and abs(value) > MAXIMUM_NUMBER:
        raise DpmfError(f"{here}: the number is too large for a config")
    if isinstance(value, str) and not _is_text(value):
        raise DpmfError(f"{here}: the text holds a character that no file can hold")
    return value


def _is_text(value: str) -> bool:
    """Whether a text has no NUL and no half of a character. Only escapes in quotes can make these."""
    return "\0" not in value and not any("\ud800" <= character <= "\udfff" for character in value)


def _place_in(text: str, position: int) -> tuple[int, int]:
    before = text[:position]
    return before.count("\n") + 1, position - before.rfind("\n")


def _place(path: Path, node: yaml.Node) -> Place:
    return Place(path, node.start_mark.line + 1, node.start_mark.column + 1)
