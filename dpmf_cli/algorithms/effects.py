"""Effects: averages measured under differential privacy, discounted before factorisation, added back after.

Friedman, Berkovsky, Kaafar 2016, section 4.1, algorithms 1 and 2 (after McSherry and Mironov 2009).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.kernels.sums import residual_sums_by_user, sums_by
from dpmf_cli.models import StrictModel
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams


class EffectsParameters(StrictModel):
    """How averages are stabilised and clamped. The paper states the clamps; β_m and β_u were found by fit."""

    beta_m: float = Field(
        10.0, ge=0, le=1e12, description="β_m: ratings at the global average added to each item"
    )
    beta_u: float = Field(
        100.0, ge=0, le=1e12, description="β_u: residuals at their average added to each user"
    )
    user_clamp: float = Field(2.0, gt=0, description="released user averages are clamped to [−this, this]")
    residual_clamp: float = Field(
        1.0, ge=1e-6, le=1e6, description="B: residuals are clamped to [−B, B], equation 7"
    )


@dataclass(frozen=True)
class EffectsBudget:
    """(E,) each: the ε of the two global averages together, of the item averages, of the user averages."""

    global_averages: NDArray[np.float64]
    item_averages: NDArray[np.float64]
    user_averages: NDArray[np.float64]


@dataclass(frozen=True)
class Effects:
    """Averages for each ε of the grid. A prediction from effects alone is items[i] + users[u].

    overall (E,), items (n_items, E): rating scale; users (n_users, E): offsets from the item averages.
    """

    overall: NDArray[np.float64]
    items: NDArray[np.float64]
    users: NDArray[np.float64]


def bounded_effects(
    train: Ratings,
    parameters: EffectsParameters,
    budget: EffectsBudget,
    *,
    streams: Streams,
    ledger: Ledger,
) -> Effects:
    """Algorithms 1 and 2, for neighbours that differ in the value of one rating (counts are public).

        GAvg    = (Σ r_ui + Laplace(Δr/ε₁)) / |R|
        IAvg(i) = (Σ_{R_i} r_ui + β_m·GAvg + Laplace(Δr/ε₂)) / (|R_i| + β_m),           clamped to the scale
        GAvg′   = (Σ (r_ui − IAvg(i)) + Laplace(Δr/ε₁)) / |R|
        UAvg(u) = (Σ_{R_u} (r_ui − IAvg(i)) + β_u·GAvg′ + Laplace(Δr/ε₃)) / (|R_u| + β_u), clamped

    ε₁ is half of `budget.global_averages`. Who rated what is public here, so an item or user without
    ratings has nothing to hide: it gets no noise, and its average is the global one.
    """
    each_global = budget.global_averages / 2
    scale, n_ratings = train.scale, max(len(train), 1)

    overall_sum = laplace(
        "global average",
        (),
        sensitivity=sensitivity.rating_sums(scale),
        epsilon=each_global,
        rng=streams.generator("global average"),
        ledger=ledger,
    ).added_to(train.values.sum(dtype=np.float64))
    overall = overall_sum / n_ratings

    item_sums = laplace(
        "item averages",
        (train.n_items,),
        sensitivity=sensitivity.rating_sums(scale),
        epsilon=budget.item_averages,
        rng=streams.generator("item averages"),
        ledger=ledger,
    ).added_to(sums_by(train.items, train.values, train.n_items))
    items = _averages_of_the_rated(item_sums, train.item_counts, parameters.beta_m, overall)
    items = np.clip(items, scale.minimum, scale.maximum)

    residuals = residual_sums_by_user(train.users, train.items, train.values, items, train.n_users)
    residual_mean = (
        laplace(
            "global average of residuals",
            (),
            sensitivity=sensitivity.residual_sums(scale),
            epsilon=each_global,
            rng=streams.generator("global average of residuals"),
            ledger=ledger,
        ).added_to(residuals[-1])
        / n_ratings
    )
    user_sums = laplace(
        "user averages",
        (train.n_users,),
        sensitivity=sensitivity.residual_sums(scale),
        epsilon=budget.user_averages,
        rng=streams.generator("user averages"),
        ledger=ledger,
    ).added_to(residuals[:-1])
    users = _averages_of_the_rated(user_sums, train.user_counts, parameters.beta_u, residual_mean)
    users = np.clip(users, -parameters.user_clamp, parameters.user_clamp)
    return Effects(overall, items, users)


def _averages_of_the_rated(
    sums: NDArray[np.float64], counts: NDArray[np.int64], beta: float, centre: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(n, E) stabilised averages; the centre itself, without noise, where the public count is 0."""
    averages = stabilised(sums, counts[:, None].astype(np.float64), beta, centre)
    return np.where(counts[:, None] > 0, averages, centre)


def stabilised(
    sums: NDArray[np.float64], counts: NDArray[np.float64], beta: float, centre: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(n, E) (sum + β·centre) / (max(count, 0) + β) for each row; the centre where the denominator is 0."""
    weight = np.maximum(counts, 0) + beta
    return np.where(weight > 0, (sums + beta * centre) / np.where(weight > 0, weight, 1.0), centre)
