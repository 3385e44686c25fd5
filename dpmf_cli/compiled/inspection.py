"""What there is of machine code in the cache, looked at and left as it is; and an end to all of it."""

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
    """An entry: sound, of an older version (of sources, packages, settings or another processor), or damaged.

    size  bytes
    """

    path: Path
    size: int
    condition: Condition


def inspected() -> Iterator[Inspected]:
    """Every entry, verified as before it would be used."""
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
    """Removes all entries, and nothing else that the folder may hold; returns how many there were."""
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
