"""Inspects the cache of machine code without changing it, and clears it."""

import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from numba.core.dispatcher import Dispatcher

from dpmf_cli.compiled import entries, identity
from dpmf_cli.files import remove

Condition = Literal["sound", "older", "damaged"]


@dataclass(frozen=True)
class Inspected:
    """An entry and its condition: sound, older or damaged.

    An older entry was made from other sources, packages or settings, or for another processor.

    size  bytes
    """

    path: Path
    size: int
    condition: Condition


def inspected() -> Iterator[Inspected]:
    """Yields every entry, verified as it would be before its use."""
    for path in entries.entries():
        try:
            size = path.stat().st_size
            key, _ = entries.content(path)
            yield Inspected(path, size, "sound" if _is_current(json.loads(key), path) else "older")
        except FileNotFoundError:
            continue  # another process has just removed it
        except (entries.Damaged, OSError, ValueError):
            yield Inspected(path, size, "damaged")


def clear() -> int:
    """Removes all entries, and no other files of the folder; returns how many entries there were."""
    found = list(entries.entries())
    for path in found:
        remove(path)
    return len(found)


def _is_current(key: dict[str, Any], path: Path) -> bool:
    """Whether this dpmf on this machine would use the entry."""
    module, _, name = key["kernel"].rpartition(".")
    if not module.startswith("dpmf_cli."):
        return False
    try:
        dispatcher = getattr(importlib.import_module(module), name, None)
    except ImportError:
        return False
    if not isinstance(dispatcher, Dispatcher):
        return False
    target: Any = dispatcher.targetctx
    now = identity.key_of(dispatcher, (), target.codegen().magic_tuple())
    line = identity.as_bytes({**now, "signature": key["signature"]})
    return path.name == entries.file_of(key["kernel"], key["signature"], line)
