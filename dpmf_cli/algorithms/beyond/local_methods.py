"""Averages and factors of the ratings that an aggregator received: what a local method has to beat."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.algorithms.shared.base import Choices, Paper
from dpmf_cli.algorithms.shared.cost import SOLVED_ENTRY, Cost, Shape, gram_entries
from dpmf_cli.algorithms.shared.local_model import LocalAlgorithm, LocalFactorization
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.mixture import (
    LEAST_VARIANCE,
    REFERENCE,
    Mixture,
    by_item,
    by_user,
    residual_variances,
    solve_mixture,
)
from dpmf_cli.privacy.local import PerturbedRatings
from dpmf_cli.privacy.local_mechanisms import Mechanism
from dpmf_cli.privacy.neighbours import Mode


class LocalMean(LocalAlgorithm):
    """r̂_ui = the mean of all perturbed ratings: a method that does worse has learned nothing."""

    title: ClassVar[str] = "mean of perturbed ratings"
    about: ClassVar[str] = "The mean of all perturbed ratings: what a local method has to beat."
    paper: ClassVar[Paper] = Paper.DPMF
    revision: ClassVar[int] = 2

    algorithm: Literal["local_mean"]

    def aggregate(self, received: PerturbedRatings, streams: Streams) -> EffectsModel:
        items = np.broadcast_to(received.means, (received.n_items, len(received.epsilons)))
        return EffectsModel(items, np.zeros((received.n_users, len(received.epsilons))))


def item_and_user_means(received: PerturbedRatings) -> EffectsModel:
    """Computes the estimates of `LocalMeans` for each ε."""
    grid = len(received.epsilons)
    items, users = np.empty((received.n_items, grid)), np.empty((received.n_users, grid))
    for e, mean in enumerate(np.clip(received.means, 0, 1)):
        residuals = received.values.column(e) - np.float32(mean)
        offsets = shrunk_means(residuals, received.items, received.item_counts)
        residuals -= offsets[received.items].astype(np.float32)
        items[:, e] = mean + offsets
        users[:, e] = shrunk_means(residuals, received.users, received.user_counts)
    return EffectsModel(items, users)


@dataclass(frozen=True)
class Spread:
    """Two variances: of one message `within` its group, and `between` the groups' true means.

    `between` is 0 if the messages show no difference.
    """

    within: float
    between: float


def spread(sums: NDArray[np.float64], counts: NDArray[np.int64], squares: float) -> Spread:
    """Analysis of variance with unequal groups: `sums` and `counts` (groups,), and `squares`, the sum of all squares.

    Searle, Casella, McCulloch 1992, "Variance components", section 3.6: the within mean square estimates σ², and the
    between mean square estimates σ² + n₀τ², n₀ = (N − Σn²/N)/(groups − 1). Two standard errors are subtracted from
    the between mean square: if messages are mostly noise, a τ² that is positive by chance would bring that noise into
    the means.
    """
    counted = counts[counts > 0].astype(np.float64)
    total = counted.sum()
    groups = float(np.sum(sums[counts > 0] ** 2 / counted))
    within = max(squares - groups, 0.0) / max(total - len(counted), 1)
    between = (groups - sums.sum() ** 2 / max(total, 1)) / max(len(counted) - 1, 1)
    typical = (total - (counted**2).sum() / max(total, 1)) / max(len(counted) - 1, 1)
    chance = 2 * within * np.sqrt(2 / max(len(counted) - 1, 1))
    # With one message in each group, noise and differences cannot be told apart.
    seen = typical > 0 and total > len(counted)
    return Spread(within, max(between - within - chance, 0.0) / typical if seen else 0.0)


def shrunk_means(
    residuals: NDArray[np.float32], groups: NDArray[np.int32], counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    """(groups,) the means of residuals (n,) by group (n,), shrunk to 0 as if by σ²/τ² more messages of 0."""
    sums = np.bincount(groups, residuals, len(counts)).astype(np.float64)
    found = spread(sums, counts, float(np.sum(np.square(residuals, dtype=np.float64))))
    if found.between == 0:
        return np.zeros(len(counts))
    return np.asarray(sums / (np.maximum(counts, 1) + found.within / found.between))


class LocalMeans(LocalAlgorithm):
    """r̂_ui = item mean + user mean, debiased and shrunk by how noisy the messages are.

        item_i = m + (Σ_u (r*_ui − m))/(n_i + σ²/τ²),   user_u = (Σ_i (r*_ui − item_i))/(n_u + σ′²/τ′²)

    These are the best linear estimates if the items' true means have variance τ² around m, and messages have variance
    σ² around their item's mean. Both variances are estimated from the messages themselves (`spread`), so nothing is
    tuned. Where noise hides all differences between items (or users), τ² = 0 and the prediction is the mean m, which
    is clipped to [0, 1].
    """

    title: ClassVar[str] = "item and user means"
    about: ClassVar[str] = "Item and user means of perturbed ratings, debiased and shrunk."
    paper: ClassVar[Paper] = Paper.DPMF
    revision: ClassVar[int] = 2

    algorithm: Literal["local_means"]
    debias: bool = Field(True, description="read messages as ½ + (p − ½)/s, so that their mean is the rating")

    def aggregate(self, received: PerturbedRatings, streams: Streams) -> EffectsModel:
        return item_and_user_means(received)

    def cost(self, shape: Shape, grid: int) -> Cost:
        sums = shape.rows * grid * 16.0 + 24.0 * shape.ratings
        return super().cost(shape, grid) + Cost(shape.ratings * grid * 3e-8, sums)


class LocalMatrixFactorization(LocalFactorization):
    """Alternating least squares on the perturbed ratings, with equal weights; ‖·‖² is weighted by n as in ALS-WR:

        p_u ← argmin Σ_i (r*_ui − p·q_i)² + n_u·λ‖p‖²,  then the same for items,  `iterations` times

    The difference between `MixtureFactorization` and this method shows what a mixture of Gaussians adds.

    With `means`, it factorises the residuals of `LocalMeans`, and the ridge grows with their variance, so that λ is
    the same prior for every mechanism and ε. Without `means`, messages of large variance (unbiased ones at small ε)
    are overfitted.
    """

    title: ClassVar[str] = "MF of perturbed ratings"
    about: ClassVar[str] = "Matrix factorisation of perturbed ratings by unweighted ALS."
    paper: ClassVar[Paper] = Paper.DPMF
    revision: ClassVar[int] = 2
    by_rating: ClassVar[bool] = True

    algorithm: Literal["local_mf"]
    means: bool = Field(
        False,
        description="factorise the residuals of shrunk item and user means, with λ in units of their variance",
    )
    iterations: int = Field(20, ge=1, description="how often users, then items, are solved")

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (tuple({"mechanism": kind.value} for kind in Mechanism),)

    def averages_of(self, received: PerturbedRatings) -> EffectsModel:
        return item_and_user_means(received) if self.means else super().averages_of(received)

    def factorise(self, model: FactorModel, received: PerturbedRatings, streams: Streams) -> None:
        values, users, items = received.values, by_user(received), by_item(received)
        variances = np.full(len(received.epsilons), REFERENCE)
        if self.means:
            variances = residual_variances(model, received, values) + LEAST_VARIANCE
        alone = Mixture(np.ones((1, len(variances))), variances[None])
        everything = np.ones(len(variances), np.bool_)
        for _ in range(self.iterations):
            for side in (users, items):
                solve_mixture(
                    model, side, values, alone, regularization=self.regularization, active=everything
                )

    def cost(self, shape: Shape, grid: int) -> Cost:
        solved = 2 * self.iterations * shape.ratings * gram_entries(self.factors)
        seconds = solved * SOLVED_ENTRY * len(groups(grid))
        return super().cost(shape, grid) + Cost(seconds, 12.0 * shape.ratings)
