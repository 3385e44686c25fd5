"""Item averages from noisy sums. Counts are noisy too if neighbours differ in the presence of ratings.

McSherry and Mironov 2009, section 4.2; Friedman, Berkovsky, Kaafar 2016, algorithms 1 and 2.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.effects import Beta, Shrinkage, stabilised
from dpmf_cli.kernels.sums import residual_sums_by_user, sums_by
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings

TypicalCount = Annotated[
    float,
    Field(
        ge=1,
        le=1e9,
        description="a public guess of how many ratings a user has; sets the weight of a typical rater",
    ),
]


class Part(StrEnum):
    """The part of the budget that a step is charged to, by its name there."""

    OVERALL = "global_averages"
    ITEMS = "item_averages"
    USERS = "user_averages"


class StepNoise(Protocol):
    """Draws a step's noise for numbers of `shape`, and charges the part of the budget for it."""

    def __call__(
        self,
        part: Part,
        step: str,
        shape: tuple[int, ...],
        moves: Sensitivity,
        calibrated_to: Sensitivity | None = None,
        /,
    ) -> Release: ...


@dataclass(frozen=True)
class Moves:
    """The sensitivities of sums of ratings minus `origin`, of counts, and of sums of residuals.

    calibrated_to  the sensitivity to which a paper scales the noise of the rating sums, if that is not `ratings`
    """

    ratings: Sensitivity
    counts: Sensitivity
    residuals: Sensitivity
    origin: float
    calibrated_to: Sensitivity | None = None


@dataclass(frozen=True)
class UserWeights:
    """The weight of each of a user's ratings in the sums by item, and in the sums over all items: (n_users,) each."""

    by_item: NDArray[np.float64]
    overall: NDArray[np.float64]


@dataclass(frozen=True)
class CentredAverages:
    """The released averages for each ε: `overall` (E,) and `items` (n_items, E), rating scale, and `residual` (E,),
    the average of r − MAvg_i."""

    overall: NDArray[np.float64]
    items: NDArray[np.float64]
    residual: NDArray[np.float64]


@dataclass(frozen=True)
class ItemAverages(CentredAverages):
    """The released averages, and two more arrays.

    counts    (n_items, E) noisy and not below 0; released
    own_sums  (n_users, E) each user's Σ_i (r_ui − MAvg_i); not released
    """

    counts: NDArray[np.float64]
    own_sums: NDArray[np.float64]


def measure_item_averages(
    train: Ratings,
    noise: StepNoise,
    moves: Moves,
    *,
    shrinkage: Shrinkage,
    weights: UserWeights | None = None,
) -> ItemAverages:
    """Measures and releases item averages, and the average of their residuals.

        G = GSum/GCnt,   MAvg_i = (MSum_i + β_m·G)/(MCnt_i + β_m), clamped to the scale,   G again, of r − MAvg_i

    Every item gets noise, rated or not. Noisy counts are clamped at 0 (the global ones at 1), so that a
    denominator is at least β_m. β_m comes from `shrinkage`, in units of `weights`.
    """
    count, total, sums, totals = _sums(train, moves.origin, weights)
    rows = (train.n_items,)

    overall_sum = noise(Part.OVERALL, "global sum", (), moves.ratings, moves.calibrated_to).added_to(total)
    overall_count = noise(Part.OVERALL, "global count", (), moves.counts).added_to(count)
    overall = overall_sum / np.maximum(overall_count, 1)

    of_sums = noise(Part.ITEMS, "item sums", rows, moves.ratings, moves.calibrated_to)
    item_counts = noise(Part.ITEMS, "item counts", rows, moves.counts).added_to(totals)
    items = moves.origin + stabilised(of_sums.added_to(sums), item_counts, shrinkage.under(of_sums), overall)
    items = np.clip(items, train.scale.minimum, train.scale.maximum)

    own = residual_sums_by_user(train.users, train.items, train.values, items, train.n_users)
    everything = own[-1] if weights is None else _weighted_sums(weights.overall, own[:-1])
    residual_sum = noise(Part.OVERALL, "global sum of residuals", (), moves.residuals).added_to(everything)
    residual_count = noise(Part.OVERALL, "global count of residuals", (), moves.counts).added_to(count)
    return ItemAverages(
        moves.origin + overall,
        items,
        residual_sum / np.maximum(residual_count, 1),
        np.maximum(item_counts, 0),
        own[:-1],
    )


def bounded_item_averages(
    train: Ratings,
    noise: StepNoise,
    moves: Sensitivity,
    *,
    shrinkage: Shrinkage,
    noise_on_unrated: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Measures GAvg (E,) and IAvg (n_items, E), rating scale. Who rated what is public. Algorithm 1, lines 1 to 7.

        GAvg = (Σ r_ui + noise)/|R|,   IAvg(i) = (Σ_{R_i} r_ui + β_m·GAvg + noise)/(|R_i| + β_m), clamped to the scale

    An item without ratings has nothing to hide. It gets no noise, and its average is the global one. The paper's
    listing adds noise to it; `noise_on_unrated` does so too.
    """
    total = np.asarray(train.values.sum(dtype=np.float64))
    overall = noise(Part.OVERALL, "global average", (), moves).added_to(total) / max(len(train), 1)
    sums = sums_by(train.items, train.values, train.n_items)
    of_sums = noise(Part.ITEMS, "item averages", (train.n_items,), moves)
    items = averages_of_the_rated(
        of_sums.added_to(sums),
        train.item_counts,
        shrinkage.under(of_sums),
        overall,
        unrated_too=noise_on_unrated,
    )
    return overall, np.clip(items, train.scale.minimum, train.scale.maximum)


def averages_of_the_rated(
    sums: NDArray[np.float64],
    counts: NDArray[np.int64],
    beta: Beta,
    centre: NDArray[np.float64],
    *,
    unrated_too: bool = False,
) -> NDArray[np.float64]:
    """(n, E) stabilised averages. If the public count is 0, the average is the centre without noise, unless
    `unrated_too`."""
    averages = stabilised(sums, counts[:, None].astype(np.float64), beta, centre)
    if unrated_too:
        return averages
    return np.where(counts[:, None] > 0, averages, centre)


def _sums(
    train: Ratings, origin: float, weights: UserWeights | None
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Σ w and Σ w·(r − origin) over all ratings, () each; then Σ w·(r − origin) and Σ w by item, (n_items,) each."""
    values = train.values.astype(np.float64)
    values -= origin
    if weights is None:
        by_item = sums_by(train.items, values, train.n_items)
        return np.asarray(float(len(train))), values.sum(), by_item, train.item_counts.astype(np.float64)
    overall, own = weights.overall[train.users], weights.by_item[train.users]
    return (
        overall.sum(),
        (overall * values).sum(),
        sums_by(train.items, own * values, train.n_items),
        sums_by(train.items, own, train.n_items),
    )


def _weighted_sums(weights: NDArray[np.float64], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """(E,) Σ_u w_u·rows[u]. Each ε is summed separately, so that its sum does not depend on the other ε."""
    return np.array([np.sum(weights * column) for column in np.ascontiguousarray(rows.T)])
