"""How fast a machine is: the few numbers that the cost of a fit depends on, measured and kept in the cache folder.

Every figure is the smallest of several short measurements of CPU time, which other work on the machine can only make
longer.
"""

import hashlib
import json
import math
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from dpmf_cli.algorithms.shared.cost import Cost
from dpmf_cli.core import __version__
from dpmf_cli.core.children import python
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets.cache import write
from dpmf_cli.experiment.results.manifest import cpu
from dpmf_cli.kernels.factors import factor_model
from dpmf_cli.kernels.sgd import Sgd, Visits, descend_perturbed
from dpmf_cli.privacy.noise import LaneNoise


@dataclass(frozen=True)
class Machine:
    """The speed of a machine.

    kernels   time of compiled kernels, divided by their time on the reference machine, for data that are near
    passes    the same ratio for NumPy's passes over arrays, its draws, and Python itself
    lines     (bytes, seconds) ascending: extra time to get one cache line at a random place among so many bytes,
              compared with a line that is near. Kernels prefetch their lines, so this is a throughput, not a latency
    start     CPU seconds and resident bytes of a process that has imported what a run needs. How many of the
              libraries' own pages Linux counts depends on how they came into its cache: 88 MB after a restart,
              163 MB after an installation
    """

    kernels: float
    passes: float
    lines: tuple[tuple[float, float], ...]
    start: Cost

    def line(self, within: float) -> float:
        """Extra seconds for a line at a random place among `within` bytes, by interpolation in their logarithm."""
        (first, least), most = self.lines[0], self.lines[-1][1]
        if within <= first:
            return least * within / first
        for (low, fast), (high, slow) in pairwise(self.lines):
            if within <= high:
                return fast + (slow - fast) * math.log(within / low) / math.log(high / low)
        return most

    def seconds(self, cost: Cost) -> float:
        """Seconds that a cost takes on one core of this machine."""
        return self.kernels * cost.seconds + sum(count * self.line(within) for count, within in cost.far)


REFERENCE = Machine(
    1.0, 1.0, ((1 << 20, 5e-11), (1 << 23, 5e-10), (1 << 26, 5e-9), (1 << 28, 7e-9)), Cost(1.2, 191e6)
)
"""A virtual Intel Xeon (Emerald Rapids) of 2025, on which the constants of the algorithms' `cost` were measured."""

REFERENCE_VISIT, REFERENCE_DRAW = 1.4e-8, 4.5e-9
"""Seconds on the reference machine: one visit of SGD with d = 5 and 16 lanes, all data near; one float32 draw."""

_MACHINE = TypeAdapter(Machine)
_FACTORS, _VISITS, _REPETITIONS = 5, 400_000, 5
_LINES = _FACTORS + 1
_NEAR_ROWS = 256
_SIZES = tuple(int(size) for size, _ in REFERENCE.lines)
_START = """\
import time
__import__(sys.argv[1])
seconds = time.process_time()
with open("/proc/self/statm") as file:
    print(seconds, int(file.read().split()[1]))
"""


def calibrated(cache: Path, cores: int, program: str, say: Callable[[str], None]) -> Machine:
    """Measures this machine's speed, and tells `say`, unless a measurement by this version is kept; returns the
    speed.

    program   the module that a process of a run imports first
    """
    found = known(cache, cores)
    if found is not None:
        return found
    say("measuring the speed of this machine once, which takes some seconds")
    begin = time.perf_counter()
    machine = measure(program)
    path = _path(cache, cores)
    took = f"calibrated this machine in {time.perf_counter() - begin:.1f} s"
    try:
        write(path, [json.dumps({**_identity(cores), **asdict(machine)}, indent=2).encode(), b"\n"])
        say(f"{took}; kept in {path}")
    except DpmfError as error:  # the next command has to measure again
        say(f"{took}; not kept: {error}")
    return machine


def known(cache: Path, cores: int) -> Machine | None:
    """The kept measurement of this machine; None where there is none, or where it makes no sense."""
    try:
        machine = _MACHINE.validate_json(_path(cache, cores).read_bytes())
    except (OSError, ValueError):
        return None
    sizes = [size for size, _ in machine.lines]
    factors = (machine.kernels, machine.passes, machine.start.seconds, machine.start.bytes, *sizes)
    sound = sizes and sizes == sorted(set(sizes)) and all(0 < each < math.inf for each in factors)
    return machine if sound and all(0 <= seconds < math.inf for _, seconds in machine.lines) else None


def measure(program: str) -> Machine:
    """This machine's speed by the kernel of SGD, a draw of NumPy, and the import of a program."""
    near = _visit(_NEAR_ROWS)
    rng = np.random.default_rng(0)
    draw = _best(lambda: rng.standard_exponential(_VISITS, dtype=np.float32)) / _VISITS
    slowest, lines = 0.0, []
    for size in _SIZES:  # a larger set cannot be faster: a smaller time is noise of the measurement
        slowest = max(slowest, (_visit(size // (64 * _LINES)) - near) / _LINES)
        lines.append((float(size), slowest))
    return Machine(near / REFERENCE_VISIT, draw / REFERENCE_DRAW, tuple(lines), _start(program))


def _start(program: str) -> Cost:
    """The cost of a process that imports a program; the reference machine's if this system does not tell."""
    try:
        # The last line has CPU seconds and resident pages: the environment may print others before it.
        said = subprocess.check_output(python(_START, program), stderr=subprocess.PIPE, text=True)
        seconds, pages = map(float, said.splitlines()[-1].split())
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):
        return REFERENCE.start
    return Cost(seconds, os.sysconf("SC_PAGE_SIZE") * pages)


def _visit(rows: int) -> float:
    """Seconds for one visit of SGD that updates a random one of `rows` rows."""
    rng = np.random.default_rng(rows)
    (factors,) = factor_model(
        np.zeros((1, _FACTORS)), np.zeros((rows, _FACTORS)), np.zeros((1, 16)), np.zeros((rows, 16))
    ).groups
    users, items = np.zeros(_VISITS, np.int32), rng.integers(rows, size=_VISITS, dtype=np.int32)
    visits = Visits(users, items, rng.random(_VISITS, np.float32))
    noise = LaneNoise(rng.random(_VISITS), np.ones(16))
    return _best(lambda: descend_perturbed.run(factors, noise, visits, Sgd(0.01, 0.1, 1.0))) / _VISITS


def _best(call: Callable[[], object]) -> float:
    """CPU seconds of the shortest of several calls, except the first, which may compile a kernel."""
    call()
    times = []
    for _ in range(_REPETITIONS):
        begin = time.thread_time()
        call()
        times.append(time.thread_time() - begin)
    return min(times)


def _identity(cores: int) -> dict[str, Any]:
    return {"cpu": cpu(), "cores": cores, "dpmf": __version__}


def _path(cache: Path, cores: int) -> Path:
    digest = hashlib.sha256(json.dumps(_identity(cores), sort_keys=True).encode()).hexdigest()
    return cache / "calibration" / f"{digest[:16]}.json"
