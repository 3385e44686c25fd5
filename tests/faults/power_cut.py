"""The possible contents of a disk after a power cut, computed from recorded calls.

A file's bytes are safe once the file was flushed. A name (made, renamed or removed) is safe once its folder was
flushed. Changes that were not flushed may be lost: any beginning or any end of the sequence of names may remain, and
all, half or none of the bytes, or others in their place. This is the model of ALICE (Pillai and others 2014), without
orders that lead to the same folder.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.recorder import Call

State = dict[str, bytes | None]
"""The contents of a folder, by path: a file's bytes, None for a folder."""


@dataclass
class _File:
    content: bytes = b""
    flushed: bytes | None = None


@dataclass
class _Folder:
    """`names` that are safe, and changes of names that are not yet safe, each with its time. All entries of a
    change happen at once."""

    names: dict[str, "_File | _Folder"] = field(default_factory=dict)
    waiting: list[tuple[int, dict[str, "_File | _Folder | None"]]] = field(default_factory=list)

    def seen(self, happened: Callable[[int], bool] = lambda when: True) -> dict[str, "_File | _Folder"]:
        names: dict[str, _File | _Folder | None] = dict(self.names)
        for when, change in self.waiting:
            if happened(when):
                names |= change
        return {name: node for name, node in names.items() if node is not None}


class Disk:
    """A folder and the effect of recorded calls on it."""

    def __init__(self) -> None:
        self.root = _Folder()
        self._now = 0

    def do(self, call: Call) -> None:
        self._now += 1
        if call.kind == "told":
            return
        folder, name = self._parent(call.path)
        if call.kind in ("mkdir", "create"):
            folder.waiting.append((self._now, {name: _Folder() if call.kind == "mkdir" else _File()}))
        elif call.kind in ("unlink", "rmdir"):
            folder.waiting.append((self._now, {name: None}))
        elif call.kind == "rename":
            target, new = self._parent(call.to)
            assert target is folder, (
                "a rename from folder to folder has two names that need not be safe together"
            )
            folder.waiting.append((self._now, {name: None, new: folder.seen()[name]}))
        elif call.kind == "flush folder":
            node = self._at(call.path)
            assert isinstance(node, _Folder)
            node.names, node.waiting = node.seen(), []
        else:
            node = self._at(call.path)
            assert isinstance(node, _File)
            if call.kind == "write":
                node.content = call.data
            else:
                node.flushed = node.content

    def states(self) -> Iterator[State]:
        """All states that a power cut may leave now; some of them more than once."""
        waiting = sorted(when for folder in self._folders() for when, _ in folder.waiting)
        for cut in (0, *waiting):
            for happened in (lambda when, cut=cut: when <= cut, lambda when, cut=cut: when > cut):
                for bytes_left in DAMAGES:
                    yield dict(_look(self.root, "", happened, bytes_left))

    def _at(self, path: str) -> "_File | _Folder":
        node: _File | _Folder = self.root
        for name in path.split("/") if path != "." else ():
            assert isinstance(node, _Folder)
            node = node.seen()[name]
        return node

    def _parent(self, path: str) -> tuple[_Folder, str]:
        place, _, name = path.rpartition("/")
        folder = self._at(place or ".")
        assert isinstance(folder, _Folder)
        return folder, name

    def _folders(self) -> Iterator[_Folder]:
        left = [self.root]
        while left:
            folder = left.pop()
            yield folder
            left += [node for node in folder.seen().values() if isinstance(node, _Folder)]


DAMAGES: tuple[Callable[[bytes], bytes], ...] = (
    lambda content: content,
    lambda content: b"",
    lambda content: content[: len(content) // 2],
    lambda content: hashlib.shake_128(content).digest(len(content)),
)
"""What may be left of a file's bytes that were not flushed: all, none, half, or others in their place."""


def _look(
    folder: _Folder, place: str, happened: Callable[[int], bool], bytes_left: Callable[[bytes], bytes]
) -> Iterator[tuple[str, bytes | None]]:
    for name, node in folder.seen(happened).items():
        path = f"{place}{name}"
        if isinstance(node, _File):
            yield path, node.content if node.flushed == node.content else bytes_left(node.content)
        else:
            yield path, None
            yield from _look(node, f"{path}/", happened, bytes_left)


def after_each(calls: Sequence[Call]) -> Iterator[tuple[int, list[State]]]:
    """For every number of calls made, from none to all: the states that a power cut may leave at that time."""
    for made in range(len(calls) + 1):
        yield made, after(calls[:made])


def after(calls: Sequence[Call]) -> list[State]:
    """The states that a power cut may leave after all of these calls."""
    disk = Disk()
    for call in calls:
        disk.do(call)
    return list(disk.states())


def lay_out(state: State, base: Path) -> None:
    """Brings a folder into a state."""
    for path, content in state.items():
        if content is None:
            (base / path).mkdir(exist_ok=True)
        else:
            (base / path).write_bytes(content)
