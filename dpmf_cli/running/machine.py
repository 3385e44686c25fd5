"""A machine: its cores, and how fast it is, in the few numbers that the cost of a fit depends on."""

import math
import os
from dataclasses import dataclass
from itertools import pairwise

from dpmf_cli.algorithms.costs.cost import Cost


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Machine:
    """kernels   time of compiled kernels over that on the machine which the algorithms' constants are of, data near
    passes    the same for NumPy's passes over arrays, its draws, and Python itself
    lines     (bytes, seconds) ascending: what one cache line at a random place of so many bytes takes beyond one that
              is near; kernels ask for their lines ahead, so that is how often one can be had, not how long it takes
    start     CPU seconds and resident bytes of a process that has imported what a run needs. Of the libraries' own
              pages Linux counts more or fewer by how they came into its cache: 88 MB there after a restart,
              163 MB after an installation
    """

    kernels: float
    passes: float
    lines: tuple[tuple[float, float], ...]
    start: Cost

    def line(self, within: float) -> float:
        """Seconds for a line within so many bytes: linear in their logarithm between the sizes that were measured."""
        (first, least), most = self.lines[0], self.lines[-1][1]
        if within <= first:
            return least * within / first
        for (low, fast), (high, slow) in pairwise(self.lines):
            if within <= high:
                return fast + (slow - fast) * math.log(within / low) / math.log(high / low)
        return most

    def seconds(self, cost: Cost) -> float:
        """Seconds of one core."""
        return self.kernels * cost.seconds + sum(count * self.line(within) for count, within in cost.far)


REFERENCE = Machine(
    1.0, 1.0, ((1 << 20, 5e-11), (1 << 23, 5e-10), (1 << 26, 5e-9), (1 << 28, 7e-9)), Cost(1.2, 191e6)
)
"""A virtual Intel Xeon (Emerald Rapids) of 2025, on which the constants of the algorithms' `cost` were measured."""
REFERENCE_CORES, REFERENCE_MEMORY = 2, 8 << 30
"""Of that, what ARTIFACT.md asks for."""
