"""Fits a grid of ε in parts if its models do not fit in memory side by side, and joins the results.

A model does not depend on the other ε of the grid, and its noise stream has its own name. So fitting in parts gives
the same bits.
"""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.model import RecordCosts
from dpmf_cli.lane_groups import MAXIMUM_WIDTH
from dpmf_cli.results.task import TaskResult

MEMORY_SHARE = 0.6
"""Fraction that one fit may hold of a core's equal part of the machine's memory."""
_LIMIT = Path("/sys/fs/cgroup/memory.max")


def memory() -> int:
    """Bytes of memory of this machine, or of the container that this process runs in."""
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError):  # no such file, or "max" in it
        there = min(there, int(_LIMIT.read_text()))
    return there


def room() -> float:
    """Bytes that one fit may hold on this machine, without the ratings."""
    return room_of(memory(), os.cpu_count() or 1)


def room_of(memory: float, cores: int) -> float:
    """Bytes that one fit may hold on a machine with this memory (bytes) and number of cores."""
    return MEMORY_SHARE * memory / cores


def parts(algorithm: Algorithm, shape: Shape, grid: int, within: float) -> list[slice]:
    """Cuts a grid into parts that each fit `within` bytes, but have at least one group of lanes."""
    size = grid
    while size > MAXIMUM_WIDTH and algorithm.cost(shape, size).bytes > within:
        size = max(MAXIMUM_WIDTH, size // 2 // MAXIMUM_WIDTH * MAXIMUM_WIDTH)
    return [slice(start, min(start + size, grid)) for start in range(0, grid, size)]


def cost_in_parts(algorithm: Algorithm, shape: Shape, grid: int, within: float) -> Cost:
    """The cost of fitting the parts of a grid one after the other, with only one part in memory."""
    costs = [algorithm.cost(shape, part.stop - part.start) for part in parts(algorithm, shape, grid, within)]
    whole = sum(costs, Cost(0.0, 0.0))
    return Cost(whole.seconds, max((cost.bytes for cost in costs), default=0.0), whole.far)


def joined(results: Sequence[TaskResult]) -> TaskResult:
    """Joins the results for the parts of a grid, in order, into the result for the grid."""
    steps = zip(*(result.ledger for result in results), strict=True)
    records = [result.records for result in results if result.records]
    return TaskResult(
        **_strung(results, ("epsilons", "rmse", "claimed", "provable", "error_cdf", "mae", "ranking")),
        ledger=tuple(map(_joined_step, steps)),
        records=RecordCosts(**_strung(records, [each.name for each in fields(RecordCosts)]))
        if records
        else None,
    )


def _joined_step(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Joins one step's ledger records for the parts of a grid: lists over ε are concatenated."""
    return {
        key: [value for record in records for value in record[key]] if isinstance(first, list) else first
        for key, first in records[0].items()
    }


def _strung(parts: Sequence[Any], names: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Attributes that are tuples over ε, concatenated over the parts."""
    return {name: tuple(value for part in parts for value in getattr(part, name)) for name in names}
