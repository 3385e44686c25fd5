"""Time and memory from 10⁵ to 10⁸ ratings, through the commands that everybody uses: `make scale`.

    python -m tests.benchmarks.scale configs/scale_*.yaml [--only TEXT] [--again] [--to results/scale.jsonl]

For every entry of a config, measures `dpmf plan` and `dpmf run -j 1` with only that entry, each in its own process.
The time of an update is the extra time of `dpmf run` with more `runs`. Where one fit is long, it is instead the extra
time over the first entry's run without its fit. Entries of the first config are run once before, without measuring,
so that numba has compiled all kernels. Rows are written to a file as they come. Rows that are already there are not
measured again. The table of all rows is printed as Markdown, and written beside that file.

Linux counts the memory of a parent as the peak of a child that has just been forked. So each process is started by a
small parent.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import TypeAdapter

from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.manifest import cpu

DPMF = (sys.executable, "-m", "dpmf_cli")
LOAD = (
    "import sys; from pathlib import Path; from dpmf_cli.experiment.config import load_config as read; "
    "from dpmf_cli.datasets import *; path = Path(sys.argv[1]); "
    "load(read(path).dataset, Folders.named(base=path.parent))"
)
LAUNCH = """
import json, os, subprocess, sys, time
begin = time.perf_counter()
child = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(child.pid, 0)
with open(sys.argv[1], "w") as file:
    wall = time.perf_counter() - begin
    json.dump([wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024], file)
sys.exit(os.waitstatus_to_exitcode(status))
"""
DATA = "the data"
ENOUGH, MOST_FITS = 100_000_000, 50
"""Enough updates to be measurable beside a command's own time, and the largest number of fits used to get there."""


@dataclass(frozen=True)
class Used:
    """The cost of a process: seconds by the clock, seconds of CPU, and the largest resident memory."""

    wall: float
    cpu: float
    peak_bytes: int


@dataclass(frozen=True)
class Row:
    """One entry on one data set.

    updates    visits of ratings in one fit (of cells, where all cells are visited), each of which serves all ε
    used       what `dpmf run` takes; `plan_seconds` and `plan_bytes` are what was predicted
    load       of the machine, when the row was finished
    more       what it takes with `runs` − 1 fits more, in the same process; None where one fit is long enough
    own        CPU seconds before and after the fit: of the config's first entry what one fit does not explain
    """

    config: str
    entry: str
    ratings: int
    updates: int
    used: Used
    plan_seconds: float
    plan_bytes: float
    load: float
    more: Used | None = None
    runs: int = 1
    own: float = 0.0

    @property
    def fit(self) -> float:
        """CPU seconds of one fit and its predictions, without the command's own time: starting, reading
        compiled kernels, assigning folds."""
        if self.more is None:
            return self.used.cpu - self.own
        return (self.more.cpu - self.used.cpu) / (self.runs - 1)

    @property
    def nanoseconds(self) -> float:
        """CPU time of one update."""
        return 1e9 * self.fit / self.updates


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> tuple[Used, str]:
    """Runs a command to its end, and returns its stdout and its cost. Raises CalledProcessError if the command
    fails."""
    with tempfile.NamedTemporaryFile() as file:
        launch = (sys.executable, "-I", "-S", "-c", LAUNCH, file.name, *command)
        done = subprocess.run(launch, stdout=subprocess.PIPE, env=environment, check=True)
        return Used(*json.loads(file.read())), done.stdout.decode()


def updates_of(entry: dict[str, Any], users: int, items: int, ratings: int) -> int:
    """How many times a fit on nine tenths of the ratings visits each of them."""
    training = ratings * 9 // 10
    if entry["algorithm"] == "pals":
        return training * 2 * int(entry["iterations"])
    if entry["algorithm"] == "isgd" and entry["neighbours"] == "unbounded":
        return users * items * int(entry["epochs"])
    return training * int(entry.get("epochs", 1))


def measure(path: Path, whole: dict[str, Any], entry: dict[str, Any], scratch: Path, own: float = 0.0) -> Row:
    """One entry of a config by itself, through `dpmf plan` and `dpmf run`."""
    name = re.sub(r"[^a-z0-9]+", "-", f"{path.stem} {entry['label']}".lower())

    def command(kind: str, runs: int, *options: str) -> tuple[str, ...]:
        config = scratch / f"{name}-{runs}.yaml"
        config.write_text(yaml.safe_dump({**whole, "algorithms": [entry], "runs": runs}, allow_unicode=True))
        return (*DPMF, kind, str(config), *options, "--results", str(scratch / f"{name}-{runs}"), "-j", "1")

    plan = json.loads(run(command("plan", 1, "--json"))[1])
    updates = updates_of(entry, plan["users"], plan["items"], plan["ratings"])
    runs = 1 + min(ENOUGH // updates, MOST_FITS)
    used, _ = run(command("run", 1))
    more = run(command("run", runs))[0] if runs > 1 else None
    planned, load = (plan["seconds"], plan["peak_bytes"]), os.getloadavg()[0]
    return Row(path.stem, entry["label"], plan["ratings"], updates, used, *planned, load, more, runs, own)


def load_data(path: Path) -> Row:
    """The ratings of a config, generated or parsed, and cached; taken from the cache if they are there."""
    plan = json.loads(run((*DPMF, "plan", str(path), "--json"))[1])
    used, _ = run((sys.executable, "-c", LOAD, str(path)))
    planned = plan["seconds_to_make_data"], plan["bytes_to_make_data"]
    return Row(path.stem, DATA, plan["ratings"], 1, used, *planned, os.getloadavg()[0])


def table(rows: Sequence[Row]) -> str:
    """All rows as Markdown, the rows of an entry together, from few ratings to many."""
    lines = [
        "| | data | updates | ns an update | over ML-1M's | CPU s | wall s | planned s | GiB | planned GiB |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    of_ml1m = [row for row in rows if row.config == "scale_ml1m" and row.entry != DATA]
    reference = {row.entry: row.nanoseconds for row in of_ml1m}
    entries = {entry: at for at, entry in enumerate(dict.fromkeys(row.entry for row in rows))}
    for row in sorted(rows, key=lambda row: (entries[row.entry], row.ratings, row.used.cpu)):
        cells = [row.entry, row.config.removeprefix("scale_"), "", "", ""]
        if row.entry != DATA:
            cells[2:4] = f"{row.updates:.1e}", f"{row.nanoseconds:.1f}"
            cells[4] = f"{row.nanoseconds / reference[row.entry]:.2f}" if row.entry in reference else ""
        planned = row.plan_seconds > 0
        cells += [f"{row.used.cpu:.1f}", f"{row.used.wall:.1f}", f"{row.plan_seconds:.1f}" if planned else ""]
        sizes = row.used.peak_bytes / 2**30, row.plan_bytes / 2**30
        cells += [f"{sizes[0]:.2f}", f"{sizes[1]:.2f}" if planned else ""]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", *(f"- {note}" for note in _notes(rows, reference)), ""])


def _notes(rows: Sequence[Row], reference: Mapping[str, float]) -> Iterator[str]:
    """What the table adds up to: the machine, how far costs grow, and how far the plan was off."""

    def between(values: Iterable[float]) -> str:
        found = sorted(values)
        return f"{found[0]:.2f} to {found[-1]:.2f}" if found else "–"

    if not rows:
        return
    loads = sorted(row.load for row in rows)
    planned = [row for row in rows if row.plan_seconds]
    yield f"{cpu()}; load of the machine {loads[0]:.1f} to {loads[-1]:.1f} at the rows' ends"
    others = [row for row in rows if row.entry in reference and row.config != "scale_ml1m"]
    growth = [row.nanoseconds / reference[row.entry] for row in others]
    yield f"an update costs {between(growth)} times what it costs on ML-1M"
    yield f"CPU time over the plan's: {between(row.used.cpu / row.plan_seconds for row in planned)}"
    yield f"memory over the plan's: {between(row.used.peak_bytes / row.plan_bytes for row in planned)}"


def read_rows(path: Path) -> list[Row]:
    """The rows that were measured before."""
    lines = path.read_text().splitlines() if path.exists() else []
    return TypeAdapter(list[Row]).validate_python([json.loads(line) for line in lines])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("configs", nargs="+", type=Path)
    parser.add_argument("--only", default="", help="only entries whose label this regular expression finds")
    parser.add_argument("--again", action="store_true", help="measure anew what was measured")
    parser.add_argument("--compiled", action="store_true", help="all kernels are compiled: nothing uncounted")
    parser.add_argument("--to", type=Path, default=Path("results/scale.jsonl"))
    options = parser.parse_args()
    options.to.parent.mkdir(parents=True, exist_ok=True)
    kept = {(row.config, row.entry): row for row in read_rows(options.to)}
    with tempfile.TemporaryDirectory() as scratch:
        warm = Path(scratch) / "warm"
        warm.mkdir()
        for path in options.configs:
            whole = load_config(path).resolved()
            del whole["name"]  # each of its entries is run under one of its own
            for entry in ({"label": DATA}, *whole["algorithms"]):
                key = path.stem, entry["label"]
                if not re.search(options.only, key[1]) or (key in kept and not options.again):
                    continue
                if key[1] == DATA:
                    kept[key] = load_data(path)
                else:
                    if path == options.configs[0] and not options.compiled:
                        measure(path, whole, entry, warm)
                    first = kept.get((path.stem, whole["algorithms"][0]["label"]))
                    own = first.used.cpu - first.fit if first else 0.0
                    kept[key] = measure(path, whole, entry, Path(scratch), own)
                options.to.write_text("".join(json.dumps(asdict(row)) + "\n" for row in kept.values()))
                print(f"{key}: {kept[key]}", file=sys.stderr, flush=True)
    made = table(list(kept.values()))
    print(made)
    options.to.with_suffix(".md").write_text(made, encoding="utf-8")


if __name__ == "__main__":
    main()
