"""What is built on a noisy item-item covariance: shrinking, cleaning, and predictions by kNN and SVD.

McSherry and Mironov 2009, sections 4.6 and 5. Private kNN of Friedman et al. 2016, section 5.4, is the same with
released user averages.
"""

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Annotated, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.effects import Effects
from dpmf_cli.algorithms.shared.item_averages import TypicalCount
from dpmf_cli.algorithms.shared.refitting import Factors, Refitting
from dpmf_cli.kernels.covariance import Raters, mean_ratios, shrink, weighted_products, with_noise
from dpmf_cli.kernels.low_rank import clean, eigen_of_low_rank
from dpmf_cli.kernels.neighbours import interpolate, nearest
from dpmf_cli.kernels.subspace import regress
from dpmf_cli.kernels.symmetric import leading_eigenpairs
from dpmf_cli.privacy.release import Release
from dpmf_cli.ratings import Ratings


def _ascending(limits: tuple[float, float]) -> tuple[float, float]:
    if not 0 <= limits[0] <= limits[1] <= 1:
        raise PydanticCustomError("limits", "limits must ascend within [0, 1]", {})
    return limits


Limits = Annotated[tuple[float, float], AfterValidator(_ascending)]


class CovarianceAlgorithm(PrivateAlgorithm):
    """An algorithm that predicts from an item-item covariance: how Cov and Wgt become the Avg that it uses.

        Avg_ij = (Cov_ij + s·μ)/(Wgt_ij + s),   with its own s and μ on the diagonal

    (section 4.6, "shrinking to the average"; s for β·avgWgt). All of it is post-processing of what is released.
    s grows with the noise, whose scale is public. μ is the average that the released matrices show, within public
    limits: noise could make it negative. Nothing here depends on the private data otherwise.
    """

    ridge: float = Field(
        0.2, ge=1e-6, le=1e6, description="variance of what no other item explains, in units of B²"
    )
    shrinkage: float = Field(
        100.0, ge=1e-6, le=1e12, description="s without noise, in raters: where Avg is half way to μ"
    )
    noise_shrinkage: float = Field(
        60.0, ge=0, le=1e6, description="what s grows by for each unit of the noise's scale on Cov/B²"
    )
    diagonal_noise_shrinkage: float = Field(60.0, ge=0, le=1e6, description="the same for the diagonal's s")
    typical_count: TypicalCount = 100.0
    variance_limits: Limits = Field(
        (0.25, 1.0), description="public limits of the diagonal's μ, in units of B²"
    )
    covariance_limits: Limits = Field((0.02, 0.1), description="public limits of the other entries' μ, in B²")

    @abstractmethod
    def predictor(self, train: Ratings, users: NDArray[np.int32], items: NDArray[np.int32]) -> "Predictor":
        """What predicts the pairs (users, items), n of them."""


@dataclass(frozen=True)
class Released:
    """What predictions for one ε are made from.

    covariance, weight  packed triangles: Avg, and the noisy Wgt (clamped at 0)
    residuals           (n_ratings,) r_ui − MAvg_i − r̄_u of the users' own ratings: not released
    item_scaling        (n_items,) √MCnt_i, of one rater at least, or 1 where counts are not measured
    ridge_factor        what the predictor's ridge is multiplied by
    """

    covariance: NDArray[np.float32]
    weight: NDArray[np.float32]
    residuals: NDArray[np.float64]
    item_scaling: NDArray[np.float64]
    ridge_factor: float = 1.0


class Predictor(Protocol):
    """Predicts what averages leave for pairs (users, items), n of them, for one ε after the other."""

    def __call__(self, released: Released) -> NDArray[np.float64]:
        """(n,) predicted residuals. May overwrite `released.covariance`."""


@dataclass
class NearestItems:
    """kNN after Bell and Koren 2007: weights by ridge regression over the k rated items with the largest Wgt.

    w = (Avg_NN + ridge·I)⁻¹ Avg_Ni for the neighbours N of item i. `cleaned` to a rank first, if that is not None.
    """

    train: Ratings
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    k: int
    ridge: float
    cleaned: int | None = None
    _found: NDArray[np.int64] | None = field(default=None, init=False)
    _found_by: NDArray[np.float32] | None = field(default=None, init=False)

    def __call__(self, released: Released) -> NDArray[np.float64]:
        if self._found is None or released.weight is not self._found_by:
            self._found = nearest(self.train, self.users, self.items, released.weight, self.k)
            self._found_by = released.weight
        if self.cleaned is not None:
            clean(released.covariance, self.train.n_items, released.item_scaling, self.cleaned)
        ridge = self.ridge * released.ridge_factor
        return interpolate(
            self.train, self.items, self._found, released.residuals, released.covariance, ridge
        )


@dataclass(frozen=True)
class Subspace:
    """SVD: the user's ratings are fitted by ridge regression on the covariance's k leading eigenvectors.

    `flat`: every direction has the same ridge. Otherwise direction a has ridge·1/λ_a, as if a user's position along
    it were drawn from N(0, λ_a) and ratings had N(0, ridge) of their own. Directions with λ ≤ 0 are noise: left out.
    """

    train: Ratings
    users: NDArray[np.int32]
    items: NDArray[np.int32]
    k: int
    ridge: float
    flat: bool
    cleaned: bool

    def __call__(self, released: Released) -> NDArray[np.float64]:
        n_items = self.train.n_items
        if self.cleaned:
            values, vectors = eigen_of_low_rank(
                *clean(released.covariance, n_items, released.item_scaling, self.k)
            )
        else:
            values, vectors = leading_eigenpairs(released.covariance, n_items, self.k, which="largest")
        kept, ridge = values > 0, self.ridge * released.ridge_factor
        ridges = np.full(kept.sum(), ridge) if self.flat else ridge / values[kept]
        return regress(self.train, self.users, self.items, released.residuals, vectors[:, kept], ridges)


@dataclass(frozen=True)
class CovarianceModel:
    """What a fit measured and drew. A triangle takes 2·n_items² bytes, so none is kept for each ε: predictions form
    Cov + noise for one ε after the other, and forget it.

    effects           averages; the users' part may be unreleased
    product_weights   (n_users,) what each product of two of a user's ratings counts
    counts            (n_items, E) released numbers of ratings (weighted as they were measured), for cleaning
    rater_weight      what one typical rater adds to Wgt
    refitting         chooses parameters anew for each ε; None where they are fixed
    covariance_noise, weight_noise  unit noise of a packed triangle each; None where weights are public
    """

    settings: CovarianceAlgorithm
    train: Ratings
    effects: Effects
    product_weights: NDArray[np.float64]
    counts: NDArray[np.float64] | None
    rater_weight: float
    covariance_noise: Release
    weight_noise: Release | None
    refitting: Refitting | None = None

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        out = np.asarray(self.effects.items[items] + self.effects.users[users])
        train, raters = self.train, Raters.of(self.train)
        predict = self.settings.predictor(train, users, items)
        trial = None if self.refitting is None else Trial(self, self.refitting)
        bound = self.settings.effects.residual_clamp
        for lane, weight in enumerate(self._weights(raters)):
            residuals = own_residuals(train, self.effects, lane)
            clamped = np.clip(residuals, -bound, bound)
            products = weighted_products(train, raters, clamped, self.product_weights)
            covariance = with_noise(
                products, self.covariance_noise._lane_noise.unit, self.covariance_noise.scale[lane]
            )
            del products
            factors = Factors() if trial is None else trial.factors(lane, covariance, weight)
            out[:, lane] += predict(self.released(lane, covariance, weight, residuals, factors))
        return out

    def released(
        self,
        lane: int,
        covariance: NDArray[np.float32],
        weight: NDArray[np.float32],
        residuals: NDArray[np.float64],
        factors: Factors,
    ) -> Released:
        """What predictions for one ε are made from; the noisy Cov becomes Avg in place."""
        self._shrink(covariance, weight, self.covariance_noise.scale[lane], factors.shrinkage)
        counts = np.ones(self.train.n_items) if self.counts is None else self.counts[:, lane]
        scaling = np.sqrt(np.maximum(counts, 1.0))
        return Released(covariance, weight, residuals, scaling, factors.ridge)

    def _weights(self, raters: Raters) -> Iterator[NDArray[np.float32]]:
        """Wgt for each ε: the same where it is public, else with noise and clamped at 0."""
        clean = weighted_products(self.train, raters, np.ones(len(self.train)), self.product_weights)
        if self.weight_noise is None:
            yield from repeat(clean.astype(np.float32), len(self.covariance_noise.scale))
            return
        for scale in self.weight_noise.scale:
            noisy = with_noise(clean, self.weight_noise._lane_noise.unit, scale)
            yield np.maximum(noisy, 0, out=noisy)

    def _shrink(
        self, covariance: NDArray[np.float32], weight: NDArray[np.float32], noise: float, factor: float
    ) -> None:
        """Cov becomes Avg, in place; `noise` is the scale of Cov's noise, `factor` what s is multiplied by."""
        settings, unit = self.settings, self.settings.effects.residual_clamp**2
        variance, common = mean_ratios(covariance, weight, self.train.n_items)
        least = settings.shrinkage * self.rater_weight
        shrink(
            covariance,
            weight,
            self.train.n_items,
            factor * (least + settings.diagonal_noise_shrinkage * noise / unit),
            factor * (least + settings.noise_shrinkage * noise / unit),
            float(np.clip(variance / unit, *settings.variance_limits)) * unit,
            float(np.clip(common / unit, *settings.covariance_limits)) * unit,
        )


class Trial:
    """Tries the candidates of a refitting on a model."""

    def __init__(self, model: CovarianceModel, refitting: Refitting) -> None:
        self._model, self._refitting = model, refitting
        asked = refitting.asked
        self._predict = model.settings.predictor(refitting.seen, asked.users, asked.items)

    def factors(self, lane: int, covariance: NDArray[np.float32], weight: NDArray[np.float32]) -> Factors:
        """The candidate chosen for one ε, given the noisy Cov and Wgt, which stay as they are."""
        effects, asked = self._refitting.effects, self._refitting.asked
        residuals = own_residuals(self._refitting.seen, effects, lane)
        averages = effects.items[asked.items, lane] + effects.users[asked.users, lane]

        def predict(factors: Factors) -> NDArray[np.float64]:
            released = self._model.released(lane, covariance.copy(), weight, residuals, factors)
            return np.asarray(averages + self._predict(released))

        return self._refitting.choose(lane, predict)


def own_residuals(train: Ratings, effects: Effects, lane: int) -> NDArray[np.float64]:
    """(n_ratings,) r_ui − IAvg(i) − UAvg(u) for one ε of the grid, not clamped."""
    return np.asarray(train.values - effects.items[train.items, lane] - effects.users[train.users, lane])


def inverse_counts(train: Ratings) -> NDArray[np.float64]:
    """(n_users,) 1/c_u, and 1 for a user without ratings, whom no sum counts."""
    return np.asarray(1 / np.maximum(train.user_counts, 1))
