"""What an experiment takes on the reference machine, as the pages tell it: time, memory, and space on the disk."""

import math
import os
from collections.abc import Iterable
from pathlib import Path

from dpmf_cli.datasets.loading import expected
from dpmf_cli.datasets.spec import CsvSpec
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.results.store import Store
from dpmf_cli.experiment.results.task import Task
from dpmf_cli.experiment.running.batches import MEMORY_SHARE
from dpmf_cli.experiment.running.plan import Plan, make_plan, unread

REFERENCE_CORES, REFERENCE_MEMORY = 2, 8 << 30
"""The part of the reference machine (`calibration.REFERENCE`) that ARTIFACT.md asks for: cores, bytes of memory."""

TASK_BYTES, LANE_BYTES, FILES_BYTES, BLOCK = 1_000.0, 400.0, 4e5, 4096
"""Disk space: a result, and each of its ε; the tables and figures of an experiment; the block to which file sizes are
rounded up."""
KEPT_BYTES, TIME_BYTES = 12.0, 8.0
"""Disk space in the cache per rating, and per time stamp of a rating."""


def disk_bytes(tasks: Iterable[Task], ratings: int, *, timestamps: bool) -> float:
    """Bytes that an experiment with these tasks leaves on the disk: results, tables and figures, cached ratings."""
    results = sum(math.ceil((TASK_BYTES + LANE_BYTES * len(task.epsilons)) / BLOCK) * BLOCK for task in tasks)
    return results + FILES_BYTES + (KEPT_BYTES + TIME_BYTES * timestamps) * ratings


def reference_plan(config: ExperimentConfig) -> Plan:
    """The plan of a config from the start, on the reference machine: the same on every machine.

    The data of the config must be published or synthetic.
    """
    assert not isinstance(config.dataset, CsvSpec)
    within = MEMORY_SHARE * REFERENCE_MEMORY / REFERENCE_CORES
    asked = unread(config, expected(config.dataset))
    return make_plan([asked], Store(Path(os.devnull)), within=within)
