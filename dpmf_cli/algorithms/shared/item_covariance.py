"""An item-item covariance: sums of products measured and released a few ε at a time, shrunk, and predicted from.

McSherry and Mironov 2009, sections 4.4, 4.6 and 5. Private kNN of Friedman et al. 2016, section 5.4, is the same
method with released user averages. A triangle takes 2·n_items² bytes (632 MB for the 17,770 items of Netflix), so the
triangles of a grid are not all kept, unless several settings share them. Those of a few ε are measured, get their
noise, are used, and are freed.
"""

import json
import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import product, repeat
from operator import is_not
from typing import Annotated, Any, ClassVar, NamedTuple, Self

import numpy as np
from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared.averages import Effects, TypicalCount
from dpmf_cli.algorithms.shared.base import Arrays, Model, PrivateAlgorithm
from dpmf_cli.algorithms.shared.budget import Size
from dpmf_cli.algorithms.shared.cost import ASKED, NOTHING, Cost, Shape
from dpmf_cli.core.arrays import Doubles, Floats, Ints, Longs, Singles
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels import covariance as triangles
from dpmf_cli.kernels.neighbours import interpolate, nearest, regress
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.release import Release

Searched = dict[int, tuple[tuple[Ratings, Ints, Ints], Longs]]
"""For a number k of items: what `kernels.neighbours.nearest` was asked last, with one Wgt, and its answer (n, k)."""


@dataclass(frozen=True)
class NoisyProducts:
    """The released products for one ε.

    lane        the number of that ε in the grid
    covariance  Cov with its noise: a packed triangle
    weight      Wgt with its noise, clamped at 0, or Wgt itself if it is public: a packed triangle
    scale       the scale of the noise of Cov, which is public
    searched    what was searched by this Wgt
    """

    lane: int
    covariance: Singles
    weight: Singles
    scale: float
    searched: Searched = field(default_factory=dict)

    def __iter__(self) -> Iterator["NoisyProducts"]:
        """Those of a grid of one ε, which were released before: a copy, because callers overwrite Cov."""
        yield replace(self, covariance=self.covariance.copy())


@dataclass(frozen=True)
class ReleasedProducts:
    """Sums over all users for every pair of items. Iteration gives them with their noise, for one ε after the other.

        Cov = Σ_u w_u r̂_u r̂_uᵀ,   r̂_ui = clamp(r_ui − IAvg(i) − UAvg(u), [−B, B]);   Wgt = Σ_u w_u e_u e_uᵀ

    Each iteration gives the same numbers, and the clean sums leave this class only through the releases.

    effects        the averages for each ε; the users' part may be unreleased
    clamp          B
    weights        (n_users,) w
    of_covariance  the release of Cov, a packed triangle
    of_weight      the release of Wgt; None if Wgt is public
    """

    train: Ratings
    effects: Effects
    clamp: float
    weights: Doubles
    of_covariance: Release
    of_weight: Release | None = None

    def __iter__(self) -> Iterator[NoisyProducts]:
        scale = self.of_covariance.scale
        at_once, grid, public = triangles.measured_together(self.train.n_items), len(scale), None
        of_public: Searched = {}
        if self.of_weight is None:
            ones = np.ones(len(self.train))
            public = repeat(triangles.weighted_products(self.train, ones, self.weights).astype(np.float32))
        for start in range(0, grid, at_once):
            part = slice(start, min(start + at_once, grid))
            covariances = self._noisy(part, self.of_covariance)
            weights = public or self._noisy(part, self.of_weight)
            lanes = range(part.start, part.stop)
            searches: Iterator[Searched] = (of_public if public else {} for _ in lanes)
            yield from map(NoisyProducts, lanes, covariances, weights, scale[part].tolist(), searches)
            del covariances, weights  # frees memory before the next are measured

    def _noisy(self, part: slice, release: Release | None) -> Singles:
        """(E, size) packed triangles of Cov or of Wgt for a part of the grid, with their noise."""
        assert release is not None
        products = self.products(part, of_ones=release is self.of_weight)
        release.inside(triangles.release_products, products)
        noisy = products.released
        return np.maximum(noisy, 0, out=noisy) if release is self.of_weight else noisy

    def products(self, part: slice, *, of_ones: bool) -> triangles.Products:
        """Cov for a part of the grid; or Wgt, which is the same for each ε: the products if all ratings are 1."""
        train, clamp = self.train, self.clamp
        values, items, users = train.values, self.effects.items[:, part], self.effects.users[:, part]
        if of_ones:
            values, clamp = np.ones(len(train), np.float32), 1.0
            items, users = np.zeros((train.n_items, 1)), np.zeros((train.n_users, 1))
        released = np.empty((part.stop - part.start, triangles.triangle_size(train.n_items)), np.float32)
        return triangles.Products(part, train, values, self.weights, items, users, clamp, released)


@dataclass(frozen=True)
class SharedRelease:
    """Released products that several models read. The first reader has them measured; each gets copies of Cov."""

    products: Iterable[NoisyProducts]

    @cached_property
    def _measured(self) -> Sequence[NoisyProducts]:
        return tuple(self.products)

    def __iter__(self) -> Iterator[NoisyProducts]:
        for each in self._measured:
            yield from each


def own_residuals(ratings: Ratings, effects: Effects, lane: int) -> Doubles:
    """(n_ratings,) r_ui − IAvg(i) − UAvg(u) for one ε of the grid, not clamped."""
    return np.asarray(
        ratings.values - effects.items[ratings.items, lane] - effects.users[ratings.users, lane]
    )


def inverse_counts(ratings: Ratings) -> Doubles:
    """(n_users,) 1/c_u; 1 for a user without ratings, who enters no sum."""
    return np.asarray(1 / np.maximum(ratings.user_counts, 1))


@dataclass(frozen=True)
class PredictorInput:
    """The input of predictions for one ε: released matrices, and the users' own ratings.

    covariance, weight  packed triangles: Avg, and the noisy Wgt (clamped at 0)
    searched            as in `NoisyProducts`
    residuals           (n_ratings,) r_ui − MAvg_i − r̄_u of the users' own ratings: not released
    item_scaling        (n_items,) √MCnt_i with MCnt_i at least 1, or 1 if counts are not measured
    """

    covariance: Singles
    weight: Singles
    searched: Searched
    residuals: Doubles
    item_scaling: Doubles


Spectrum = tuple[Doubles, Doubles] | None
"""(values (k,), vectors (n_items, k)) the eigenpairs of Avg that a predictor needs; None if it needs none."""

WithRidge = Callable[[float], Doubles]
"""Maps a factor to (n,) predicted residuals, with the predictor's ridge multiplied by that factor."""


@dataclass(frozen=True)
class NearestItems:
    """kNN after Bell and Koren 2007: weights by ridge regression over the k rated items with the largest Wgt.

    w = (Avg_NN + ridge·I)⁻¹ Avg_Ni for the neighbours N of item i. If `cleaned` is not None, Avg is first reduced to
    that rank.
    """

    own: Ratings
    users: Ints
    items: Ints
    k: int
    ridge: float
    cleaned: int | None = None

    def spectrum(self, given: PredictorInput) -> Spectrum:
        """The slow part of a prediction, which does not depend on the ridge."""
        if self.cleaned is None:
            return None
        return triangles.leading_eigenpairs(
            given.covariance, self.own.n_items, self.cleaned, scaling=given.item_scaling
        )

    def __call__(self, given: PredictorInput, spectrum: Spectrum) -> WithRidge:
        """The function that predicts; may overwrite `given.covariance`."""
        found, own, covariance = self._nearest(given), self.own, given.covariance
        if spectrum is not None:
            triangles.rank_k(covariance, own.n_items, *spectrum, given.item_scaling)
        return lambda factor: interpolate(
            own, self.items, found, given.residuals, covariance, self.ridge * factor
        )

    def _nearest(self, given: PredictorInput) -> Longs:
        asks = self.own, self.users, self.items
        known = given.searched.get(self.k)
        if known is None or any(map(is_not, known[0], asks)):
            known = given.searched[self.k] = asks, nearest(*asks, given.weight, self.k)
        return known[1]


@dataclass(frozen=True)
class Subspace:
    """SVD: ridge regression fits the user's ratings on the covariance's k leading eigenvectors.

    If `flat`, every direction has the same ridge. Otherwise direction a has ridge·1/λ_a, as if a user's position
    along it were drawn from N(0, λ_a) and each rating had an error N(0, ridge). Directions with λ ≤ 0 are left out.
    """

    own: Ratings
    users: Ints
    items: Ints
    k: int
    ridge: float
    flat: bool
    cleaned: bool

    def spectrum(self, given: PredictorInput) -> Spectrum:
        covariance, n_items = given.covariance, self.own.n_items
        if not self.cleaned:
            return triangles.leading_eigenpairs(covariance, n_items, self.k, which="largest")
        values, vectors = triangles.leading_eigenpairs(
            covariance, n_items, self.k, scaling=given.item_scaling
        )
        return triangles.eigen_of_low_rank(values, vectors / given.item_scaling[:, None])

    def __call__(self, given: PredictorInput, spectrum: Spectrum) -> WithRidge:
        assert spectrum is not None
        values, vectors = spectrum
        kept = values > 0

        def predict(factor: float) -> Doubles:
            ridge = self.ridge * factor
            ridges = np.full(kept.sum(), ridge) if self.flat else ridge / values[kept]
            return regress(self.own, self.users, self.items, given.residuals, vectors[:, kept], ridges)

        return predict


Predictor = NearestItems | Subspace
"""Predicts the residuals of n pairs (users, items), for one ε after the other."""


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

    Because the released matrices include the validation ratings, L_c favours weak shrinkage a little, most for rare
    items.

    asked    the validation ratings, each drawn independently from the training ratings
    seen     the other training ratings. Predictions may use them and the released matrices
    effects  averages, and users' own means of `seen`
    losses   the release of the L_c, (candidates,) for each ε
    """

    asked: Ratings
    seen: Ratings
    effects: Effects
    losses: Release

    def choose(self, lane: int, predict: Callable[[Multipliers], Floats]) -> Multipliers:
        """The chosen candidate for one ε; `predict` gives (n,) predictions of `asked`."""
        asked, measured = self.asked, []
        for candidate in CANDIDATES:
            errors = np.minimum((asked.values - predict(candidate)) ** 2, (asked.scale.width / 2) ** 2)
            means = np.bincount(asked.users, errors, asked.n_users) / np.maximum(asked.user_counts, 1)
            measured.append(means.sum())
        released = self.losses.at(lane).added_to(np.array(measured))[:, 0]
        return CANDIDATES[int(np.argmin(released))]


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

    ridge: Size = Field(0.2, description="the variance that no other item explains, in units of B²")
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

    after_release: ClassVar[frozenset[str]] = frozenset(
        {"ridge", "shrinkage", "noise_shrinkage", "diagonal_noise_shrinkage", "k", "cleaning"}
        | {"flat_ridge", "variance_limits", "covariance_limits", "clip_predictions"}
    )
    """The parameters that no measurement and no noise depends on, in any subclass."""
    settings_at_once = 4
    """With four, each pays a quarter of the release. More would save little, and a batch is one process."""

    @property
    def shared_fit(self) -> str:
        left = {key: value for key, value in self.parameters().items() if key not in self.after_release}
        return json.dumps(left, sort_keys=True)

    @classmethod
    def sharing(cls, models: Sequence["CovarianceModel"]) -> Sequence[Model]:
        """The models, which read one release if they are several."""
        if len(models) == 1:
            return models
        shared = SharedRelease(models[0].released)
        return [replace(model, released=shared) for model in models]

    @property
    def private_weights(self) -> bool:
        """Whether Wgt has noise. It has none where who rated what is not hidden."""
        return self.neighbours is not Neighbours.BOUNDED

    @classmethod
    def cost_together(cls, entries: Sequence[Self], shape: Shape, grids: Sequence[int]) -> Cost:
        """As there. If the triangles are too many to keep, nothing can be shared, and no memory is enough."""
        grid, pairs, private = grids[0], triangles.triangle_size(shape.items), entries[0].private_weights
        costs = [entry.cost(shape, grid) for entry in entries]
        if not triangles.can_keep(shape.items, grid):
            return replace(sum(costs, NOTHING), bytes=math.inf)
        measured = covariance_cost(shape, grid, private_weights=private).seconds
        saved = (len(entries) - 1) * (measured - grid * pairs * SECONDS_PER_ENTRY)
        kept = 4.0 * pairs * (2 * grid if private else grid + 1)
        numbers = sum({entry.parameters().get("k", 0) for entry in entries})
        kept += ASKED * shape.ratings * 8.0 * numbers * (grid if private else 1)
        whole = sum(costs, NOTHING)
        return Cost(whole.seconds - saved, max(cost.bytes for cost in costs) + kept, whole.far)

    @abstractmethod
    def predictor(self, own: Ratings, users: Ints, items: Ints) -> Predictor:
        """The predictor of n pairs (users, items), each from that user's ratings in `own` only."""

    @property
    @abstractmethod
    def rater_weight(self) -> float:
        """The weight that one typical rater adds to Wgt."""

    def shrunk(self, products: NoisyProducts, n_items: int, factor: float) -> Singles:
        """Avg, which overwrites Cov; s is multiplied by `factor`."""
        unit, covariance, weight = self.effects.residual_clamp**2, products.covariance, products.weight
        variance, common = triangles.mean_ratios(covariance, weight, n_items)
        least = self.shrinkage * self.rater_weight
        triangles.shrink(
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
    """Predictions from released matrices, and from the target user's own ratings, which only that user sees.

    released   Cov and Wgt with their noise, for one ε after the other
    own        the ratings of every user who may ask; a prediction for user u uses only those of u
    effects    averages; the users' part may be unreleased
    counts     (n_items, E) released numbers of ratings, in typical raters, for cleaning; None if not released
    refitting  chooses parameters for each ε; None if they are `fixed`
    """

    settings: CovarianceAlgorithm
    released: Iterable[NoisyProducts]
    own: Ratings
    effects: Effects
    counts: Doubles | None = None
    refitting: Refitting | None = None
    fixed: Multipliers = AS_CONFIGURED

    def predict(self, users: Ints, items: Ints) -> Doubles:
        out = np.asarray(self.effects.items[items] + self.effects.users[users])
        predictor, trial = self.settings.predictor(self.own, users, items), self._trial()
        for products in self.released:
            chosen, spectra = self._chosen(products, trial)
            residuals = own_residuals(self.own, self.effects, products.lane)
            given = self.given(products, residuals, chosen.shrinkage)
            known = chosen.shrinkage in spectra
            spectrum = spectra[chosen.shrinkage] if known else predictor.spectrum(given)
            out[:, products.lane] += predictor(given, spectrum)(chosen.ridge)
            del products, given  # frees memory before the next are measured
        return out

    def _trial(self) -> Predictor | None:
        """The predictor of the validation ratings, on which candidates are tried."""
        if self.refitting is None:
            return None
        asked = self.refitting.asked
        return self.settings.predictor(self.refitting.seen, asked.users, asked.items)

    def _chosen(
        self, products: NoisyProducts, trial: Predictor | None
    ) -> tuple[Multipliers, dict[float, Spectrum]]:
        """The candidate chosen for one ε, given the noisy Cov and Wgt, which stay as they are; and the spectra of Avg
        that were computed for the choice, by multiplier of shrinkage."""
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

        return self.refitting.choose(
            lane, lambda each: averages + shrunk(each.shrinkage)(each.ridge)
        ), spectra

    def given(self, products: NoisyProducts, residuals: Doubles, shrinkage: float) -> PredictorInput:
        """The input of predictions for one ε. Overwrites the noisy Cov with Avg; s is multiplied by `shrinkage`."""
        n_items = self.own.n_items
        average = self.settings.shrunk(products, n_items, shrinkage)
        counts = np.ones(n_items) if self.counts is None else self.counts[:, products.lane]
        scaling = np.sqrt(np.maximum(counts, 1.0))
        return PredictorInput(average, products.weight, products.searched, residuals, scaling)

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


SECONDS_PER_PRODUCT = 2e-9
"""Per product of two ratings of one user, added to the covariance of their items."""
SECONDS_PER_VISIT, SECONDS_PER_SUM = 1.7e-9, 2e-10
"""If one pass sums the covariances of several ε: per product, and per product and ε."""
SECONDS_PER_ENTRY = 6e-9
"""Per pair of items and ε: adding noise, shrinkage, its part in the average covariance, and storing it."""
SECONDS_PER_NUMBER = 1.3e-8
"""Per number of unit noise: 0.9e-8 for the normal law, 1.7e-8 for Laplace's."""
SECONDS_PER_CANDIDATE = 5e-9
"""Per rating of a user that is considered as a neighbour of one item to predict."""
SECONDS_PER_SOLVE_ENTRY = 4e-9
"""Per entry of the k × k system of one prediction, to eliminate it. It comes from a random place of the triangle."""
SECONDS_PER_EIGEN_ENTRY, SECONDS_PER_SCALED_EIGEN_ENTRY = 1.5e-7, 4e-8
"""Per pair of items, to find the leading eigenvectors by some hundred products of a matrix and a vector. A covariance
scaled by √counts has fewer directions that are alike, so it takes less: 2.4e-8 on ML-1M, 5e-8 on Netflix."""


def covariance_cost(shape: Shape, grid: int, *, private_weights: bool) -> Cost:
    """The cost of Cov for each ε, of Wgt, and of their noise and shrinkage. Few triangles are held at once."""
    pairs, lanes = triangles.triangle_size(shape.items), min(grid, triangles.measured_together(shape.items))
    passes = -(-grid // lanes) if grid else 0
    of_weight = SECONDS_PER_VISIT if private_weights else 0.0
    visits = passes * (SECONDS_PER_VISIT + of_weight) + grid * SECONDS_PER_SUM
    public = 0.0 if private_weights else SECONDS_PER_PRODUCT
    draws = passes * (2 if private_weights else 1) * SECONDS_PER_NUMBER
    seconds = shape.squares / 2 * (visits + public) + pairs * (draws + grid * SECONDS_PER_ENTRY)
    held = 8.0 * lanes + 8 if private_weights else 4.0 * lanes + 12
    return Cost(seconds, held * pairs + 60.0 * shape.ratings)


def search_cost(shape: Shape, k: int, *, searches: int) -> Cost:
    """The cost of `searches` searches for the neighbours of a test fold."""
    found = ASKED * shape.squares * SECONDS_PER_CANDIDATE
    return Cost(searches * found, ASKED * shape.ratings * 8.0 * k)


def solve_cost(shape: Shape, k: int, predictions: float) -> Cost:
    """The cost of so many predictions by kNN once their neighbours are found."""
    entries = predictions * min(k, shape.ratings / shape.users) ** 2 / 2
    within = 4.0 * triangles.triangle_size(shape.items)
    return Cost(entries * SECONDS_PER_SOLVE_ENTRY, 0.0, ((entries, within),))


def spectra_cost(shape: Shape, times: int, *, cleaned: bool) -> Cost:
    per_entry = SECONDS_PER_SCALED_EIGEN_ENTRY if cleaned else SECONDS_PER_EIGEN_ENTRY
    return Cost(times * triangles.triangle_size(shape.items) * per_entry, 0.0)


def nearest_items_cost(
    shape: Shape, grid: int, k: int, pairs: float, calls: int, *, private_weights: bool
) -> Cost:
    """The cost of predicting so many pairs in so many calls: for each, a search for neighbours and their system."""
    candidates = shape.ratings / shape.users * SECONDS_PER_CANDIDATE * (grid if private_weights else 1)
    return Cost(pairs * candidates, 8.0 * k * pairs / calls) + solve_cost(shape, k, grid * pairs)
