"""Describes a machine: its speed in the few numbers that the cost of a fit depends on."""

import math
from dataclasses import dataclass
from itertools import pairwise

from dpmf_cli.algorithms.shared.cost import Cost


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
        """Extra seconds for a line at a random place among `within` bytes.

        Linear in the logarithm of the bytes between the measured sizes.
        """
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
