"""kNN and SVD on a private item-item covariance. McSherry and Mironov 2009."""

from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.shared import item_covariance as shared
from dpmf_cli.algorithms.shared.averages import Effects, OwnMeansAlgorithm
from dpmf_cli.algorithms.shared.base import Choices, Paper
from dpmf_cli.algorithms.shared.budget import Fractions, Size
from dpmf_cli.algorithms.shared.cost import ASKED, NOTHING, Cost, Shape, effects_cost, pairs_cost
from dpmf_cli.algorithms.shared.theta import Measurer
from dpmf_cli.core.arrays import Doubles, Ints
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.covariance import triangle_size
from dpmf_cli.privacy import covariance_sensitivity, sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import exponential_choice, without_noise
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity


class CovarianceBudget(Fractions):
    """Fractions of θ, section 5: for both global averages, the item averages, and the covariance with its weights."""

    global_averages: float = Field(0.02, gt=0, lt=1)
    item_averages: float = Field(0.19, gt=0, lt=1)
    covariance: float = Field(0.79, gt=0, lt=1)


class PrivateCovariance(OwnMeansAlgorithm, shared.CovarianceAlgorithm):
    """r̂_ui = MAvg_i + r̄_u + a predictor's estimate from u's own residuals and a noisy covariance.

        MAvg, r̄_u as in `own_means`;   r̂_ui = clamp(r_ui − MAvg_i − r̄_u, [−B, B])            (sections 4.2, 4.3)
        Cov = Σ_u w_u r̂_u r̂_uᵀ + noise,   Wgt = Σ_u w_u e_u e_uᵀ + noise, clamped at 0             (section 4.4)
            w_u = 1/c_u with Laplace noise, 1/√c_u with Gaussian; squared if neighbours are users (section 4.5)
        Avg: Cov and Wgt shrunk to the average; with `cleaning`, the best approximation of rank k of
            √(MCnt_i·MCnt_j)·Avg_ij, divided by √(MCnt_i·MCnt_j) again                            (section 4.6)

    *Joint* differential privacy: a prediction for user u uses u's own ratings and mean without noise, so ε holds
    against everyone but u. Neighbours differ in one rating (`unbounded`), or in one user (`user`).

    Each unordered pair of items is measured once. Published mode scales the noise to the paper's bound for all
    ordered pairs, with α = r_max − r_min. Corrected mode scales it to the triangle's own bound with the true α
    (`covariance_sensitivity.own_centred_triangle`). The sum and the count of a measurement get equal parts of θ, and
    so do Cov and Wgt.
    """

    budget: CovarianceBudget = CovarianceBudget()
    k: int = Field(
        20, ge=1, le=1000, description="neighbours of a prediction, and rank of a cleaned covariance"
    )
    cleaning: bool = Field(True, description="clean the covariance by an approximation of rank k")
    alpha: float | None = Field(
        None,
        ge=1e-6,
        description="corrected only: clamp item-centred ratings to ±α/2 before the user's mean is taken; a smaller "
        "α needs less noise. The default 2·(r_max − r_min) clamps nothing",
    )
    tuning: Literal["fixed", "refitted"] = Field(
        "fixed",
        description="fixed: shrinkage and ridge as configured; shrinkage grows with the known scale of the noise. "
        "refitted: chosen for each ε by the error on the users' own ratings, as in the paper",
    )
    tuning_fraction: float = Field(
        0.05,
        gt=0,
        lt=1,
        description="fraction of the total ε for refitting; corrected only, published mode charges nothing for it",
    )
    validation: float = Field(
        0.05, gt=0, lt=0.5, description="fraction of the ratings that refitting predicts"
    )

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (*super().choices(mode), ({}, {"tuning": "refitted", "validation": 0.2}))

    @model_validator(mode="after")
    def _alpha_saves_noise(self) -> Self:
        fix = ""
        if self.alpha is not None and self.mode is Mode.PUBLISHED:
            fix = "published mode uses α = r_max − r_min and clamps nothing; set `mode: corrected`"
        elif self.alpha is not None and self.neighbours is Neighbours.USER:
            fix = "the sensitivity to a user does not depend on α; remove `alpha`"
        if fix:
            raise PydanticCustomError("alpha", "{fix}", {"fix": fix, "path": ("alpha",)})
        return self

    def widest(self, scale: Scale) -> float:
        everything = super().widest(scale)
        return everything if self.alpha is None else min(self.alpha, everything)

    @property
    def reserved(self) -> float:
        """The fraction of the total ε for refitting."""
        charged = self.tuning == "refitted" and self.mode is Mode.CORRECTED
        return self.tuning_fraction if charged else 0.0

    @property
    def rater_weight(self) -> float:
        return float(self.product_weights(np.array([self.typical_count]))[0])

    def fit(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> shared.CovarianceModel:
        """The model, with released averages; all noise is charged to the ledger here.

        Cov and Wgt are measured and released a few ε at a time when the model predicts, because a triangle and its
        noise are too large to keep for each ε of a large grid.
        """
        measurer = self.measurer(epsilons, curator, covariance=2)
        averages = self.released_averages(train, measurer)
        own_means = self.own_means(train, averages)
        released = self.release(train, own_means, measurer)
        refitting = self.refitting(train, averages, epsilons, streams, curator)
        return shared.CovarianceModel(self, released, train, own_means, averages.counts, refitting)

    def product_weights(self, counts: NDArray[Any]) -> Doubles:
        """(n,) the weight of each product of two of a user's ratings, from users' numbers of ratings (n,)."""
        weights = self.rating_weights(counts)
        return weights**2 if self.neighbours is Neighbours.USER else weights

    def release(self, train: Ratings, effects: Effects, measurer: Measurer) -> shared.ReleasedProducts:
        """Cov and Wgt with their noise, with equal parts of the measurement's θ."""
        scale, size = train.scale, (triangle_size(train.n_items),)

        def noise(step: str, true: Sensitivity, stated: Sensitivity) -> Release:
            return measurer.noise("covariance", step, size, self.calibrated(true, stated), later=True)

        clamp, norm, bounds = self.effects.residual_clamp, self.noise.norm, covariance_sensitivity
        if self.neighbours is Neighbours.USER:
            of_covariance, of_weights = ((bounds.user_triangle(bound, norm),) * 2 for bound in (clamp, 1.0))
        else:
            of_covariance = (
                bounds.own_centred_triangle(clamp, self.widest(scale), self.effects.beta_u, norm),
                bounds.published_own_centred_matrix(clamp, scale, norm),
            )
            of_weights = bounds.weight_triangle(norm), bounds.published_weight_matrix(norm)
        noises = noise("covariance", *of_covariance), noise("weights", *of_weights)
        return shared.ReleasedProducts(
            train, effects, clamp, self.product_weights(train.user_counts), *noises
        )

    def refitting(
        self, train: Ratings, averages: Effects, epsilons: Epsilons, streams: Streams, curator: Curator
    ) -> shared.Refitting | None:
        """The choice of shrinkage and ridge for each ε; None if they stay as configured.

        Each rating is set aside for validation with probability `validation`. Corrected, the exponential mechanism
        chooses. Published, losses have no noise and nothing is charged, so no ε can be proved.
        """
        if self.tuning == "fixed":
            return None
        validation = streams.of_ratings("validation ratings", train) < self.validation
        asked, seen = train.select(validation), train.select(~validation)
        step, count, own_means = (
            "post-processing parameters",
            len(shared.CANDIDATES),
            self.own_means(seen, averages),
        )
        moves = sensitivity.clipped_error_of_users(train.scale, self.neighbours)
        if self.mode is Mode.PUBLISHED:
            losses = without_noise(step, sensitivity=moves, grid=len(epsilons), curator=curator)((count,))
        else:
            spent = self.tuning_fraction * epsilons
            losses = exponential_choice(step, count, sensitivity=moves, epsilon=spent, curator=curator)
        return shared.Refitting(asked, seen, own_means, losses)

    @property
    def eigenpairs(self) -> int | None:
        """How many eigenpairs of a covariance are computed at each ε; None if none are."""
        return self.k if self.cleaning else None

    def cost_with(self, shape: Shape, grid: int, search: Cost, predictions: Cost) -> Cost:
        """The cost of averages, the covariance and its eigenvectors, then of `search` and `predictions` of a fold.

        With refitting, each candidate also predicts the validation ratings, and a triangle is copied and shrunk for
        each shrinkage. The triangle before is held too.
        """
        cost = effects_cost(shape, grid) + shared.covariance_cost(shape, grid, private_weights=True)
        cost += search + predictions
        refits = self.tuning == "refitted"
        shrinkages, candidates = refits * len(shared.SHRINKAGES), refits * len(shared.CANDIDATES)
        if self.eigenpairs is not None:
            cost += shared.spectra_cost(shape, grid * max(shrinkages, 1), cleaned=self.cleaning)
        if not candidates:
            return cost
        part, pairs = self.validation / ASKED, triangle_size(shape.items)
        far = tuple((part * candidates * count, within) for count, within in predictions.far)
        trials = Cost(part * (search.seconds + candidates * predictions.seconds), 0.0, far)
        return cost + trials + Cost(shrinkages * grid * pairs * shared.SECONDS_PER_ENTRY, 8.0 * pairs)

    def matrices_anew(self, shape: Shape, grid: int, calls: int) -> Cost:
        once = shared.covariance_cost(shape, grid, private_weights=True).seconds
        if self.eigenpairs is not None:
            once += shared.spectra_cost(shape, grid, cleaned=self.cleaning).seconds
        return Cost(calls * once, 0.0)


class CovarianceKNN(PrivateCovariance):
    """Predictions from the k rated items that share the most raters with the item to predict (Bell and Koren 2007).

    r̂_ui = MAvg_i + r̄_u + Σ_j w_j (r_uj − MAvg_j − r̄_u),   w = (Avg_NN + ridge·I)⁻¹ Avg_Ni,   N by largest Wgt_ij
    """

    title = "MM kNN"
    about = "kNN on the private covariance. McSherry and Mironov 2009, section 4.6."
    paper = Paper.MCSHERRY
    revision = 2

    algorithm: Literal["mm_knn"]

    def predictor(self, own: Ratings, users: Ints, items: Ints) -> shared.NearestItems:
        ridge = self.ridge * self.effects.residual_clamp**2
        return shared.NearestItems(own, users, items, k=self.k, ridge=ridge, cleaned=self.eigenpairs)

    def cost(self, shape: Shape, grid: int) -> Cost:
        search = shared.search_cost(shape, self.k, searches=grid)
        return self.cost_with(
            shape, grid, search, shared.solve_cost(shape, self.k, grid * ASKED * shape.ratings)
        )

    def predictions_cost(self, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
        nearest = shared.nearest_items_cost(shape, grid, self.k, pairs, calls, private_weights=True)
        return pairs_cost(grid, pairs) + nearest + self.matrices_anew(shape, grid, calls)


class CovarianceSVD(PrivateCovariance):
    """Predictions from the k leading eigenvectors of Avg, on which the user's own residuals are fitted by ridge
    regression.

    r̂_ui = MAvg_i + r̄_u + V_i·a,   a = argmin Σ_j (r_uj − MAvg_j − r̄_u − V_j·a)² + Σ_b ridge_b·a_b²
    """

    title = "MM SVD"
    about = "SVD of the private covariance. McSherry and Mironov 2009, section 4.6."
    paper = Paper.MCSHERRY
    revision = 2

    algorithm: Literal["mm_svd"]
    ridge: Size = Field(
        0.5, description="the ridge of each direction, divided by its eigenvalue over B² unless `flat_ridge`"
    )
    flat_ridge: bool = Field(
        False,
        description="use the same ridge in every direction; otherwise it is divided by the eigenvalue, as if "
        "a user's place along the direction were drawn with that variance",
    )

    def predictor(self, own: Ratings, users: Ints, items: Ints) -> shared.Subspace:
        ridge = self.ridge if self.flat_ridge else self.ridge * self.effects.residual_clamp**2
        return shared.Subspace(
            own, users, items, k=self.k, ridge=ridge, flat=self.flat_ridge, cleaned=self.cleaning
        )

    @property
    def eigenpairs(self) -> int:
        return self.k

    def cost(self, shape: Shape, grid: int) -> Cost:
        seconds = grid * (shape.ratings * self.k**2 + shape.users * self.k**3) * 5e-10
        return self.cost_with(shape, grid, NOTHING, Cost(seconds, ASKED * shape.ratings * 8.0 * grid))

    def predictions_cost(self, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
        coordinates = Cost(pairs * grid * self.k * 1e-9, 0.0)
        return pairs_cost(grid, pairs) + coordinates + self.matrices_anew(shape, grid, calls)
