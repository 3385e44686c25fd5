"""Runs on a Dask cluster that is disturbed at random: `python -m tests.cluster_suite`, or `make test-cluster`.

Prints what was done, and how many bytes of the results differ from those of an undisturbed local run. None may.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tests import command
from tests.dask_cluster import DaskCluster

CONFIG = """\
dataset: {{kind: synthetic, like: ml-100k, seed: 3, users: 120, items: 80, ratings: 2400}}
folds: {folds}
runs: {runs}
epsilons: [0.5, 2, 8]
baselines: [ia, ge]
algorithms:
  - algorithm: pge
  - {{algorithm: isgd, factors: 2, epochs: {epochs}}}
"""


@dataclass(frozen=True)
class Disturbed:
    """What was done to a run, how long the run took, and how many of its files differ from the undisturbed run's."""

    kills: int
    restarts: int
    seconds: float
    differing: int
    stderr: str


def write_config(path: Path, *, epochs: int, folds: int = 3, runs: int = 2) -> None:
    """A config whose fits of ISGD take about 35 µs for each epoch. With many epochs they are long enough to be
    killed in the middle."""
    path.write_text(CONFIG.format(folds=folds, runs=runs, epochs=epochs))


def environment(home: Path) -> dict[str, str]:
    return command.environment(home / "cache")


def start(home: Path, *arguments: str) -> subprocess.Popen[str]:
    return command.start(home, home / "cache", *arguments)


def dpmf(home: Path, *arguments: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    process = start(home, *arguments)
    try:
        _, errors = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == expect, errors
    assert "Traceback" not in errors or expect == 1, errors
    return subprocess.CompletedProcess(arguments, expect, "", errors)


def result_files(results: Path) -> dict[str, bytes]:
    """Everything whose bytes a run guarantees: every file except the manifest, which has times."""
    return {
        str(path.relative_to(results)): path.read_bytes()
        for path in results.rglob("[!.]*")
        if path.is_file() and path.name != "manifest.json"
    }


def disturb(
    home: Path, cluster: DaskCluster, *, results: str, seed: int, kills: int, restarts: int
) -> Disturbed:
    """A run of `slow.yaml` on the cluster, with that many kills of workers in a task and of schedulers, in
    random order."""
    rng = random.Random(seed)
    faults = ["kill"] * kills + ["restart"] * restarts
    rng.shuffle(faults)
    done = {"kill": 0, "restart": 0}
    begin = time.monotonic()
    process = start(home, "run", "slow.yaml", "--scheduler", cluster.address, "--results", results)
    try:
        for fault in faults:
            if fault == "kill":
                done[fault] += cluster.kill_worker_mid_task(lambda: process.poll() is None)
            else:
                time.sleep(rng.uniform(0.2, 1.0))
                if process.poll() is None:
                    cluster.restart_scheduler()
                    done[fault] += 1
        _, errors = process.communicate(timeout=600)
    finally:
        process.kill()
    assert process.returncode == 0, errors
    ours, theirs = result_files(home / results), result_files(home / "undisturbed-slow.yaml")
    differing = sum(ours.get(name) != theirs.get(name) for name in ours.keys() | theirs.keys())
    return Disturbed(done["kill"], done["restart"], time.monotonic() - begin, differing, errors)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="runs, each with other random moments")
    parser.add_argument("--kills", type=int, default=4, help="workers killed in each")
    parser.add_argument("--restarts", type=int, default=2, help="schedulers killed in each")
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        write_config(home / "slow.yaml", epochs=20000, folds=4, runs=3)
        begin = time.monotonic()
        dpmf(home, "run", "slow.yaml", "-j", "2", "--results", "undisturbed-slow.yaml")
        print(f"local, two processes: {time.monotonic() - begin:.1f} s", flush=True)
        # If there were more kills than Dask forgives one task by default (3), they could all hit the same task.
        allowed = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": str(options.kills)}
        with DaskCluster(home, **allowed) as cluster:
            for name in ("first", "second", "third"):
                cluster.join(name, home / f"cache-{name}")
            cluster.wait_for_workers()
            for seed in range(options.seeds + 1):
                # Seed 0 is the run without disturbance, which shows how long a run takes.
                kills, restarts = (options.kills, options.restarts) if seed else (0, 0)
                done = disturb(
                    home, cluster, results=f"seed{seed}", seed=seed, kills=kills, restarts=restarts
                )
                found.append(done)
                print(
                    f"seed {seed}: {done.kills} kills mid-task, {done.restarts} new schedulers, {done.seconds:.1f} s, "
                    f"{done.differing} files differ",
                    flush=True,
                )
    kills, restarts, differing = (
        sum(getattr(done, what) for done in found) for what in ("kills", "restarts", "differing")
    )
    print(f"{len(found)} runs, {kills} kills mid-task, {restarts} new schedulers, {differing} files differ")
    if differing or (kills, restarts) != (options.seeds * options.kills, options.seeds * options.restarts):
        sys.exit(1)


if __name__ == "__main__":
    main()
