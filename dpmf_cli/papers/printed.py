"""The figures that the five papers print, as data with which results are compared.

There is one YAML file per paper, named by the paper's key. Its figures are under `printed`; `claims` reads the rest.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from dpmf_cli.core.errors import DpmfError, did_you_mean

#: The table of Friedman et al. (2016) that holds the crossings of each kind of neighbours.
CROSSING_TABLES = {"bounded": "table4", "unbounded": "table5"}


@dataclass(frozen=True)
class PrintedCrossing:
    """One value of tables 4 and 5: the total ε at which a curve meets a baseline.

    `epsilon` is None where the paper prints a dash (input perturbation did not fit in the authors' machine).
    """

    dataset: str
    neighbours: str
    algorithm: str
    baseline: str
    epsilon: float | None


@cache
def papers() -> tuple[str, ...]:
    """The keys of the papers, sorted."""
    files = resources.files("dpmf_cli.papers").iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml")))


@cache
def paper_file(key: str) -> dict[str, Any]:
    """The complete file of one paper, by its key ("friedman2016"), which is read once and must not be changed. Raises
    `DpmfError` for an unknown paper."""
    if key not in papers():
        raise DpmfError(f'no paper "{key}"{did_you_mean(key, papers())}')
    text = (resources.files("dpmf_cli.papers") / f"{key}.yaml").read_text(encoding="utf-8")
    parsed: dict[str, Any] = yaml.safe_load(text)
    return parsed


def load(key: str) -> dict[str, Any]:
    """All printed figures of one paper, e.g. `load("friedman2016")["table2"]["ml-100k"]["users"]`.

    They are read once and must not be changed. Raises `DpmfError` for an unknown paper.
    """
    printed: dict[str, Any] = paper_file(key)["printed"]
    return printed


def printed_crossings() -> Iterator[PrintedCrossing]:
    """Yields every value of Friedman et al.'s tables 4 (bounded) and 5 (unbounded), including the dashes."""
    for neighbours, table in CROSSING_TABLES.items():
        for algorithm, baselines in load("friedman2016")[table].items():
            for baseline, values in baselines.items():
                for dataset, value in values.items():
                    epsilon = None if value is None else float(value)
                    yield PrintedCrossing(dataset, neighbours, algorithm, baseline, epsilon)


def crossings_in_words() -> Iterator[PrintedCrossing]:
    """Yields the crossings that section 5.4 gives, most of them private kNN's, which the tables leave out."""
    for dataset, algorithms in load("friedman2016")["section5_4"].items():
        for algorithm, baselines in algorithms.items():
            for baseline, epsilon in baselines.items():
                yield PrintedCrossing(dataset, "bounded", algorithm, baseline, float(epsilon))


@cache
def _crossings_by_place() -> dict[tuple[str, str, str, str], float | None]:
    both = (*crossings_in_words(), *printed_crossings())  # the tables' where both have one
    return {(of.dataset, of.neighbours, of.algorithm, of.baseline): of.epsilon for of in both}


def printed_crossing(dataset: str, neighbours: str, algorithm: str, baseline: str) -> float | None:
    """The total ε that is printed for ("ml-100k", "bounded", "pge", "IA"); None if none is."""
    return _crossings_by_place().get((dataset, neighbours, algorithm, baseline))


def printed_reason(table: str, *keys: str) -> str:
    """Why a value of Friedman et al.'s tables differs from what is measured; "" if no reason is known.

    `keys` lead to the value in its table: `printed_reason("table2", "ml-1m", "items")`.
    """
    found = load("friedman2016").get(f"{table}_reasons", {})
    for key in keys:
        found = found.get(key, {})
    return found or ""


def printed_baseline(dataset: str, baseline: str) -> float | None:
    """The RMSE that Friedman et al.'s table 3 prints ("ml-100k", "GE"); None if it prints none."""
    value = load("friedman2016")["table3"].get(dataset, {}).get(baseline)
    return None if value is None else float(value)


def printed_statistics(dataset: str) -> dict[str, float] | None:
    """The row of Friedman et al.'s table 2 for a data set ("ml-100k"); None if it has none."""
    row: dict[str, float] | None = load("friedman2016")["table2"].get(dataset)
    return row
