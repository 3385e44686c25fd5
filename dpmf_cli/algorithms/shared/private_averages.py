"""Private averages for every kind of neighbours: algorithms 1 and 2 of Friedman et al. 2016, section 4.1."""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.effects import Effects, EffectsBudget, EffectsParameters, stabilised
from dpmf_cli.algorithms.shared.item_averages import (
    Moves,
    Part,
    StepNoise,
    averages_of_the_rated,
    bounded_item_averages,
    measure_item_averages,
)
from dpmf_cli.kernels.sums import residual_sums_by_user
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings, Scale


def private_effects(
    train: Ratings,
    parameters: EffectsParameters,
    budget: EffectsBudget,
    *,
    neighbours: Neighbours,
    mode: Mode,
    curator: Curator,
) -> Effects:
    """Measures averages that hide what `neighbours` differ in. Raises ValueError if there is no variant for them."""
    if neighbours is Neighbours.BOUNDED:
        return bounded_effects(train, parameters, budget, curator=curator)
    if neighbours is Neighbours.UNBOUNDED:
        moves = UNBOUNDED_MOVES[mode](train.scale)
        return unbounded_effects(train, parameters, budget, moves, curator=curator)
    raise ValueError(f"user averages cannot be released with neighbours {neighbours.value}")


def averages_of(entry: PrivateAlgorithm, train: Ratings, budget: EffectsBudget, curator: Curator) -> Effects:
    """Measures the averages under an entry's neighbours and mode."""
    return private_effects(
        train, entry.effects, budget, neighbours=entry.neighbours, mode=entry.mode, curator=curator
    )


def published_moves(scale: Scale) -> Moves:
    """Raw sums with noise scaled to Δr. A rating of r_max exceeds Δr."""
    return Moves(
        sensitivity.raw_rating_sums_unbounded(scale),
        sensitivity.rating_counts_unbounded(),
        sensitivity.residual_sums_unbounded(scale),
        origin=0.0,
        calibrated_to=sensitivity.published_rating_sums_unbounded(scale),
    )


def corrected_moves(scale: Scale) -> Moves:
    """Sums of r − middle with noise scaled to Δr/2. The middle of the public scale is added back to the average."""
    return Moves(
        sensitivity.centred_rating_sums_unbounded(scale),
        sensitivity.rating_counts_unbounded(),
        sensitivity.residual_sums_unbounded(scale),
        origin=scale.middle,
    )


UNBOUNDED_MOVES: Mapping[Mode, Callable[[Scale], Moves]] = {
    Mode.PUBLISHED: published_moves,
    Mode.CORRECTED: corrected_moves,
}


def laplace_steps(shares: Mapping[Part, NDArray[np.float64]], curator: Curator) -> StepNoise:
    """Laplace noise for the steps of each part. Each step spends the ε of its part, `shares` (E,)."""
    return lambda part, step, shape, moves, calibrated_to=None: laplace(
        step,
        shape,
        sensitivity=moves,
        calibrated_to=calibrated_to,
        epsilon=shares[part],
        curator=curator,
    )


def _of_sums_and_counts(
    shares: Mapping[Part, NDArray[np.float64]], sum_share: float, counts: Sensitivity, curator: Curator
) -> StepNoise:
    """Laplace noise for the steps of each average. The sum and the count of an average split its ε in `shares` (E,):
    the sum gets `sum_share`."""
    summed, counted = (
        laplace_steps({part: share * epsilon for part, epsilon in shares.items()}, curator)
        for share in (sum_share, 1 - sum_share)
    )
    return lambda part, step, shape, moves, calibrated_to=None: (counted if moves is counts else summed)(
        part, step, shape, moves, calibrated_to
    )


def bounded_effects(
    train: Ratings,
    parameters: EffectsParameters,
    budget: EffectsBudget,
    *,
    curator: Curator,
) -> Effects:
    """Algorithms 1 and 2, for neighbours that differ in the value of one rating (counts are public).

        GAvg and IAvg with noise Laplace(Δr/ε₁) and Laplace(Δr/ε₂): `bounded_item_averages`
        GAvg′   = (Σ (r_ui − IAvg(i)) + Laplace(Δr/ε₁)) / |R|
        UAvg(u) = (Σ_{R_u} (r_ui − IAvg(i)) + β_u·GAvg′ + Laplace(Δr/ε₃)) / (|R_u| + β_u), clamped

    ε₁ is half of `budget.global_averages`. Unless `noise_on_unrated`, a user without ratings gets the global average
    GAvg′ and no further noise.
    """
    noise = laplace_steps(
        {
            Part.OVERALL: budget.global_averages / 2,
            Part.ITEMS: budget.item_averages,
            Part.USERS: budget.user_averages,
        },
        curator,
    )
    overall, items = bounded_item_averages(
        train,
        noise,
        sensitivity.rating_sums(train.scale),
        shrinkage=parameters.of_items,
        noise_on_unrated=parameters.noise_on_unrated,
    )
    moves = sensitivity.residual_sums(train.scale)
    residuals = residual_sums_by_user(train.users, train.items, train.values, items, train.n_users)
    residual_sum = noise(Part.OVERALL, "global average of residuals", (), moves).added_to(residuals[-1])
    of_users = noise(Part.USERS, "user averages", (train.n_users,), moves)
    users = averages_of_the_rated(
        of_users.added_to(residuals[:-1]),
        train.user_counts,
        parameters.of_users.under(of_users),
        residual_sum / max(len(train), 1),
        unrated_too=parameters.noise_on_unrated,
    )
    return Effects(overall, items, np.clip(users, -parameters.user_clamp, parameters.user_clamp))


def unbounded_effects(
    train: Ratings,
    parameters: EffectsParameters,
    budget: EffectsBudget,
    moves: Moves,
    *,
    curator: Curator,
) -> Effects:
    """Algorithms 1 and 2 for neighbours that differ in the presence of one rating.

    As in the bounded case, with two differences. Every count is noisy too, with the ε that `sum_share` leaves of the
    average's. Every user and item gets noise, rated or not.
    """
    noise = _of_sums_and_counts(
        {
            Part.OVERALL: budget.global_averages / 2,
            Part.ITEMS: budget.item_averages,
            Part.USERS: budget.user_averages,
        },
        parameters.sum_share,
        moves.counts,
        curator,
    )
    averages = measure_item_averages(train, noise, moves, shrinkage=parameters.of_items)
    rows = (train.n_users,)
    of_users = noise(Part.USERS, "user sums", rows, moves.residuals)
    user_counts = noise(Part.USERS, "user counts", rows, moves.counts).added_to(
        train.user_counts.astype(np.float64)
    )
    users = stabilised(
        of_users.added_to(averages.own_sums),
        user_counts,
        parameters.of_users.under(of_users),
        averages.residual,
    )
    users = np.clip(users, -parameters.user_clamp, parameters.user_clamp)
    return Effects(averages.overall, averages.items, users)
