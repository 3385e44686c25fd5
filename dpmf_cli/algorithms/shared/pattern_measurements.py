"""The measurements of methods on a public pattern: noisy sums of clamped residuals, and estimates from them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm, Variants
from dpmf_cli.algorithms.shared.papers import Paper
from dpmf_cli.algorithms.shared.pattern import Pattern, Spectrum
from dpmf_cli.algorithms.shared.predicted_errors import (
    Predicted,
    interpolated,
    of_averages,
    of_coefficients,
    shares_of,
)
from dpmf_cli.algorithms.shared.shrunk_sums import Law, averages_of, coefficients_of
from dpmf_cli.kernels.als import SideRatings, by_item, by_user
from dpmf_cli.kernels.factors import FactorModel, Side
from dpmf_cli.kernels.reports import clamped_sums
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.accounting import LEAST_SHARE
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import laplace, repeated_k_norm
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.ratings import Ratings
from dpmf_cli.strict_model import StrictModel

AVERAGES: Mapping[Side, str] = {"items": "item averages", "users": "user averages"}
FACTORS: Mapping[Side, str] = {"items": "item factors", "users": "user factors"}
CORE = "core"
"""Names of steps, and of the parts of ε that they spend."""


class Laws(StrictModel):
    """The variances assumed for each measured part: chosen on MovieLens 100K, for features of norm 1."""

    item_averages: Law = Law(of_rows=0.1, of_ratings=1.1)
    user_averages: Law = Law(of_rows=0.17, of_ratings=0.9)
    core: Law = Law(of_rows=0.02, of_ratings=0.8)
    item_factors: Law = Law(of_rows=0.015, of_ratings=0.8)
    user_factors: Law = Law(of_rows=0.03, of_ratings=0.8)

    def of(self, part: str) -> Law:
        """The law of a part, by its name."""
        law: Law = getattr(self, part.replace(" ", "_"))
        return law


class PatternAlgorithm(PrivateAlgorithm):
    """A method for neighbours that differ in the value of a rating. Who rated what is public, and used in full.

    measured  the parts among which ε is split, besides the average of all ratings
    """

    paper: ClassVar[Paper] = Paper.DPMF
    variants: ClassVar[Variants] = frozenset({(Neighbours.BOUNDED, Mode.CORRECTED)})
    averaged: ClassVar[bool] = False
    measured: ClassVar[tuple[str, ...]]

    mode: Mode = Mode.CORRECTED
    factors: int = Field(
        8, ge=1, le=32, description="k, the number of features of a user and of an item in the regressions"
    )
    covariates: int = Field(
        5, ge=0, le=32, description="how many of these features averages are regressed on"
    )
    clamp: float = Field(1.5, ge=1e-3, le=2, description="B, in stars, to which residuals are clamped")
    global_share: float = Field(
        0.02, ge=LEAST_SHARE, lt=1, description="fraction of ε for the average of all ratings"
    )
    laws: Laws = Laws()

    def overall(self, train: Ratings, epsilons: Epsilons, curator: Curator) -> NDArray[np.float64]:
        """(E,) the noisy average of all ratings, within the scale."""
        noise = laplace(
            "global average",
            (),
            sensitivity=sensitivity.rating_sums(train.scale),
            epsilon=self.global_share * epsilons,
            curator=curator,
        )
        total = noise.added_to(np.asarray(train.values.sum(dtype=np.float64)))
        return np.clip(total / max(len(train), 1), train.scale.minimum, train.scale.maximum)

    def measurements(
        self, train: Ratings, pattern: Pattern, model: FactorModel, epsilons: Epsilons, curator: Curator
    ) -> "Measurements":
        """Splits the ε that the average of all ratings leaves, by public predictions of the errors."""
        rest, predicted = (1 - self.global_share) * epsilons, self.predicted(train, pattern)
        shares = [shares_of(predicted, float(epsilon)) for epsilon in rest]
        split = {part: np.array([each[part] for each in shares]) * rest for part in self.measured}
        return Measurements(train, pattern, model, self.clamp, self.laws, self.covariates, split, curator)

    def predicted(self, train: Ratings, pattern: Pattern) -> dict[str, Predicted]:
        """The predicted error of each part, as a function of the ε that the part gets."""
        k, found = self.factors, {}
        kinds: dict[str, tuple[int, Callable[[Law], Callable[[float], float]]]] = {
            AVERAGES["items"]: (1, lambda law: of_averages(law, train.item_counts, self.covariates + 2)),
            AVERAGES["users"]: (1, lambda law: of_averages(law, train.user_counts, self.covariates + 2)),
            CORE: (k * k, lambda law: of_coefficients(law, pattern.of_pairs[0], len(train))),
            FACTORS["items"]: (k, lambda law: of_coefficients(law, pattern.of_items[0], len(train))),
            FACTORS["users"]: (k, lambda law: of_coefficients(law, pattern.of_users[0], len(train))),
        }
        for part in self.measured:
            law, (dimension, error) = self.laws.of(part), kinds[part]
            scale = sensitivity.clamped_vectors().value * law.star(self.clamp)
            found[part] = interpolated(error(law), partial(variance_at, scale, dimension))
        return found


def variance_at(scale: float, dimension: int, epsilons: Epsilons) -> NDArray[np.float64]:
    """`noise_variance` of noise whose scale is `scale` at ε = 1."""
    return noise_variance(scale / epsilons, dimension)


def noise_variance(scale: NDArray[np.float64], dimension: int) -> NDArray[np.float64]:
    """(E,) the variance of a coordinate of K-norm noise in `dimension` dimensions. In one dimension it is Laplace
    noise."""
    return np.asarray((dimension + 1) * scale**2)


@dataclass(frozen=True)
class Measurements:
    """The steps of a fit. Each measures the residuals of the model that the steps before it have released.

    bound     B, to which residuals are clamped
    laws, epsilons  the law and the ε (E,) of each part by its name
    covariates  how many features averages are regressed on
    """

    train: Ratings
    pattern: Pattern
    model: FactorModel
    bound: float
    laws: Laws
    covariates: int
    epsilons: Mapping[str, Epsilons]
    curator: Curator

    def averages(self, side: Side) -> NDArray[np.float64]:
        """(rows, E) the updates of a side's averages: `averages_of` Σ clamp(x) with Laplace noise."""
        part = AVERAGES[side]
        counts = self.train.item_counts if side == "items" else self.train.user_counts
        noise = laplace(
            part,
            (len(counts),),
            sensitivity=sensitivity.clamped_sums(),
            epsilon=self.epsilons[part],
            curator=self.curator,
        )
        others = self.train.n_users if side == "items" else self.train.n_items
        sums, variance = self._believable(part, noise, self._sums(side, np.ones((others, 1)))[:, 0], 1)
        covariates = self.pattern.covariates(side, counts, self.covariates)
        lanes = zip(sums.T, variance, strict=True)
        law, known = self.laws.of(part), counts.astype(np.float64)
        return np.column_stack([averages_of(lane, known, covariates, law, float(v)) for lane, v in lanes])

    def core(self) -> NDArray[np.float64]:
        """(k, k, E) W of predictions x_uᵀ·W·y_i, from Σ clamp(x)·x_u ⊗ y_i over all ratings with K-norm noise."""
        k = self.pattern.users.shape[1]
        by_users = self._sums("users", self.pattern.items)
        lanes = [self.pattern.users.T @ np.ascontiguousarray(each) for each in np.moveaxis(by_users, -1, 0)]
        sums = np.stack(lanes, axis=-1).reshape(1, k * k, -1)
        return self._coefficients(CORE, sums, self.pattern.of_pairs).reshape(k, k, -1)

    def factors(self, side: Side) -> NDArray[np.float64]:
        """(rows, k, E) coefficients of each row on the other side's features, from Σ clamp(x)·z with K-norm noise."""
        if side == "items":
            return self._coefficients(
                FACTORS[side], self._sums(side, self.pattern.users), self.pattern.of_items
            )
        return self._coefficients(FACTORS[side], self._sums(side, self.pattern.items), self.pattern.of_users)

    def _coefficients(self, part: str, sums: NDArray[np.float64], spectrum: Spectrum) -> NDArray[np.float64]:
        """(rows, k, E) coefficients from the clean sums (rows, k, E): adds noise to them and shrinks them."""
        rows, k, _ = sums.shape
        (noise,) = repeated_k_norm(
            part,
            (rows, k),
            repetitions=1,
            sensitivity=sensitivity.clamped_vectors(),
            epsilon=self.epsilons[part],
            curator=self.curator,
        )
        noisy, variance = self._believable(part, noise, sums, k)
        lanes = zip(np.moveaxis(noisy, -1, 0), variance, strict=True)
        found = [coefficients_of(lane, spectrum, self.laws.of(part), float(v)) for lane, v in lanes]
        return np.stack(found, axis=-1)

    def _sums(self, side: Side, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """(rows, k, E) the clean sums Σ clamp(x)/B·z: see `kernels.clamped_sums`."""
        return clamped_sums(self.model, side, self._ratings[side], features, self.bound)

    @cached_property
    def _ratings(self) -> Mapping[Side, SideRatings]:
        """The ratings by the rows of each side, sorted once."""
        return {"items": by_item(self.train), "users": by_user(self.train)}

    def _believable(
        self, part: str, noise: Release, sums: NDArray[np.float64], dimension: int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The noisy sums in stars, and (E,) the variance of the noise in each number."""
        unit = self.laws.of(part).star(self.bound)
        return unit * noise.added_to(sums), noise_variance(unit * noise.scale, dimension)
