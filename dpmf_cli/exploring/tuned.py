"""Chooses parameters for each ε: takes the best of all settings on some folds, measured on other folds."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from dpmf_cli.evaluation.curves import Experiment, Measured


def best_of_each(
    experiments: Sequence[Experiment], choosing: Sequence[int], testing: Sequence[int]
) -> Experiment:
    """Returns one experiment on the testing folds, with the best settings of the choosing folds.

    Each curve takes at each ε the setting with the lowest mean RMSE on the choosing folds. So does each baseline.

    experiments   the same config under all settings: the same curves over the same ε
    """
    tested = experiments[0].of_folds(testing)
    curves = zip(*(each.curves for each in experiments), strict=True)
    baselines = zip(*(each.baselines for each in experiments), strict=True)
    return replace(
        tested,
        curves=tuple(_best(each, choosing, testing) for each in curves),
        baselines=tuple(_best(each, choosing, testing) for each in baselines),
        growth=None,
    )


def _best(settings: Sequence[Measured], choosing: Sequence[int], testing: Sequence[int]) -> Measured:
    at_choosing = np.array([each.rmse[list(choosing)].mean(axis=(0, 1)) for each in settings])
    best = np.where(np.isnan(at_choosing), np.inf, at_choosing).argmin(axis=0)
    rmse = np.stack([settings[at].rmse[list(testing)][:, :, e] for e, at in enumerate(best)], axis=-1)
    return replace(
        settings[0],
        rmse=rmse,
        claimed=np.array([settings[at].claimed[e] for e, at in enumerate(best)]),
        provable=np.array([settings[at].provable[e] for e, at in enumerate(best)]),
        missing=int(np.isnan(rmse).any(axis=(0, 1)).sum()),
        twin=None,
        others={},
    )
