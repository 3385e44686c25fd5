"""An experiment as it was collected, and what the cache remembers of files that nobody has changed since.

A command that only shows finished results takes them from there. So it imports no algorithm, and reads no task.
"""

import pickle
import stat
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import dpmf_cli
from dpmf_cli.core.files import cache_folder, is_ours, read_file, sha256, write_whole
from dpmf_cli.evaluation.curves import Experiment
from dpmf_cli.evaluation.metrics import RMSE

Ledger = list[dict[str, Any]]
"""The steps of a ledger as plain data."""


@dataclass(frozen=True)
class Collected:
    """An experiment, and the ledger of each of its curves by label, with steps as plain data."""

    experiment: Experiment
    ledgers: dict[str, Ledger]
    metric: str = RMSE.key

    @property
    def shown(self) -> Experiment:
        """The experiment, showing the metric that its config selects. `experiment` itself shows RMSE."""
        return self.experiment.showing(self.metric)


def remembered(what: Iterable[str], inputs: Iterable[Path], make: Callable[[], tuple[Any, bool]]) -> Any:
    """Returns what `make` made before, unless a file or folder of `inputs`, or dpmf itself, has changed since.

    make  returns a value, and whether to remember it
    """
    key = b""
    with suppress(Exception):  # another command may remove files, and unpickling may raise anything
        path = cache_folder() / "remembered" / sha256(repr([*what]).encode())
        key = sha256(repr([sys.version, _code(), *map(_state, inputs)]).encode()).encode()
        # Unpickling may run any code, so nobody else may have written the file.
        if is_ours(path.lstat(), stat.S_IFREG):
            content = read_file(path)
            if content[:128] == key + sha256(content[128:]).encode():
                return pickle.loads(content[128:])
    made, keep = make()
    if key and keep:
        payload = pickle.dumps(made)
        with suppress(OSError):
            write_whole(path, key + sha256(payload).encode() + payload, 0o600)
    return made


@cache
def _code() -> list[tuple[str, int, int]]:
    return _state(Path(dpmf_cli.__file__).parent)


def _state(path: Path) -> list[tuple[str, int, int]]:
    """Returns name, size and time of a file, or of all files in a folder, apart from bytecode."""
    files = sorted(each for each in [path, *path.rglob("*")] if each.is_file() and each.suffix != ".pyc")
    return [(str(each), (status := each.stat()).st_size, status.st_mtime_ns) for each in files]
