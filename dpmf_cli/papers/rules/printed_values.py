"""The values that papers print, beside what was measured.

They are Friedman et al.'s tables 3 to 5 and section 5.4, and Neera et al.'s improvements. The other papers give words
or pictures only ("about 70 %"). Points that are read off a picture can be put into `papers/curves/KEY.csv`, whose
columns are dataset, config, label, epsilon, rmse and error: how far off the reading may be. None is there.
"""

from collections.abc import Iterator
from contextlib import suppress

import pandas as pd

from dpmf_cli.core.files import PACKAGE
from dpmf_cli.evaluation.crossings import DISTANCE
from dpmf_cli.papers import printed as figures
from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.record import PrintedValue
from dpmf_cli.papers.rules import scope
from dpmf_cli.papers.rules.quantities import at

CURVES = PACKAGE / "papers" / "curves"


def printed_values(key: str, evidence: Evidence) -> dict[str, PrintedValue]:
    """By name the printed values of the evidence's data set that are measured."""
    of_paper = {"friedman2016": _of_friedman, "neera2020": _of_neera}
    return {**dict(of_paper[key](evidence) if key in of_paper else ()), **dict(_of_curves(key, evidence))}


def _of_curves(key: str, evidence: Evidence) -> Iterator[tuple[str, PrintedValue]]:
    """Yields the points that were read off a paper's pictures, where their ε is on the grid of the curve."""
    file = CURVES / f"{key}.csv"
    points = pd.read_csv(file).to_dict("records") if file.is_file() else []
    for point in points:
        config, label, epsilon = (point[name] for name in ("config", "label", "epsilon"))
        with suppress(MissingEvidence):
            if point["dataset"] == evidence.data:
                curve = evidence.curve(config, label)
                measured = at(curve.epsilons, curve.mean(), epsilon)
                yield (
                    f"{config}, {label}, ε = {epsilon:g}",
                    PrintedValue.of(point["rmse"], measured, point["error"]),
                )


def _of_friedman(evidence: Evidence) -> Iterator[tuple[str, PrintedValue]]:
    names, data = scope("friedman2016", evidence), evidence.data
    for baseline in ("GA", "IA", "GE", "ALS"):
        printed = figures.printed_baseline(data, baseline)
        with suppress(MissingEvidence):
            if printed is not None:
                values = {"kind": "bounded", "baseline": baseline.lower()}
                level = float(names.with_values(values).value("level(table, baseline)"))
                yield f"table 3, {baseline}", PrintedValue.of(printed, level, DISTANCE)
    of_tables = ((each, figures.CROSSING_TABLES[each.neighbours]) for each in figures.printed_crossings())
    for each, table in (*of_tables, *((each, "") for each in figures.crossings_in_words())):
        if each.dataset != data or each.epsilon is None:
            continue
        with suppress(MissingEvidence):
            config = names.with_values({"kind": each.neighbours}).value("table" if table else "fig5")
            found = evidence.crossing(config, each.algorithm, each.baseline, each.epsilon)
            if found.off is not None:
                place = f"table {table[-1]}" if table else "section 5.4"
                value = PrintedValue(
                    printed=each.epsilon, measured=found.reproduced, gap=found.gap, off=found.off
                )
                yield f"{place}, {each.algorithm.upper()}, {each.baseline}", value


def _of_neera(evidence: Evidence) -> Iterator[tuple[str, PrintedValue]]:
    names, printed = scope("neera2020", evidence), figures.load("neera2020")
    of_data = printed["improvement_over_isgd"].get(names.value("printed_as").get(evidence.data), {})
    for epsilon, wanted in of_data.items():
        with suppress(MissingEvidence):
            gain = float(names.with_values({"epsilon": float(epsilon)}).value("gain_at"))
            name = f"section 4.3, improvement at ε = {epsilon}"
            yield name, PrintedValue.of(wanted, gain, printed["tolerances"]["improvement"])
