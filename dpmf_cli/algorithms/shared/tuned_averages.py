"""Chooses β_m and β_u of averages without noise, by cross-validation on the training ratings."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.averages import averages_of_the_rated
from dpmf_cli.algorithms.shared.effects import EffectsParameters
from dpmf_cli.algorithms.shared.tuning import inner_folds
from dpmf_cli.kernels.sums import residual_sums_by_user, sums_by
from dpmf_cli.ratings import Ratings, average_of

BETAS = np.array([0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500])
"""(B,) the values tried for β_m and for β_u, in every combination."""


def tuned_for_items(train: Ratings, effects: EffectsParameters) -> EffectsParameters:
    """`effects` with the β_m of the item averages that predict best."""
    errors = np.zeros(len(BETAS))
    for fitted, held_out in inner_folds(train):
        errors += _squares(held_out.values[:, None] - _item_averages(fitted)[held_out.items])
    return effects.model_copy(update={"beta_m": _best(errors)})


def tuned_for_users(train: Ratings, effects: EffectsParameters) -> EffectsParameters:
    """`effects` with the β_u of the user averages that predict best without item averages."""
    errors = np.zeros(len(BETAS))
    for fitted, held_out in inner_folds(train):
        averages = average_by_user(fitted, BETAS)
        errors += _squares(held_out.values[:, None] - averages[held_out.users])
    return effects.model_copy(update={"beta_u": _best(errors)})


def tuned_for_both(train: Ratings, effects: EffectsParameters) -> EffectsParameters:
    """`effects` with the β_m and β_u of the item and user averages that predict best together."""
    errors = np.zeros((len(BETAS), len(BETAS)))
    for fitted, held_out in inner_folds(train):
        items = _item_averages(fitted)
        left = held_out.values[:, None] - items[held_out.items]
        sums = residual_sums_by_user(fitted.users, fitted.items, fitted.values, items, fitted.n_users)
        for row, beta in zip(errors, BETAS, strict=True):
            users = averages_of_the_rated(sums[:-1], fitted.user_counts, beta, sums[-1] / len(fitted))
            row += _squares(left - np.clip(users, -effects.user_clamp, effects.user_clamp)[held_out.users])
    user, item = np.unravel_index(np.argmin(errors), errors.shape)
    return effects.model_copy(update={"beta_m": float(BETAS[item]), "beta_u": float(BETAS[user])})


def both_averages(
    train: Ratings, effects: EffectsParameters
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """(n_items, 1) item averages and (n_users, 1) user averages of the residuals, with the β of `effects`.

    Algorithms 1 and 2 of Friedman et al. 2016, without noise and without the clamp.
    """
    items = _item_averages(train, np.array([effects.beta_m]))
    sums = residual_sums_by_user(train.users, train.items, train.values, items, train.n_users)
    centre = sums[-1] / max(len(train), 1)
    return items, averages_of_the_rated(sums[:-1], train.user_counts, effects.beta_u, centre)


def average_by_user(train: Ratings, betas: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n_users, B) (Σ_{R_u} r_ui + β·GAvg)/(|R_u| + β) for each β of `betas` (B,), rating units."""
    sums = sums_by(train.users, train.values, train.n_users)[:, None]
    return averages_of_the_rated(sums, train.user_counts, betas, _overall(train))


def _item_averages(train: Ratings, betas: NDArray[np.float64] = BETAS) -> NDArray[np.float64]:
    """(n_items, B) the item averages for each β of `betas` (B,)."""
    sums = sums_by(train.items, train.values, train.n_items)[:, None]
    averages = averages_of_the_rated(sums, train.item_counts, betas, _overall(train))
    return np.ascontiguousarray(averages)


def _overall(train: Ratings) -> NDArray[np.float64]:
    return np.array([average_of(train.values, train.scale.middle)])


def _squares(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """(B,) sums of squares of errors (n, B)."""
    return np.asarray(np.square(errors).sum(axis=0))


def _best(errors: NDArray[np.float64]) -> float:
    return float(BETAS[np.argmin(errors)])
