"""PGE, ISGD, PSGD and PALS: private averages, and factorisations of their residuals.

Friedman, Berkovsky, Kaafar 2016, section 4.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared import cost as costs, private_factorization as shared
from dpmf_cli.algorithms.shared.averages import Effects, EffectsModel, averages_of, side_by_side
from dpmf_cli.algorithms.shared.base import Choices, Paper, PrivateAlgorithm, Where, by_mode, in_both_modes
from dpmf_cli.algorithms.shared.budget import AveragesBudget, Size
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.factorization import Kept
from dpmf_cli.algorithms.shared.item_covariance import covariance_cost, own_residuals, spectra_cost
from dpmf_cli.algorithms.shared.sample_fits import one_by_one
from dpmf_cli.core.compiled.lane_groups import MAXIMUM_WIDTH, groups
from dpmf_cli.core.ratings import Ratings, Scale, transposed
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import later
from dpmf_cli.kernels import sgd as kernel
from dpmf_cli.kernels.als import RowProblem
from dpmf_cli.kernels.covariance import Products, leading_eigenpairs, release_products, triangle_size
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.gradients import sample_bits
from dpmf_cli.kernels.releasing import perturb_side
from dpmf_cli.kernels.sgd import Sgd
from dpmf_cli.kernels.sums import sums_by
from dpmf_cli.kernels.survivors import descend_survivors
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.covariance_sensitivity import gram_triangle_unbounded, projected_residuals_unbounded
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import keyed_laplace, laplace, repeated_laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity


class PrivateGlobalEffects(PrivateAlgorithm):
    """r̂_ui = IAvg(i) + UAvg(u), with the averages of algorithms 1 and 2, which get all of ε.

    Bounded, every step is a Laplace mechanism with the right sensitivity, so published and corrected mode are the
    same and the claimed ε is provable. For unbounded neighbours, see `shared.averages`.
    """

    title = "PGE"
    about = "PGE: private global effects. Friedman, Berkovsky, Kaafar 2016, section 4.1 and table 4."
    paper = Paper.FRIEDMAN
    variants = in_both_modes(Neighbours.BOUNDED, Neighbours.UNBOUNDED)
    revision = 2

    algorithm: Literal["pge"]
    budget: AveragesBudget = AveragesBudget(global_averages=0.02, item_averages=0.54, user_averages=0.44)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> EffectsModel:
        effects = averages_of(self, train, self.budget.for_effects(epsilons), curator)
        return EffectsModel(effects.items, effects.users)

    def cost(self, shape: Shape, grid: int) -> Cost:
        return costs.effects_cost(shape, grid)


VISIT, CELL = 2.75e-9, 5e-9
"""Seconds per rating, latent factor and group of 16 lanes; and per cell of the perturbed matrix, for its noise and to
decide whether it survives."""


OF_DESCENT = frozenset({"regularization", "initial_factors", "learning_rate", "epochs", "order", "threshold"})


class InputPerturbationSGD(shared.PrivateFactorization):
    """Ratings are perturbed once, or with `matrix: gram` two of their products. What follows is post-processing, so
    the claimed ε is provable, except that in unbounded published mode the noise of the averages is too small
    (`shared.averages`)."""

    title = "ISGD"
    about = "ISGD: input perturbation followed by SGD. Friedman, Berkovsky, Kaafar 2016, section 4.2, algorithm 3."
    paper = Paper.FRIEDMAN
    revision = 2
    shares_lanes = Where(
        lambda entry: entry.neighbours is Neighbours.UNBOUNDED and entry.matrix == "data",
        "with unbounded neighbours",
    )
    small: ClassVar[Mapping[str, Any]] = {"epochs": 3}
    by_rating = True

    algorithm: Literal["isgd"]
    learning_rate: float = Field(
        0.02, gt=0, le=1, description="γ; the paper's 0.01, times the gradient's factor 2, which eq. 2 drops"
    )
    epochs: int = Field(20, ge=1, description="k, section 5.2")
    order: Literal["user_major", "shuffled"] = "user_major"
    threshold: float = Field(0.6, gt=0, description="α, unbounded only: smaller perturbed values are dropped")
    matrix: Literal["data", "gram"] = later(
        "data",
        description="what is perturbed, unbounded only; data: every cell; gram: the Gram matrix of all users, whose "
        "eigenvectors are their factors, without SGD (McSherry and Mironov 2009, section 3)",
    )

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (({}, {"matrix": "gram", "epochs": cls.model_fields["epochs"].default}),)

    @property
    def ignored(self) -> frozenset[str]:
        if self.neighbours is Neighbours.BOUNDED:
            return super().ignored | {"matrix"}
        return super().ignored | (OF_DESCENT if self.matrix == "gram" else frozenset())

    def bounded(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> FactorModel:
        """Algorithm 3, with its line numbers. Neighbours differ in the value of one rating.

        eq. 7    r̃_ui = clamp(r_ui − IAvg(i) − UAvg(u), [−B, B])
        1        r′_ui = r̃_ui + Laplace(2B/ε)                        for every rating, once
        2        r′_ui clamped to [−B, B]
        3        (P, Q) = SGD on Σ (r′_ui − p_u·q_i)² + λ(‖p_u‖² + ‖q_i‖²)
        4        return P, Q
        """
        effects, bound = self.measure_effects(train, epsilons, curator), self.bound(train.scale)
        moves, epsilon = sensitivity.clamped_residuals(bound, train.scale), self.for_factors(epsilons)
        residuals = laplace("residuals", (len(train),), sensitivity=moves, epsilon=epsilon, curator=curator)
        model, visits = self.start(train, effects, streams), shared.in_order(train, self.order, streams)
        sgd = Sgd(self.learning_rate, self.regularization, bound, epochs=self.epochs)
        residuals.inside(kernel.descend_perturbed, model, visits, sgd)  # lines 1 to 3
        return model

    def unbounded(
        self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator
    ) -> FactorModel:
        """Algorithm 3 over all cells of the users × items matrix. Neighbours differ in the presence of one rating.

            r̃_ui = 0 where there is no rating
            r′_ui = clamp(r̃_ui + Laplace(B/ε), [−B, B])          for every cell, once
            cells with |r′_ui| ≤ α are dropped                    equation 8
            (P, Q) = SGD on the cells that are left

        `kernels.survivors` does this without the matrix. Models of different samples are fitted side by side, where a
        rating that is not in a model's sample is an empty cell to that model.
        """
        if self.matrix == "gram":
            return self.on_gram(train, epsilons, curator)
        return self.fit_samples(train, None, epsilons, streams=streams, curator=curator)

    def fit_samples(
        self, train: Ratings, kept: Kept | None, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> FactorModel:
        """The models of `kept`, from the averages of one sample after the other, and one pass over all cells. Without
        `kept`, each model has all ratings, and their averages are measured once for all."""
        if kept is None:
            effects, bits = self.measure_effects(train, epsilons, curator), None
        else:

            def measure(place: int, epsilon: Epsilons, alone: Curator) -> Effects:
                return self.measure_effects(train.select(kept[:, place]), epsilon, alone)

            effects, bits = side_by_side(one_by_one(measure, epsilons, curator)), sample_bits(kept)
        bound, epsilon = self.bound(train.scale), self.for_factors(epsilons)
        step, moves = "residuals of all cells", sensitivity.residual_cells_unbounded(bound)
        residuals = keyed_laplace(step, sensitivity=moves, epsilon=epsilon, curator=curator)
        rng = streams.generator("order of visits")
        order = rng.permutation(train.n_items).astype(np.int32)
        shifts = rng.integers(train.n_items, size=train.n_users)
        model, times = self.start(train, effects, streams), self.epochs
        sgd = Sgd(self.learning_rate, self.regularization, bound, threshold=self.threshold, epochs=times)
        residuals.inside(descend_survivors, model, train, sgd, order, shifts, bits)
        return model

    def on_gram(self, train: Ratings, epsilons: Epsilons, curator: Curator) -> FactorModel:
        """McSherry and Mironov 2009, section 3: noise on the Gram matrix, one of three ways to factors by an SVD.

            R̃: the n users × items matrix of clamped residuals r̃, 0 where there is no rating
            G = R̃ R̃ᵀ + Laplace(2nB²/ε), each pair of users once
            P = the d leading eigenvectors of G
            Q = R̃ᵀ P + Laplace(2B√d/ε), so that P Qᵀ is R̃ projected on P

        The paper gives the noise of G in words, and no split of ε, and does not mention Q, without which P predicts
        nothing.
        """
        effects, bound = self.measure_effects(train, epsilons, curator), self.bound(train.scale)
        half, grid, size = self.for_factors(epsilons) / 2, len(epsilons), triangle_size(train.n_users)
        moves = gram_triangle_unbounded(bound, train.n_users)
        of_gram = laplace("Gram matrix", (size,), sensitivity=moves, epsilon=half, curator=curator)
        moves = projected_residuals_unbounded(bound, self.factors)
        rows = train.n_items, self.factors
        of_items = laplace("projected residuals", rows, sensitivity=moves, epsilon=half, curator=curator)
        users, items = (np.zeros((n, self.factors, grid)) for n in (train.n_users, train.n_items))
        by_item, ones = transposed(train), np.ones(train.n_items)
        for lane in range(grid):
            part, noisy = slice(lane, lane + 1), np.empty((1, size), np.float32)
            subtracted = effects.users[:, part], effects.items[:, part]
            gram = Products(part, by_item, by_item.values, ones, *subtracted, bound, noisy)
            of_gram.inside(release_products, gram)
            _, vectors = leading_eigenpairs(noisy[0], train.n_users, self.factors, which="largest")
            users[:, : vectors.shape[1], lane] = vectors
            residuals = np.clip(own_residuals(train, effects, lane), -bound, bound)
            sums = [
                sums_by(train.items, residuals * own[train.users], train.n_items)
                for own in users[..., lane].T
            ]
            items[..., lane] = of_items.at(lane).added_to(np.stack(sums, axis=1))[..., 0]
        return factor_model(users, items, effects.users, effects.items)

    variants = in_both_modes(bounded=bounded, unbounded=unbounded)

    def cost(self, shape: Shape, grid: int) -> Cost:
        if self.matrix == "gram":
            between_users = Shape(shape.items, shape.users, shape.ratings)
            gram = covariance_cost(between_users, 1, private_weights=False)
            spectra = spectra_cost(between_users, grid, cleaned=False)
            seconds = grid * (gram.seconds + self.factors * shape.ratings * 4e-9)
            return spectra + costs.factors_cost(shape, grid, self.factors, seconds=seconds, held=gram.bytes)
        passes, visit = self.epochs * len(groups(grid)), self.factors * VISIT
        if self.neighbours is Neighbours.UNBOUNDED:  # the rows of the cells' items stay near
            seconds = float(shape.users) * shape.items * passes * (CELL + visit)
            held = shape.items * (self.factors + 1) * costs.LINE
            return costs.factors_cost(shape, grid, self.factors, seconds=seconds, held=held)
        seconds, held = shape.ratings * (passes * visit + 4e-8), 17.0 * shape.ratings
        if self.epochs > 1:
            held += kernel.kept_bytes(shape.ratings, min(grid, MAXIMUM_WIDTH))
        fetches = costs.sgd_fetches(shape, self.factors, epochs=passes, by_user=self.order == "user_major")
        return costs.factors_cost(shape, grid, self.factors, seconds=seconds, held=held) + fetches


NOISY_VISIT = 4.5e-9
"""Seconds per rating, latent factor and group of 16 lanes, with the projection of two rows."""


class PrivateSGD(shared.TwoSidedFactorization):
    """Gradients are perturbed while they are descended: algorithm 4 bounded, algorithm 5 unbounded."""

    title = "PSGD"
    about = (
        "PSGD: stochastic gradient perturbation. Friedman, Berkovsky, Kaafar 2016, section 4.3, algorithms "
        "4 and 5."
    )
    paper = Paper.FRIEDMAN
    revision = 2
    by_rating = True

    algorithm: Literal["psgd"]
    learning_rate: float = Field(
        0.02, gt=0, le=1, description="γ; the paper's 0.01, times the gradient's factor 2, which eq. 2 drops"
    )
    epochs: int = Field(5, ge=1, description="k, section 5.2")
    error_bound: Size = Field(2.0, description="e_max of algorithm 4, bounded only")
    order: Literal["user_major", "shuffled"] = "user_major"

    def algorithm_4(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> FactorModel:
        """Algorithm 4, with its line numbers, on the residuals r̃ that the averages leave:

            1        P, Q ← random, within ‖p_u‖ ≤ p_max and ‖q_i‖ ≤ q_max
            2        for k passes
            3          for each rating r̃_ui, in the order of the visits
            4            e ← r̃_ui − p_u·q_i + Laplace(k·Δr/ε)
            5            e ← clamp(e, ±e_max)
            6, 7         q_i ← q_i + γ(e·p_u − λ·q_i),  p_u ← p_u + γ(e·q_i − λ·p_u), both from the old rows
            sec. 5.2     ‖p_u‖ ≤ p_max,  ‖q_i‖ ≤ q_max
            8        return P, Q

        Δr is min(2B, r_max − r_min), since residuals are clamped to ±B (section 4.2). ε is the part that the averages
        leave. A rating enters a pass only through its own error, and everything else follows from noisy errors, so ε
        is provable.
        """
        effects = self.measure_effects(train, epsilons, curator)
        bound = self.bound(train.scale)
        model = self.start_within_norms(train, effects, streams)  # line 1
        visits = shared.in_order(train, self.order, streams)
        draw = partial(repeated_laplace, "errors", (len(train),), repetitions=self.epochs, curator=curator)
        moves, epsilon = sensitivity.clamped_residuals(bound, train.scale), self.for_factors(epsilons)
        limits = (self.error_bound, self.user_norm, self.item_norm)
        sgd = Sgd(self.learning_rate, self.regularization, bound, *limits)
        for errors in draw(sensitivity=moves, epsilon=epsilon):  # line 2
            errors.inside(
                kernel.descend_noisy_errors, model, visits, sgd
            )  # lines 3 to 7, and the norm bounds
        return model

    @property
    def ignored(self) -> frozenset[str]:
        return super().ignored | ({"user_share"} if self.neighbours is Neighbours.BOUNDED else set())

    def algorithm_5(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> FactorModel:
        """Algorithm 5, with its line numbers, on the residuals r̃ that the averages leave:

            1, 2     s_q, s_p: how far one update can move a row
            3        P, Q ← random, within their norms
            4        for k passes
            5, 6       for each rating r̃_ui: e ← clamp(r̃_ui − p_u·q_i, ±(B + p_max·q_max))
            7, 8         q_i ← q_i + γ(e·p_u − λ·q_i),  p_u ← p_u + γ(e·q_i − λ·p_u), both from the old rows
            10-12      p_u ← p_u + noise with density ∝ exp(−ε‖b‖/(2k·s_p))
            13         ‖p_u‖ ≤ p_max
            14-16      q_i ← q_i + noise with density ∝ exp(−ε‖b‖/(2k·s_q))
            17         ‖q_i‖ ≤ q_max
            19       return P, Q

        The noise is scaled to how far *one* update can move a row. Because an added rating also changes every later
        update of the pass, and no bound on this change is known, no ε is provable, and there is no corrected mode.
        `pbgd` follows the direction that the paper's conclusion names.
        """
        effects = self.measure_effects(train, epsilons, curator)
        bound = self.bound(train.scale)
        model = self.start_within_norms(train, effects, streams)  # line 3
        visits = shared.in_order(train, self.order, streams)
        of_users = self._vector_noise("user", train, epsilons, curator)
        of_items = self._vector_noise("item", train, epsilons, curator)
        error_bound = bound + self.user_norm * self.item_norm
        sgd = Sgd(self.learning_rate, self.regularization, bound, error_bound)
        for user_vectors, item_vectors in zip(of_users, of_items, strict=True):  # line 4
            kernel.descend_clamped_errors(model, visits, sgd)  # lines 5 to 8
            user_vectors.inside(perturb_side, model, "users", self.user_norm)  # lines 10 to 13
            item_vectors.inside(perturb_side, model, "items", self.item_norm)  # lines 14 to 17
        return model

    def _vector_noise(
        self, side: shared.Side, train: Ratings, epsilons: Epsilons, curator: Curator
    ) -> Iterator[Release]:
        """K-norm noise for the vectors of one side after each pass: algorithm 5, lines 1-2 and 10-16."""
        own, other = self.norms(side)
        reach, why = self.bound(train.scale) + own * other, "a rating changes all later updates of a pass"
        of_one = sensitivity.sgd_pass_unbounded(self.learning_rate, self.regularization, reach, own, other)
        moves = sensitivity.no_bound_known(2, Neighbours.UNBOUNDED, why, of_one)
        return self.side_noises(side, train, self.epochs, moves, epsilons, curator)

    variants = in_both_modes(bounded=algorithm_4) | by_mode(Neighbours.UNBOUNDED, published=algorithm_5)

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes = self.epochs * len(groups(grid))
        seconds = shape.ratings * (passes * self.factors * NOISY_VISIT + 3e-8)
        fetches = costs.sgd_fetches(shape, self.factors, epochs=passes, by_user=self.order == "user_major")
        if self.neighbours is Neighbours.BOUNDED:  # two draws of noise are held at once, and the signs of one
            seconds, held = seconds + 1e-8 * self.epochs * shape.ratings, 25.0 * shape.ratings
            return costs.factors_cost(shape, grid, self.factors, seconds=seconds, held=held) + fetches
        whole = costs.factors_cost(shape, grid, self.factors, seconds=seconds, held=8.0 * shape.ratings)
        return whole + costs.noise_on_rows(shape, self.factors, self.epochs) + fetches


class PrivateALS(shared.PrivateLeastSquares):
    """Algorithm 6, output perturbation, with its line numbers, on the residuals that the averages leave.

    1        P, Q ← random, within ‖q_i‖ ≤ q_max
    2        for k iterations
    3-5        p_u ← argmin J_Q(p_u) + b,  ‖b‖ ~ Gamma(d, 2k·q_max·Δr/(n_u·λ·ε))     for every user
    6          ‖p_u‖ ≤ p_max
    7-9        q_i ← argmin J_P(q_i) + b,  ‖b‖ ~ Gamma(d, 2k·p_max·Δr/(n_i·λ·ε))     for every item
    10         ‖q_i‖ ≤ q_max
    11       return P, Q
    """

    title = "PALS"
    about = (
        "PALS: alternating least squares under privacy. Friedman, Berkovsky, Kaafar 2016, section 4.4, "
        "algorithm 6."
    )
    paper = Paper.FRIEDMAN
    revision = 2

    algorithm: Literal["pals"]
    ridge: float = Field(
        10.0,
        ge=1e-6,
        description="weight of ‖p‖² in unbounded corrected mode, instead of n·λ; with less, float64 cannot solve "
        "a row of 10⁶ ratings",
    )

    def row_step(self, side: shared.Side, train: Ratings) -> tuple[Any, ...]:
        """The same, with (rows,) the factor 1/(n·λ) on the scale of each row's noise, for n ratings; 1 if the weight
        of ‖p‖² does not grow with n. A row without ratings is not solved."""
        ratings, problem, norm = super().row_step(side, train)
        counts = train.user_counts if side == "user" else train.item_counts
        of_rows = 1 / (np.maximum(counts, 1) * self.regularization)
        return ratings, problem, norm, np.ones(len(counts)) if self.is_constrained else of_rows

    def theorem_6(self, side: shared.Side, scale: Scale) -> Sensitivity:
        """Algorithm 6 with the norms where theorem 6 has them: q_max in the user step, p_max in the item step."""
        return sensitivity.least_squares_row(self.norms(side)[1], self.bound(scale), scale)

    def as_listed(self, side: shared.Side, scale: Scale) -> Sensitivity:
        """Algorithm 6 as listed: p_max in the user step, q_max in the item step. Theorem 6 swaps them."""
        swapped, true = (
            sensitivity.least_squares_row(norm, self.bound(scale), scale) for norm in self.norms(side)
        )
        return replace(true, calibrated_to=swapped)

    def table_1(self, side: shared.Side, scale: Scale) -> Sensitivity:
        """Algorithm 6 with the sensitivities of table 1. Nothing is provable: the scale depends on the private n."""
        why, stated = "the scale depends on the private n", sensitivity.published_least_squares_row_unbounded
        of_paper = stated(self.regularization, *self.norms(side), self.bound(scale))
        return sensitivity.no_bound_known(2, Neighbours.UNBOUNDED, why, of_paper)

    def constrained(self, side: shared.Side, scale: Scale) -> Sensitivity:
        """Ridge regression within ‖p_u‖ ≤ p_max, with a weight `ridge` that does not grow with n_u. Every row, rated
        or not, gets noise of the same scale (`sensitivity.constrained_ridge_row_unbounded`)."""
        moves = sensitivity.constrained_ridge_row_unbounded
        return moves(self.ridge, *self.norms(side), self.bound(scale))

    variants = by_mode(Neighbours.BOUNDED, published=as_listed, corrected=theorem_6)
    variants |= by_mode(Neighbours.UNBOUNDED, published=table_1, corrected=constrained)

    @property
    def is_constrained(self) -> bool:
        """Whether every row is a ridge regression within a ball, with a weight that does not grow with n."""
        return (self.neighbours, self.mode) == (Neighbours.UNBOUNDED, Mode.CORRECTED)

    def problem(self, side: shared.Side, scale: Scale) -> RowProblem:
        if not self.is_constrained:
            return super().problem(side, scale)
        return RowProblem(self.ridge, self.bound(scale), per_rating=False, ball=self.norms(side)[0])
