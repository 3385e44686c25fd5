"""Shrinks a released item-item covariance, and predicts from it.

McSherry and Mironov 2009, sections 4.6 and 5. Private kNN of Friedman et al. 2016, section 5.4, is the same method
with released user averages.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared.averages import Effects, TypicalCount
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.item_products import (
    NoisyProducts,
    Predictor,
    PredictorInput,
    ReleasedProducts,
    Spectrum,
    WithRidge,
    covariance_cost,
    own_residuals,
)
from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.covariance import mean_ratios, shrink
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity


class Multipliers(NamedTuple):
    """The factors by which a candidate multiplies the configured shrinkage and ridge."""

    shrinkage: float = 1.0
    ridge: float = 1.0


AS_CONFIGURED = Multipliers()
SHRINKAGES, RIDGES = (0.25, 1.0, 4.0), (1 / 3, 1.0, 3.0)
CANDIDATES = tuple(Multipliers(*pair) for pair in product(SHRINKAGES, RIDGES))


@dataclass(frozen=True)
class Refitting:
    """Chooses, for each ε, the candidate with the least error on some of the users' own ratings.

        L_c = Σ_u mean over u's validation ratings of min((r − r̂_c)², (Δr/2)²);   argmin_c of the released L_c

    The released matrices include the validation ratings. So L_c favours weak shrinkage a little, most for rare items.

    asked    the validation ratings, each drawn independently from the training ratings
    seen     the other training ratings. Predictions may use them and the released matrices
    effects  averages, and users' own means of `seen`
    losses   the release of the L_c, (candidates,) for each ε
    """

    asked: Ratings
    seen: Ratings
    effects: Effects
    losses: Release

    def choose(self, lane: int, predict: Callable[[Multipliers], NDArray[np.floating]]) -> Multipliers:
        """The chosen candidate for one ε; `predict` gives (n,) predictions of `asked`."""
        measured = np.array([self._loss(predict(candidate)) for candidate in CANDIDATES])
        released = self.losses.at(lane).added_to(measured)[:, 0]
        return CANDIDATES[int(np.argmin(released))]

    def _loss(self, predicted: NDArray[np.floating]) -> float:
        asked = self.asked
        errors = np.minimum((asked.values - predicted) ** 2, (asked.scale.width / 2) ** 2)
        counts = np.maximum(asked.user_counts, 1)
        return float((np.bincount(asked.users, errors, asked.n_users) / counts).sum())


def _ascending(limits: tuple[float, float]) -> tuple[float, float]:
    if not 0 <= limits[0] <= limits[1] <= 1:
        raise PydanticCustomError("limits", "limits must ascend within [0, 1]", {})
    return limits


Limits = Annotated[tuple[float, float], AfterValidator(_ascending)]


class CovarianceAlgorithm(PrivateAlgorithm):
    """An algorithm that predicts from an item-item covariance. It computes Avg from Cov and Wgt:

        Avg_ij = (Cov_ij + s·μ)/(Wgt_ij + s),   with a different s and μ on the diagonal

    This is "shrinking to the average" of section 4.6, with s for β·avgWgt. It only post-processes released numbers.
    s grows with the noise, whose scale is public. μ is the average of the released matrices, within public limits,
    because noise could make it negative. Nothing here depends on the private data in any other way.
    """

    ridge: float = Field(
        0.2, ge=1e-6, le=1e6, description="the variance that no other item explains, in units of B²"
    )
    shrinkage: float = Field(
        100.0,
        ge=1e-6,
        le=1e12,
        description="s without noise: the number of raters at which Avg is half way to μ",
    )
    noise_shrinkage: float = Field(
        60.0, ge=0, le=1e6, description="growth of s for each unit of the noise's scale on Cov/B²"
    )
    diagonal_noise_shrinkage: float = Field(60.0, ge=0, le=1e6, description="the same for the diagonal's s")
    typical_count: TypicalCount = 100.0
    variance_limits: Limits = Field(
        (0.25, 1.0), description="public limits of the diagonal's μ, in units of B²"
    )
    covariance_limits: Limits = Field((0.02, 0.1), description="public limits of the other entries' μ, in B²")

    @abstractmethod
    def predictor(self, own: Ratings, users: NDArray[np.int32], items: NDArray[np.int32]) -> Predictor:
        """The predictor of n pairs (users, items). It uses only that user's ratings in `own` for each pair."""

    @property
    @abstractmethod
    def rater_weight(self) -> float:
        """The weight that one typical rater adds to Wgt."""

    def calibrated_to(self, stated: Sensitivity) -> Sensitivity | None:
        """The sensitivity that noise is scaled to. Published: the paper's. Corrected: the true one (None)."""
        return {Mode.PUBLISHED: stated, Mode.CORRECTED: None}[self.mode]

    def shrunk(self, products: NoisyProducts, n_items: int, factor: float) -> NDArray[np.float32]:
        """Overwrites Cov with Avg and returns it. s is multiplied by `factor`."""
        unit, covariance, weight = self.effects.residual_clamp**2, products.covariance, products.weight
        variance, common = mean_ratios(covariance, weight, n_items)
        least = self.shrinkage * self.rater_weight
        shrink(
            covariance,
            weight,
            n_items,
            factor * (least + self.diagonal_noise_shrinkage * products.scale / unit),
            factor * (least + self.noise_shrinkage * products.scale / unit),
            float(np.clip(variance / unit, *self.variance_limits)) * unit,
            float(np.clip(common / unit, *self.covariance_limits)) * unit,
        )
        return covariance

    def matrices_anew(self, shape: Shape, grid: int, calls: int) -> Cost:
        """The cost of all matrices once more in each call of `predict`."""
        return Cost(calls * covariance_cost(shape, grid, private_weights=True).seconds, 0.0)


@dataclass(frozen=True)
class CovarianceModel:
    """Predicts from released matrices, and from the target user's own ratings, which only that user sees.

    released   Cov and Wgt with their noise, for one ε after the other
    own        the ratings of every user who may ask; a prediction for user u uses only those of u
    effects    averages; the users' part may be unreleased
    counts     (n_items, E) released numbers of ratings, in typical raters, for cleaning; None if not released
    refitting  chooses parameters for each ε; None if they are `fixed`
    """

    settings: CovarianceAlgorithm
    released: ReleasedProducts | NoisyProducts
    own: Ratings
    effects: Effects
    counts: NDArray[np.float64] | None = None
    refitting: Refitting | None = None
    fixed: Multipliers = AS_CONFIGURED

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        out = np.asarray(self.effects.items[items] + self.effects.users[users])
        predictor, trial = self.settings.predictor(self.own, users, items), self._trial()
        for products in self.released:
            out[:, products.lane] += self._predicted_residuals(products, predictor, trial)
            del products  # frees memory before the next are measured
        return out

    def _predicted_residuals(
        self, products: NoisyProducts, predictor: Predictor, trial: Predictor | None
    ) -> NDArray[np.float64]:
        """(n,) the predicted residuals for one ε."""
        chosen, spectra = self._chosen(products, trial)
        residuals = own_residuals(self.own, self.effects, products.lane)
        given = self.given(products, residuals, chosen.shrinkage)
        known = chosen.shrinkage in spectra
        spectrum = spectra[chosen.shrinkage] if known else predictor.spectrum(given)
        return predictor(given, spectrum)(chosen.ridge)

    def _trial(self) -> Predictor | None:
        """The predictor of the validation ratings, on which candidates are tried."""
        if self.refitting is None:
            return None
        asked = self.refitting.asked
        return self.settings.predictor(self.refitting.seen, asked.users, asked.items)

    def _chosen(
        self, products: NoisyProducts, trial: Predictor | None
    ) -> tuple[Multipliers, dict[float, Spectrum]]:
        """The candidate chosen for one ε, given the noisy Cov and Wgt, which stay as they are; and by multiplier of
        shrinkage the parts of Avg's spectrum that were computed for the choice."""
        spectra: dict[float, Spectrum] = {}
        if self.refitting is None or trial is None:
            return self.fixed, spectra
        lane, effects, asked = products.lane, self.refitting.effects, self.refitting.asked
        residuals = own_residuals(self.refitting.seen, effects, lane)
        averages = effects.items[asked.items, lane] + effects.users[asked.users, lane]

        @lru_cache(maxsize=1)  # candidates with the same shrinkage follow each other
        def shrunk(shrinkage: float) -> WithRidge:
            copied = replace(products, covariance=products.covariance.copy())
            given = self.given(copied, residuals, shrinkage)
            spectra[shrinkage] = trial.spectrum(given)
            return trial(given, spectra[shrinkage])

        def predict(candidate: Multipliers) -> NDArray[np.float64]:
            return np.asarray(averages + shrunk(candidate.shrinkage)(candidate.ridge))

        return self.refitting.choose(lane, predict), spectra

    def given(
        self, products: NoisyProducts, residuals: NDArray[np.float64], shrinkage: float
    ) -> PredictorInput:
        """The input of predictions for one ε. Overwrites the noisy Cov with Avg; s is multiplied by `shrinkage`."""
        n_items = self.own.n_items
        average = self.settings.shrunk(products, n_items, shrinkage)
        counts = np.ones(n_items) if self.counts is None else self.counts[:, products.lane]
        scaling = np.sqrt(np.maximum(counts, 1.0))
        return PredictorInput(average, products.weight, residuals, scaling)

    @property
    def published(self) -> Arrays:
        """The released averages, noisy Cov and Wgt, and the chosen parameters, of a model for one ε."""
        (products,) = self.released
        chosen, _ = self._chosen(products, self._trial())
        return {
            **self.effects.published,
            **({} if self.counts is None else {"counts": self.counts}),
            "covariance": products.covariance,
            "weight": products.weight,
            "noise": np.array([products.scale]),
            "multipliers": np.array(chosen),
        }

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any, own: Ratings) -> Self:
        """The model made again from what was `published`, for the users who ask."""
        if not isinstance(entry, CovarianceAlgorithm):
            raise TypeError("its method makes no such model")
        return cls(
            entry,
            NoisyProducts(0, arrays["covariance"], arrays["weight"], float(arrays["noise"][0])),
            own,
            Effects.restored(arrays, entry, own),
            arrays.get("counts"),
            fixed=Multipliers(*arrays["multipliers"].tolist()),
        )
