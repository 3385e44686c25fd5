"""Private averages for every kind of neighbours: algorithms 1 and 2 of Friedman et al. 2016, section 4.1."""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.effects import Effects, EffectsBudget, EffectsParameters, bounded_effects, stabilised
from dpmf_cli.kernels.sums import residual_sums_by_user
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


def private_effects(
    train: Ratings,
    parameters: EffectsParameters,
    budget: EffectsBudget,
    *,
    neighbours: Neighbours,
    mode: Mode,
    streams: Streams,
    ledger: Ledger,
) -> Effects:
    """The averages that hide what `neighbours` differ in."""
    if neighbours is Neighbours.BOUNDED:
        return bounded_effects(train, parameters, budget, streams=streams, ledger=ledger)
    return unbounded_effects(train, parameters, budget, mode=mode, streams=streams, ledger=ledger)


def unbounded_effects(
    train: Ratings,
    parameters: EffectsParameters,
    budget: EffectsBudget,
    *,
    mode: Mode,
    streams: Streams,
    ledger: Ledger,
) -> Effects:
    """Algorithms 1 and 2 for neighbours that differ in the presence of one rating.

    As in the bounded case, but every count is noisy too, with half of the average's ε for the count and half for
    the sum (section 4.1 leaves the halves open), and every user and item gets noise, rated or not. Noisy counts
    are clamped at 0 (the global ones at 1), so that a denominator is at least β.

    Published: raw sums with noise scaled to Δr, which a rating of r_max exceeds. Corrected: sums of r − middle
    with noise scaled to Δr/2, the middle of the public scale being added back to the average.
    """
    scale = train.scale
    moves, calibrated_to, origin = sensitivity.centred_rating_sums_unbounded(scale), None, scale.middle
    if mode is Mode.PUBLISHED:
        moves = sensitivity.raw_rating_sums_unbounded(scale)
        calibrated_to, origin = sensitivity.published_rating_sums_unbounded(scale), 0.0
    residual_moves, count_moves = (
        sensitivity.residual_sums_unbounded(scale),
        sensitivity.rating_counts_unbounded(),
    )

    def noisy(
        step: str,
        values: NDArray[np.float64],
        shape: tuple[int, ...],
        epsilon: NDArray[np.float64],
        moves: Sensitivity,
        calibrated_to: Sensitivity | None = None,
    ) -> NDArray[np.float64]:
        """(*shape, E): `values`, common to all ε or of each ε's own, with noise."""
        noise = laplace(
            step,
            shape,
            sensitivity=moves,
            calibrated_to=calibrated_to,
            epsilon=epsilon,
            rng=streams.generator(step),
            ledger=ledger,
        )
        return noise.added_to(values)

    quarter = budget.global_averages / 4
    centred = train.values.astype(np.float64) - origin
    total = np.asarray(float(len(train)))
    overall_sum = noisy("global sum", centred.sum(), (), quarter, moves, calibrated_to)
    overall_count = noisy("global count", total, (), quarter, count_moves)
    overall = overall_sum / np.maximum(overall_count, 1)

    half, rows = budget.item_averages / 2, (train.n_items,)
    sums = np.asarray(np.bincount(train.items, centred, train.n_items), dtype=np.float64)
    item_sums = noisy("item sums", sums, rows, half, moves, calibrated_to)
    item_counts = noisy("item counts", train.item_counts.astype(np.float64), rows, half, count_moves)
    items = origin + stabilised(item_sums, item_counts, parameters.beta_m, overall)
    items = np.clip(items, scale.minimum, scale.maximum)

    residuals = residual_sums_by_user(train.users, train.items, train.values, items, train.n_users)
    residual_sum = noisy("global sum of residuals", residuals[-1], (), quarter, residual_moves)
    residual_count = noisy("global count of residuals", total, (), quarter, count_moves)
    half, rows = budget.user_averages / 2, (train.n_users,)
    user_sums = noisy("user sums", residuals[:-1], rows, half, residual_moves)
    user_counts = noisy("user counts", train.user_counts.astype(np.float64), rows, half, count_moves)
    users = stabilised(
        user_sums, user_counts, parameters.beta_u, residual_sum / np.maximum(residual_count, 1)
    )
    users = np.clip(users, -parameters.user_clamp, parameters.user_clamp)
    return Effects(origin + overall, items, users)
