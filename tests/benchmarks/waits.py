"""How long a user waits for an answer, beside what we aim at: `make waits`.

    python -m tests.benchmarks.waits [--only TEXT] [--long] [--to results/waits.jsonl]

Each wait begins with empty caches and without results, except where a command has `before`. The table of all rows, also
of earlier calls, is written beside the file of rows.
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT, Popen, run
from typing import Any

import pandas as pd

from docs.makers.reference import markdown_table
from dpmf_cli.datasets import Folders, load
from dpmf_cli.experiment.config import load_config
from dpmf_cli.experiment.results.manifest import cpu


@dataclass(frozen=True)
class Wait:
    """A command, and the seconds until it ends or, with `seen`, until a line that this finds, which may say them.

    aim     seconds by the clock; if something has run `before`, of CPU, the least of five turns
    before  a command that is run before and, since caches are then full, not measured; this command is run too
    """

    what: str
    command: str
    aim: float
    before: str = ""
    seen: str = ""
    long: bool = False


QUICKSTART, ADVICE = "dpmf run configs/quickstart.yaml", "dpmf advise RATINGS --to CONFIG"
WAITS = (
    Wait("help", "dpmf --help", 0.15, before="dpmf --version"),
    Wait("tables of finished results", "dpmf crossings configs/quickstart.yaml", 1.0, before=QUICKSTART),
    Wait("a run that has finished", QUICKSTART, 1.2, before=QUICKSTART),
    Wait("quickstart", QUICKSTART, 10),
    Wait(
        "calibration", "dpmf plan configs/quickstart.yaml", 5, seen=r"calibrated this machine in ([\d.]+) s"
    ),
    Wait("first page of advice on 100,000 ratings", ADVICE, 15, seen="A FIRST ANSWER"),
    Wait("advice on 100,000 ratings", ADVICE, 60),
    Wait("all papers, small", "dpmf reproduce all --small", 120),
    Wait("fast tests", "make test", 300, long=True),
    Wait("all papers", "dpmf reproduce all", 2700, long=True),
)


def measure(wait: Wait, folder: Path) -> dict[str, Any]:
    """Runs a command in a folder of its own, and returns the figures of its row."""
    ratings = folder / "ratings.csv"
    if "RATINGS" in wait.command:
        _write_ratings(ratings)
    named = {"RATINGS": str(ratings), "CONFIG": str(folder / "own.yaml")}
    caches = {
        "HOME": str(folder),
        "DPMF_CACHE": str(folder / "cache"),
        "DPMF_KERNELS": str(folder / "kernels"),
    }
    environment = {**os.environ, **caches}

    def words(command: str) -> list[str]:
        program, *rest = (named.get(word, word) for word in command.split())
        results = [] if rest[0] in ("test", "--help", "--version") else ["--results", str(folder / "results")]
        return [*([program] if program == "make" else [sys.executable, "-m", "dpmf_cli"]), *rest, *results]

    for command in (wait.before, wait.command) if wait.before else ():
        run(words(command), env=environment, stdout=DEVNULL, stderr=DEVNULL, check=True)
    begin, found = time.perf_counter(), None
    process = Popen(words(wait.command), env=environment, stdout=PIPE, stderr=STDOUT, text=True)
    for line in process.stdout or ():
        if found is None and wait.seen and (match := re.search(wait.seen, line)):
            found = float(match[1]) if match.groups() else time.perf_counter() - begin
    _, status, used = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) or (wait.seen and found is None):
        raise SystemExit(f"`{wait.command}` failed, or did not say {wait.seen!r}")
    wall, spent = found or time.perf_counter() - begin, used.ru_utime + used.ru_stime
    return {"wall": wall, "cpu": spent, "load": os.getloadavg()[0], "machine": cpu()}


def _write_ratings(path: Path) -> None:
    """Writes the ratings of MovieLens 100K as a CSV file."""
    config = Path("configs/ml100k_bounded.yaml")
    ratings = load(load_config(config).dataset, Folders.named(base=config.parent)).ratings
    columns = {"user": ratings.users, "item": ratings.items, "rating": ratings.values}
    pd.DataFrame(columns).to_csv(path, index=False)


def table(rows: dict[str, dict[str, Any]]) -> str:
    """The rows that were measured, as Markdown."""
    made = []
    for wait in WAITS:
        if wait.what not in rows:
            continue
        row = rows[wait.what]
        took, kind = (row["cpu"], "CPU") if wait.before else (row["wall"], "the clock")
        took_and_aim = (f"{took:.2f} s" if took < 10 else f"{took:.0f} s", f"{wait.aim:g} s of {kind}")
        met = "yes" if took <= wait.aim else "no"
        made.append(
            (wait.what, f"`{wait.command}`", *took_and_aim, met, f"{row['cpu']:.1f} s", f"{row['load']:.1f}")
        )
    machines = ", ".join(dict.fromkeys(row["machine"] for row in rows.values()))
    header = ("what", "command", "took", "aim", "met", "CPU in all", "load after it")
    return f"{markdown_table(header, made)}\n{os.cpu_count()} cores of {machines}\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", help="only waits whose name this regular expression finds")
    parser.add_argument("--long", action="store_true", help="those of minutes too")
    parser.add_argument("--to", type=Path, default=Path("results/waits.jsonl"))
    options = parser.parse_args()
    lines = options.to.read_text().splitlines() if options.to.exists() else []
    rows = {row.pop("what"): row for row in map(json.loads, lines)}
    for wait in WAITS:
        if re.search(options.only, wait.what) and (options.long or not wait.long):
            with tempfile.TemporaryDirectory() as folder:
                turns = [measure(wait, Path(folder)) for _ in range(5 if wait.before else 1)]
                rows[wait.what] = min(turns, key=itemgetter("cpu"))
            print(f"{wait.what}: {rows[wait.what]}", file=sys.stderr, flush=True)
            options.to.parent.mkdir(parents=True, exist_ok=True)
            options.to.write_text(
                "".join(json.dumps({"what": what, **row}) + "\n" for what, row in rows.items())
            )
            options.to.with_suffix(".md").write_text(table(rows), encoding="utf-8")
    print(table(rows))


if __name__ == "__main__":
    main()
