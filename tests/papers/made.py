"""Made-up results, and what a rule decides on them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dpmf_cli.evaluation.crossings import find_crossings
from dpmf_cli.evaluation.curves import Experiment, Growth, Measured
from dpmf_cli.papers.evidence import Evidence, Proof
from dpmf_cli.papers.rules import compute

GRID = np.geomspace(0.1, 100, 13)
INFINITE = np.array([np.inf])


def curve(
    algorithm: str,
    ia_at: float = 1.0,
    *,
    label: str = "",
    level: float = 0.8,
    values: Sequence[float] = (),
    **more: object,
) -> Measured:
    """RMSE that meets IA = 1 at one ε and falls by 0.2·ln on either side, but not below `level`; or `values`."""
    rmse = np.maximum(1 - 0.2 * np.log(GRID / ia_at), level) if not len(values) else np.array(values)
    grid = GRID if not len(values) else np.arange(1.0, len(values) + 1)
    made = Measured(
        algorithm, label or algorithm, grid, rmse[None, None, :], grid, grid, "bounded", "published"
    )
    return replace(made, **more)  # type: ignore[arg-type]


def baseline(key: str, rmse: float) -> Measured:
    return Measured(key, key.upper(), INFINITE, np.full((1, 1, 1), rmse), INFINITE, INFINITE)


def experiment(name: str, *curves: Measured, growth: Growth | None = None) -> Experiment:
    levels = (baseline("ia", 1.0), baseline("ge", 0.9))
    return Experiment(name, "made", "Made", 1, 10, 1, 1, curves, levels, growth=growth)


def evidence(
    *experiments: Experiment, data: str = "made", proofs: Mapping[str, Proof] | None = None
) -> Evidence:
    """The evidence for rules: made-up experiments on one data set."""
    found = {each.name: (each, find_crossings(each, replicates=10)) for each in experiments}
    return Evidence({data: found}, data, proofs or {})


def held(key: str, claim: str, *experiments: Experiment, data: str = "made") -> tuple[bool, ...] | None:
    """Whether each part of a claim holds; None where results are missing."""
    found = compute(key, claim, evidence(*experiments, data=data))
    return None if found is None else found.held
