"""One small experiment into which faults are injected, and its results without faults."""

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dpmf_cli.cli import main as cli
from dpmf_cli.core.files import WRITING
from tests.faults.tally import FULL, Row
from tests.forked import Forked

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
Running = subprocess.Popen[str] | Forked
VOLATILE = ("manifest.json",)
"""The keys that say when and on which machine a run was made."""


def ratings_csv(seed: int = 1) -> str:
    """About 900 ratings of 40 items by 60 users."""
    rng = random.Random(seed)
    pairs = [
        (user, item) for user in range(60) for item in range(40) if rng.random() < 0.38 or item == user % 40
    ]
    rows = [f"{user},{item},{min(5, max(1, round(rng.gauss(3 + item % 3 / 2, 1))))}" for user, item in pairs]
    return "\n".join(["user,item,stars", *rows, ""])


def files(results: Path) -> dict[str, bytes]:
    """The bytes of every result, by its name."""
    return {
        str(path.relative_to(results)): path.read_bytes()
        for path in results.rglob("*")
        if path.is_file() and path.name not in VOLATILE and path.suffix != ".damaged"
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
        (self.folder / f"{NAME}.yaml").write_text(CONFIG)
        (self.folder / "ratings.csv").write_text(ratings_csv())

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def cache(self) -> Path:
        return self.folder / "cache"

    def start(self, *, jobs: int = 1, path: Path | None = None, warm: bool = False) -> Running:
        """The command, in a session of its own; `path` goes in front of Python's own.

        warm   forked from this process, instead of begun from nothing
        """
        if warm:
            return Forked(
                ["run", f"{NAME}.yaml", "-j", str(jobs)], self.folder, {"DPMF_CACHE": str(self.cache)}
            )
        places = [str(path)] if path else []
        python_path = os.pathsep.join([*places, *filter(None, [os.environ.get("PYTHONPATH")])])
        return subprocess.Popen(
            [sys.executable, "-m", "dpmf_cli", "run", f"{NAME}.yaml", "-j", str(jobs)],
            cwd=self.folder,
            env={**os.environ, "DPMF_CACHE": str(self.cache), "PYTHONPATH": python_path, **self.more},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def finish(self, *, jobs: int = 1, path: Path | None = None, warm: bool = False) -> str:
        """Runs to the end, and returns the output."""
        process = self.start(jobs=jobs, path=path, warm=warm)
        _, said = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, said
        assert "Traceback" not in said, said
        return said

    def measure(self) -> None:
        """Runs without faults, and records the results and the time."""
        self.seconds["cold"] = self.timed()
        self.expected = files(self.results)
        if FULL:
            self._import_everything()
            for jobs in (1, 2):
                self.clear()
                self.seconds[f"warm {jobs}"] = self.timed(jobs=jobs, warm=True)

    def _import_everything(self) -> None:
        """Runs in this process, so that processes forked from it have nothing to load or compile."""
        self.clear()
        before = os.getcwd()
        os.environ["DPMF_CACHE"] = str(self.cache)
        sys.argv = ["dpmf", "run", f"{NAME}.yaml", "-j", "1"]
        os.chdir(self.folder)
        with contextlib.suppress(SystemExit):
            cli.main()
        os.chdir(before)

    def timed(self, *, jobs: int = 1, warm: bool = False) -> float:
        """Runs to the end, and returns the seconds that it took."""
        begin = time.monotonic()
        self.finish(jobs=jobs, warm=warm)
        return time.monotonic() - begin

    def resume(self, row: Row, *, jobs: int = 1, path: Path | None = None, warm: bool = False) -> str:
        """Resumes after a fault, compares all bytes, counts, and removes the results."""
        said = self.finish(jobs=jobs, path=path, warm=warm)
        row.resumed += 1
        row.differing += differing(files(self.results), self.expected)
        left = list(self.results.rglob(f"{WRITING}*"))
        assert not left, f"left by killed processes: {left}"
        self.clear()
        return said

    @property
    def kernels(self) -> Path:
        """The folder of compiled kernels for commands that get it by `more`."""
        return self.folder / "kernels"

    def forget(self) -> None:
        """Removes what is cached."""
        for place in (self.cache, self.kernels):
            shutil.rmtree(place, ignore_errors=True)

    def clear(self) -> None:
        for path in self.results.iterdir() if self.results.exists() else ():
            shutil.rmtree(path) if path.is_dir() else path.unlink()


def run_here(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    """(exit code, output)"""
    code = 0
    try:
        sys.argv[5:] = options
        cli.main()
    except SystemExit as end:
        code = int(end.code or 0)
    said = capsys.readouterr().err
    assert "Traceback" not in said
    return code, said
