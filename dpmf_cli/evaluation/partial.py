"""Restricts experiments to some of their folds: those that an interrupted run has finished, or halves to compare."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dpmf_cli.evaluation.curves import Experiment, Measured, Stage


def of_finished_folds(experiment: Experiment) -> Experiment | None:
    """The experiment restricted to the folds on which all curves and baselines have results.

    None where these are all folds, or none. A run goes through the folds one after the other, so most curves lose
    no results by this.
    """
    measured = (*experiment.curves, *experiment.baselines, *experiment.aside)
    folds = [fold for fold in range(experiment.folds) if all(_is_finished(each, fold) for each in measured)]
    if len(folds) in (0, experiment.folds):
        return None
    finished = of_folds(experiment, folds)
    return replace(finished, growth=None, partial=f"{len(folds)} of {experiment.folds} folds")


def of_folds(experiment: Experiment, folds: Sequence[int]) -> Experiment:
    """The experiment as if only these folds had been held out. Folds without a result count as missing."""
    growth = experiment.growth
    return replace(
        experiment,
        folds=len(folds),
        curves=tuple(_of_folds(each, folds) for each in experiment.curves),
        baselines=tuple(_of_folds(each, folds) for each in experiment.baselines),
        aside=tuple(_of_folds(each, folds) for each in experiment.aside),
        growth=growth
        and replace(growth, stages=tuple(_stage_of_folds(stage, folds) for stage in growth.stages)),
    )


def _stage_of_folds(stage: Stage, folds: Sequence[int]) -> Stage:
    return replace(
        stage,
        curves=tuple(_of_folds(each, folds) for each in stage.curves),
        baselines=tuple(_of_folds(each, folds) for each in stage.baselines),
    )


def _is_finished(measured: Measured, fold: int) -> bool:
    twin = () if measured.twin_values is None else measured.twin_values[fold]
    return not (np.isnan(measured.values[fold]).any() or np.isnan(twin).any())


def _of_folds(measured: Measured, folds: Sequence[int]) -> Measured:
    per_fold = ("rmse", "mae", "twin", "error_cdf", "twin_cdf")
    arrays = {
        name: values[list(folds)] for name in per_fold if (values := getattr(measured, name)) is not None
    }
    metrics: dict[str, Any] = {
        name: {key: values[list(folds)] for key, values in getattr(measured, name).items()}
        for name in ("ranked", "twin_ranked")
    }
    missing = sum(not _is_finished(measured, fold) for fold in folds)
    return replace(measured, missing=missing, **arrays, **metrics)
