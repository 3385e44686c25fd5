"""What rules on Friedman, Berkovsky and Kaafar (2016) share: which config measures what, and how ε are compared."""

import math
from collections.abc import Iterable, Sequence

from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.printed import load
from dpmf_cli.papers.rules.base import epsilon_text

TOLERANCES: dict[str, float] = load("friedman2016")["tolerances"]

FACTORIZED = ("isgd", "psgd", "pals")
KINDS = ("bounded", "unbounded")
SMALLER = {"ml-1m": "ml-100k", "ml-10m": "ml-1m", "netflix": "ml-10m"}
"""The data set of the next smaller size."""

Pair = tuple[str, float, float]
"""The name of a comparison, and two ε or RMSE; the first should be below the second."""


def table(evidence: Evidence, kind: str) -> str:
    """Returns the config of table 4 (bounded) or 5 (unbounded)."""
    return evidence.named(f"{{}}_{kind}")


def figure(evidence: Evidence, name: str) -> str:
    """Returns the config of a figure. Configs without a data set in their name are the paper's, mostly on ML-1M."""
    drawn = {("fig5", "netflix-sample"): "friedman_fig5b", ("fig5", "ml-1m"): "friedman_fig5a"}
    if evidence.data == "ml-1m":
        return drawn.get((name, "ml-1m"), f"friedman_{name}")
    whole = "fig5a" if name == "fig5" else name
    return drawn.get((name, evidence.data), evidence.named(f"friedman_{whole}_{{}}"))


def lower(pairs: Iterable[Pair]) -> tuple[bool, str]:
    """Returns whether the first of each pair is below the second, and in words which are not.

    A pair of ε that are both not reached does not count.
    """
    reached = [each for each in pairs if min(each[1:]) < math.inf]
    against = [f"{what} {epsilon_text(a)} and {epsilon_text(b)}" for what, a, b in reached if not a < b]
    said = f"{len(reached) - len(against)} of {len(reached)}"
    return not against, said + (f", not {', '.join(against)}" if against else "")


def close(values: Sequence[float]) -> bool:
    """Returns whether ε are within the factor up to which they count as similar."""
    return max(values) <= TOLERANCES["similar"] * min(values) < math.inf


def crossings(evidence: Evidence, name: str, baseline: str, keys: Iterable[str]) -> dict[str, float]:
    return {key: evidence.crossing(name, key, baseline) for key in keys}


def told(cells: dict[str, float]) -> str:
    return ", ".join(f"{key.upper()} {epsilon_text(value)}" for key, value in cells.items())
