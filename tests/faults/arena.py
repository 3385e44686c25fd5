"""One small experiment into which faults are injected, and its results without faults."""

import os
import random
import shutil
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dpmf_cli.core.files import WRITING
from tests import command
from tests.faults.tally import FULL, Row

NAME = "tiny"
CONFIG = """\
dataset: {kind: csv, name: made, path: ratings.csv, columns: {user: user, item: item, rating: stars},
          scale: {minimum: 1, maximum: 5, step: 1}}
folds: 4
runs: 3
epsilons: [0.5, 2, 8]
refine: false
baselines: [ga, ia, ge]
algorithms:
  - algorithm: pge
  - {algorithm: isgd, factors: 2, epochs: 100}
"""
PATIENCE = 120


def ratings_csv(seed: int = 1) -> str:
    """About 900 ratings of 40 items by 60 users."""
    rng = random.Random(seed)
    pairs = [
        (user, item) for user in range(60) for item in range(40) if rng.random() < 0.38 or item == user % 40
    ]
    rows = [f"{user},{item},{min(5, max(1, round(rng.gauss(3 + item % 3 / 2, 1))))}" for user, item in pairs]
    return "\n".join(["user,item,stars", *rows, ""])


def files(results: Path) -> dict[str, bytes]:
    """The bytes of every result, by its name. A manifest says when and on which machine a run was made."""
    return {
        str(path.relative_to(results)): path.read_bytes()
        for path in results.rglob("*")
        if path.is_file() and path.name != "manifest.json" and path.suffix != ".damaged"
    }


def differing(found: dict[str, bytes], expected: dict[str, bytes]) -> int:
    """The number of bytes that differ, are missing or are superfluous."""
    count = 0
    for name in found.keys() | expected.keys():
        ours, theirs = found.get(name, b""), expected.get(name, b"")
        count += abs(len(ours) - len(theirs)) + sum(a != b for a, b in zip(ours, theirs, strict=False))
    return count


@dataclass
class Arena:
    """A folder with a config and its data. `expected` is what a run without faults gives, `seconds` how long it takes.

    more   of the environment of commands that begin from nothing
    """

    folder: Path
    expected: dict[str, bytes] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    more: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.results, self.cache, self.kernels = (
            self.folder / name for name in ("results", "cache", "kernels")
        )
        (self.folder / f"{NAME}.yaml").write_text(CONFIG)
        (self.folder / "ratings.csv").write_text(ratings_csv())

    def start(
        self, *, jobs: int = 1, path: Path | None = None, warm: bool = False
    ) -> subprocess.Popen[str] | command.Forked:
        """The command, in a session of its own; `path` goes in front of Python's own.

        warm   forked from this process, instead of begun from nothing
        """
        words = ("run", f"{NAME}.yaml", "-j", str(jobs))
        if warm:
            return command.fork(self.folder, self.cache, *words)
        places = os.pathsep.join(filter(None, [str(path or ""), os.environ.get("PYTHONPATH")]))
        return command.start(self.folder, self.cache, *words, **{"PYTHONPATH": places, **self.more})

    def finish(self, *, jobs: int = 1, path: Path | None = None, warm: bool = False) -> str:
        """Runs to the end, and returns the output."""
        return command.ended(self.start(jobs=jobs, path=path, warm=warm))[1]

    def measure(self) -> None:
        """Runs without faults, and records the results and the time."""
        self.seconds["cold"] = self.timed()
        self.expected = files(self.results)
        if FULL:
            self.clear()
            with pytest.MonkeyPatch.context() as patch:  # so that processes forked from this one load nothing
                command.here(patch, self.folder, self.cache, "run", f"{NAME}.yaml", "-j", "1")
            for jobs in (1, 2):
                self.clear()
                self.seconds[f"warm {jobs}"] = self.timed(jobs=jobs, warm=True)

    def timed(self, *, jobs: int = 1, warm: bool = False) -> float:
        """Runs to the end, and returns the seconds that it took."""
        begin = time.monotonic()
        self.finish(jobs=jobs, warm=warm)
        return time.monotonic() - begin

    def compare(self, row: Row) -> None:
        """Counts a run that was resumed to its end, and the bytes that differ."""
        row.resumed += 1
        row.differing += differing(files(self.results), self.expected)

    def resume(self, row: Row, *, jobs: int = 1, path: Path | None = None, warm: bool = False) -> str:
        """Resumes after a fault, compares all bytes, counts, and removes the results."""
        said = self.finish(jobs=jobs, path=path, warm=warm)
        self.compare(row)
        left = list(self.results.rglob(f"{WRITING}*"))
        assert not left, f"left by killed processes: {left}"
        self.clear()
        return said

    def clear(self) -> None:
        for path in self.results.iterdir() if self.results.exists() else ():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
