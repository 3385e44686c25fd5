"""Parses a user's own ratings file, text or Parquet, as its spec describes it."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.datasets.formats import parquet, user_csv
from dpmf_cli.datasets.formats.scales import in_words, scale_of
from dpmf_cli.datasets.raw import Raw
from dpmf_cli.datasets.spec import CsvSpec
from dpmf_cli.errors import DpmfError
from dpmf_cli.privacy.accounting import LEAST_EPSILON, MOST_EPSILON


def parse(path: Path, spec: CsvSpec) -> Raw:
    """Returns users and items as positions in their labels, ratings float64, in file order.

    Raises `DpmfError` with file, line (in Parquet: row) and fix for ratings that cannot be read.
    """
    reader = parquet if parquet.is_parquet(path) else user_csv
    columns = reader.columns(path, spec)
    extra: dict[str, NDArray[Any]] = {}
    if "timestamp" in columns:
        extra["timestamp"] = _whole(columns["timestamp"])
    if "epsilon" in columns:
        extra["epsilon"] = columns["epsilon"]
    raw = Raw(
        columns["user"][0],
        columns["item"][0],
        columns["rating"],
        where=lambda row: reader.place(path, spec, row),
        fix="correct the file, or its description in the config",
        fix_repeated="correct the file, or set `duplicates` to last or mean",
        fix_scale=lambda: (
            f"correct the file, or set `scale` to what the site allows ({in_words(scale_of(columns['rating']))})"
        ),
        columns=extra,
        user_labels=columns["user"][1],
        item_labels=columns["item"][1],
    )
    _check_epsilon(raw)
    return raw


def _whole(times: NDArray[np.float64]) -> NDArray[np.int64] | NDArray[np.float64]:
    """Returns times as int64 if all are whole seconds; else as they are."""
    whole = np.array_equal(times, np.rint(times)) and (np.abs(times) < 2**63).all()
    return times.astype(np.int64) if whole else times


def _check_epsilon(raw: Raw) -> None:
    epsilon = raw.columns.get("epsilon")
    if epsilon is None:
        return
    good = (epsilon >= LEAST_EPSILON) & (epsilon <= MOST_EPSILON)  # type: ignore[operator]
    if not good.all():
        row = int(np.argmin(good))
        raise DpmfError(
            f"{raw.where(row)}: epsilon is {epsilon[row]}, not a number from {LEAST_EPSILON:g} to {MOST_EPSILON:g}; "
            "correct the file"
        )
