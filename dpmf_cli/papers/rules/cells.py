"""The cells that papers print, beside what was measured.

They are Friedman et al.'s tables 3 to 5 and section 5.4, and Neera et al.'s improvements. The other papers give words
or pictures only ("about 70 %").
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.printed import CROSSING_TABLES, load, printed_baseline, printed_crossings
from dpmf_cli.papers.record import Printed
from dpmf_cli.papers.rules import scope


def cells(key: str, evidence: Evidence) -> dict[str, tuple[Printed, float]]:
    """Returns by name the printed cells of the evidence's data set that are measured, and what was measured."""
    of_paper = {"friedman2016": _of_friedman, "neera2020": _of_neera}
    tolerances, found = load(key).get("tolerances", {}), {}
    for name, printed, tolerance, expression, values in of_paper[key](evidence) if key in of_paper else ():
        with suppress(MissingEvidence):
            measured = scope(key, evidence).with_values(values).value(expression)
            within, ratio = tolerances[tolerance], tolerance == "crossing"
            found[name] = (Printed(printed=printed, tolerance=within, ratio=ratio), measured)
    return found


_Asked = tuple[str, float, str, str, dict[str, Any]]
"""A cell's name and printed figure, the name of its tolerance, what is measured, and its variables."""


def _of_friedman(evidence: Evidence) -> Iterator[_Asked]:
    for baseline in ("GA", "IA", "GE", "ALS"):
        printed = printed_baseline(evidence.data, baseline)
        if printed is not None:
            tolerance = "als" if baseline == "ALS" else "baseline"
            values = {"kind": "bounded", "baseline": baseline.lower()}
            yield f"table 3, {baseline}", printed, tolerance, "level(table, baseline)", values
    for cell in printed_crossings():
        if cell.dataset == evidence.data and cell.epsilon is not None:
            name = f"table {CROSSING_TABLES[cell.neighbours][-1]}, {cell.algorithm.upper()}, {cell.baseline}"
            values = {"kind": cell.neighbours, "key": cell.algorithm, "baseline": cell.baseline}
            yield name, cell.epsilon, "crossing", "crossing(table, key, baseline)", values
    for algorithm, baselines in load("friedman2016")["section5_4"].get(evidence.data, {}).items():
        for baseline, epsilon in baselines.items():
            values = {"key": algorithm, "baseline": baseline}
            name = f"section 5.4, {algorithm.upper()}, {baseline}"
            yield name, epsilon, "crossing", "crossing(fig5, key, baseline)", values


def _of_neera(evidence: Evidence) -> Iterator[_Asked]:
    printed_as = scope("neera2020", evidence).value("printed_as").get(evidence.data)
    for epsilon, wanted in load("neera2020")["improvement_over_isgd"].get(printed_as, {}).items():
        name = f"section 4.3, improvement at ε = {epsilon}"
        yield name, wanted, "improvement", "gain_at", {"epsilon": float(epsilon)}
