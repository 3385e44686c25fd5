"""Reduces a config from the command line, under a name that says what was changed.

`friedman_fig3a` on ML-100K, with one fold and one run, becomes `friedman_fig3a.ml-100k.held-out-1.runs-1`. So nobody
takes its figures for those of the complete experiment, and that experiment's folder does not change.
"""

from typing import Any

from pydantic import ValidationError

from dpmf_cli.config import ExperimentConfig, config_of
from dpmf_cli.config.names import HELD_OUT, MARK, RUNS
from dpmf_cli.errors import DpmfError


def reduced(
    config: ExperimentConfig,
    *,
    dataset: str | None = None,
    held_out: int | None = None,
    runs: int | None = None,
) -> ExperimentConfig:
    """Returns `config` on another data set (by its key), with fewer folds held out, or with fewer runs.

    Returns `config` itself if nothing changes. Raises `DpmfError` if the changed config is not valid.
    """
    changes: dict[str, Any] = {}
    marks = [config.name]
    if dataset is not None and dataset != config.dataset.key:
        changes["dataset"] = dataset
        marks.append(dataset)
    if held_out is not None and held_out != config.folds_run:
        changes["held_out"] = held_out
        marks.append(f"{HELD_OUT}{held_out}")
    if runs is not None and runs != config.runs:
        changes["runs"] = runs
        marks.append(f"{RUNS}{runs}")
    if not changes:
        return config
    try:
        return config_of({**config.resolved(), **changes, "name": MARK.join(marks)[:80]})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        said = " ".join(flags(dataset, held_out, runs))
        raise DpmfError(f"{config.name} with {said}: {first['msg']}") from None


def flags(dataset: str | None, held_out: int | None, runs: int | None) -> list[str]:
    """Returns the options of the command line that ask for this reduction."""
    asked = (("--dataset", dataset), ("--held-out", held_out), ("--runs", runs))
    return [word for flag, value in asked if value is not None for word in (flag, str(value))]
