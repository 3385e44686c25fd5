"""What is built on a released item-item covariance: shrinking it, and a model that predicts from it.

McSherry and Mironov 2009, sections 4.6 and 5. Private kNN of Friedman et al. 2016, section 5.4, is the same with
released user averages.
"""

from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.covariance_predictors import Predictor, PredictorInput, Spectrum, WithRidge
from dpmf_cli.algorithms.shared.effects import Effects
from dpmf_cli.algorithms.shared.item_averages import TypicalCount
from dpmf_cli.algorithms.shared.item_products import (
    NoisyProducts,
    ReleasedProducts,
    StoredProducts,
    own_residuals,
)
from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.algorithms.shared.own_means import effects_of
from dpmf_cli.algorithms.shared.refitting import AS_CONFIGURED, Multipliers, Refitting
from dpmf_cli.kernels.covariance import mean_ratios, shrink
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.privacy.sensitivity import Sensitivity
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
    def predictor(self, own: Ratings, users: NDArray[np.int32], items: NDArray[np.int32]) -> Predictor:
        """What predicts the pairs (users, items), n of them, each from that user's ratings in `own` alone."""

    @property
    @abstractmethod
    def rater_weight(self) -> float:
        """What one typical rater adds to Wgt."""

    def calibrated_to(self, stated: Sensitivity) -> Sensitivity | None:
        """What noise is scaled to. Published: what the paper states. Corrected: the true sensitivity (None)."""
        return {Mode.PUBLISHED: stated, Mode.CORRECTED: None}[self.mode]

    def shrunk(self, products: NoisyProducts, n_items: int, factor: float) -> NDArray[np.float32]:
        """Avg, where Cov was: that is overwritten. `factor` is what s is multiplied by."""
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


@dataclass(frozen=True)
class CovarianceModel:
    """Predicts from released matrices, and from the target user's own ratings, which that user alone sees.

    released   Cov and Wgt with their noise, of one ε after the other
    own        the ratings of every user who may ask: a prediction for user u uses those of u
    effects    averages; the users' part may be unreleased
    counts     (n_items, E) released numbers of ratings, in typical raters, for cleaning; None where there is none
    refitting  chooses parameters anew for each ε; None where they are `fixed`
    """

    settings: CovarianceAlgorithm
    released: ReleasedProducts | StoredProducts
    own: Ratings
    effects: Effects
    counts: NDArray[np.float64] | None = None
    refitting: Refitting | None = None
    fixed: Multipliers = AS_CONFIGURED

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.float64]:
        out = np.asarray(self.effects.items[items] + self.effects.users[users])
        predictor = self.settings.predictor(self.own, users, items)
        trial = None if self.refitting is None else Trial(self, self.refitting)
        for products in self.released:
            out[:, products.lane] += self._predicted_residuals(products, predictor, trial)
            del products  # before the next are measured
        return out

    def _predicted_residuals(
        self, products: NoisyProducts, predictor: Predictor, trial: "Trial | None"
    ) -> NDArray[np.float64]:
        """(n,) for one ε."""
        chosen = self.fixed if trial is None else trial.multipliers(products)
        residuals = own_residuals(self.own, self.effects, products.lane)
        given = self.given(products, residuals, chosen.shrinkage)
        known = {} if trial is None else trial.spectra
        spectrum = known[chosen.shrinkage] if chosen.shrinkage in known else predictor.spectrum(given)
        return predictor(given, spectrum)(chosen.ridge)

    def given(
        self, products: NoisyProducts, residuals: NDArray[np.float64], shrinkage: float
    ) -> PredictorInput:
        """What predictions for one ε are made from, s being multiplied by `shrinkage`; the noisy Cov becomes Avg in
        place."""
        n_items = self.own.n_items
        average = self.settings.shrunk(products, n_items, shrinkage)
        counts = np.ones(n_items) if self.counts is None else self.counts[:, products.lane]
        scaling = np.sqrt(np.maximum(counts, 1.0))
        return PredictorInput(average, products.weight, residuals, scaling)

    @property
    def published(self) -> Arrays:
        """Of a model for one ε: the averages, as far as they are released, noisy Cov and Wgt, and what was chosen."""
        (products,) = self.released
        chosen = self.fixed
        if self.refitting is not None:
            chosen = Trial(self, self.refitting).multipliers(products)
        return {
            **self.effects.published,
            **({} if self.counts is None else {"counts": self.counts}),
            "covariance": products.covariance,
            "weight": products.weight,
            "noise": np.array([products.scale]),
            "multipliers": np.array([chosen.shrinkage, chosen.ridge]),
        }

    @classmethod
    def restored(cls, arrays: Arrays, entry: Any, own: Ratings) -> Self:
        """The model of what was `published`, for the users who ask."""
        return cls(
            entry,
            StoredProducts(arrays["covariance"], arrays["weight"], float(arrays["noise"][0])),
            own,
            effects_of(arrays, entry, own),
            arrays.get("counts"),
            fixed=Multipliers(*arrays["multipliers"].tolist()),
        )


class Trial:
    """Tries the candidates of a refitting on a model.

    spectra  what the predictor needs of Avg's spectrum, by what shrinkage is multiplied by: of the last ε tried
    """

    def __init__(self, model: CovarianceModel, refitting: Refitting) -> None:
        self._model, self._refitting = model, refitting
        asked = refitting.asked
        self._predictor = model.settings.predictor(refitting.seen, asked.users, asked.items)
        self.spectra: dict[float, Spectrum] = {}

    def multipliers(self, products: NoisyProducts) -> Multipliers:
        """The candidate chosen for one ε, given the noisy Cov and Wgt, which stay as they are."""
        lane, effects, asked = products.lane, self._refitting.effects, self._refitting.asked
        residuals = own_residuals(self._refitting.seen, effects, lane)
        averages = effects.items[asked.items, lane] + effects.users[asked.users, lane]
        self.spectra.clear()

        @lru_cache(maxsize=1)  # candidates of one shrinkage follow each other
        def shrunk(shrinkage: float) -> WithRidge:
            copied = replace(products, covariance=products.covariance.copy())
            given = self._model.given(copied, residuals, shrinkage)
            self.spectra[shrinkage] = self._predictor.spectrum(given)
            return self._predictor(given, self.spectra[shrinkage])

        def predict(candidate: Multipliers) -> NDArray[np.float64]:
            return np.asarray(averages + shrunk(candidate.shrinkage)(candidate.ridge))

        return self._refitting.choose(lane, predict)
