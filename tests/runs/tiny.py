"""A run that takes a second: its config, its number of tasks, and the files that it promises."""

import csv
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests import command

TINY = """\
dataset: {kind: synthetic, like: ml-100k, seed: 3, users: 120, items: 80, ratings: 2400}
folds: 4
runs: 3
epsilons: [0.5, 2, 8]
baselines: [ga, ia, ge, {algorithm: als, factors: 2, iterations: 3}]
algorithms:
  - algorithm: pge
  - {algorithm: isgd, factors: 2, epochs: 1500}
"""
OUTPUTS = ("curves.csv", "crossings.csv", "crossings.md", "ledger.csv", "curves.png", "curves.svg")
TASKS = 4 * 3 + 3 * 4 * 3


@dataclass(frozen=True)
class Place:
    """A folder in which commands run, and their cache."""

    folder: Path
    cache: Path

    def write(self, text: str, name: str = "tiny") -> None:
        (self.folder / f"{name}.yaml").write_text(text)

    def dpmf(self, *words: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
        return command.dpmf(self.folder, self.cache, *words, expect=expect)

    def run(self, text: str = "", name: str = "tiny", jobs: int = 1) -> subprocess.CompletedProcess[str]:
        """Runs a config, which `text` replaces."""
        if text:
            self.write(text, name)
        return self.dpmf("run", f"{name}.yaml", "-j", str(jobs))

    def json(self, *words: str) -> Any:
        """What a command prints for programs."""
        form = ("--json",) if words[0] in ("plan", "verify") else ("--format", "json")
        return json.loads(self.dpmf(*words, *form).stdout)

    def planned(self, name: str = "tiny") -> dict[str, tuple[int, int]]:
        """(tasks, those that are left) of each entry."""
        return {
            part["label"]: (part["tasks"], part["left"])
            for part in self.json("plan", f"{name}.yaml")["algorithms"]
        }

    def path(self, file: str, name: str = "tiny") -> Path:
        return self.folder / "results" / name / file

    def rows(self, file: str, name: str = "tiny") -> list[dict[str, str]]:
        """The rows of a CSV file of results."""
        return list(csv.DictReader(self.path(file, name).read_text().splitlines()))

    @property
    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.path("manifest.json").read_bytes())
        return found

    @property
    def outputs(self) -> dict[str, bytes]:
        return {name: self.path(name).read_bytes() for name in OUTPUTS}

    @property
    def tasks(self) -> dict[str, bytes]:
        return command.task_files(self.folder)
