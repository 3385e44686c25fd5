"""Factorisations with noise on items, or on each visit: Hua 2015, Liu 2015."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared import cost as costs, factorization
from dpmf_cli.algorithms.shared.averages import bounded_item_averages, laplace_steps
from dpmf_cli.algorithms.shared.base import Arrays, ByMode, Paper, PrivateAlgorithm, Where, by_mode
from dpmf_cli.algorithms.shared.budget import (
    EffectsParameters,
    Fractions,
    Part,
    Ridge,
    Size,
    stabilised,
)
from dpmf_cli.algorithms.shared.cost import LINE, Cost, Shape
from dpmf_cli.algorithms.shared.factorization import InitialFactors, KnownModel, OwnFactors
from dpmf_cli.core.arrays import Floats, Longs
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.als import RowProblem, by_item, solve_perturbed
from dpmf_cli.kernels.factors import FactorModel, Side, factor_model
from dpmf_cli.kernels.sgd import langevin_round, visits_between
from dpmf_cli.kernels.sums import residual_sums_by_user
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import repeated_k_norm
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.posterior import LangevinSchedule, posterior_sampling
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import no_bound_known


class ItemFactorsBudget(Fractions):
    """Fractions of ε: for the global average, the item averages, and the items' factors."""

    global_averages: float = Field(0.02, gt=0, lt=1)
    item_averages: float = Field(0.93, gt=0, lt=1)
    factors: float = Field(0.05, gt=0, lt=1)


class HuaMF(PrivateAlgorithm):
    """Section 3, a trusted recommender. U is treated as a constant with ‖u_i‖ ≤ 1, and V is released:

        V ← argmin Σ (r_ij − u_i·v_j)² + w·Σ‖v_j‖² + 2·Σ η_j·v_j,   p(η_j) ∝ exp(−ε·‖η_j‖/Δ),  Δ = r_max − r_min

    Theorem 1 has 2Δ because the gradient of its loss is 2(r − u·v)u; here η is for half of the loss. The two modes
    differ in U.
    """

    title = "MF of Hua et al."
    about = (
        "Objective perturbation of the items' factors; users keep their own factors. Hua, Xia and Zhong 2015."
    )
    paper = Paper.HUA
    joint = True
    new_users = Where(lambda entry: entry.mode is Mode.CORRECTED, "in corrected mode")
    only: ClassVar[ByMode] = {
        Mode.PUBLISHED: ("regularization", "iterations", "initial_factors"),
        Mode.CORRECTED: ("noise_ridge", "user_ridge", "budget"),
    }

    algorithm: Literal["hua_mf"]
    factors: int = Field(2, ge=1, le=64, description="d")
    item_ridge: Size = Field(1.0, description="w; corrected: its value without noise")
    regularization: float = Field(
        0.05, ge=0, description="λ, published: per rating, for the clean fit of U and V that comes first"
    )
    iterations: int = Field(10, ge=1, description="published: rounds of the clean fit that comes first")
    initial_factors: InitialFactors = InitialFactors(distribution="uniform", scale=1.0)
    noise_ridge: float = Field(
        5.0, ge=0, le=1e6, description="corrected: by how much w grows for each unit of η's scale"
    )
    user_ridge: Ridge = Field(30.0, description="corrected: the ridge of a user's own regression on V")
    effects: EffectsParameters = EffectsParameters(beta_m=10, beta_u=20, residual_clamp=2)
    budget: ItemFactorsBudget = ItemFactorsBudget()

    def published(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> KnownModel:
        """U is fitted to the same ratings by regularised least squares without noise, and divided by the norm of
        its longest row.

        Nothing is provable, because U, which the theorem treats as a constant, is not constant: another rating moves
        u_i, and with it what u_i adds to every item that user i rated. Each user keeps u_i, and predictions use it
        (‡).
        """
        largest = max(abs(train.scale.minimum), abs(train.scale.maximum))
        noise = self.objective_noise(train, largest, epsilons, curator)
        grid = len(epsilons)
        model = factorization.start_model(train, self, streams, grid=grid)
        factorization.alternate(model, train, RowProblem(self.regularization, bound=np.inf), self.iterations)
        for group in model.groups:
            users_rows = group.rows("users")
            users_rows /= np.linalg.norm(users_rows, axis=1).max(axis=0)
        perturbed = RowProblem(self.item_ridge, largest, per_rating=False)
        noise.inside(solve_perturbed, model, by_item(train), perturbed, np.inf)
        return factorization.sampled_model(train, np.ones((len(train), grid), np.bool_), model)

    def corrected(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> OwnFactors:
        """U is drawn as random unit rows that do not depend on any rating, so the theorem holds:

            x_ij = clamp(r_ij − IAvg_j, ±B),   IAvg noisy averages (`bounded_item_averages`)
            V ← as above, from x and with a w that grows with the noise
            r̂_ij = IAvg_j + r̄_i + p_i·v_j,   r̄_i the user's own mean, p_i the user's own ridge regression on V

        There is only one pass: if users' factors followed from V, every row of them would depend on the rating in
        question. Predictions use the target user's own ratings (‡).
        """
        shares = {part: self.budget.fractions[part] * epsilons for part in (Part.OVERALL, Part.ITEMS)}
        steps, moves = laplace_steps(shares, curator), sensitivity.rating_sums(train.scale)
        _, averages = bounded_item_averages(train, steps, moves, self.effects.of_items)
        clamp = self.effects.residual_clamp
        noise = self.objective_noise(train, clamp, self.budget.factors * epsilons, curator)
        sphere = InitialFactors(distribution="sphere", scale=1.0)
        users = sphere.draw(train.n_users, self.factors, streams.start("public user factors"))
        items = np.zeros((train.n_items, self.factors))
        model = factor_model(users, items, np.zeros((train.n_users, len(epsilons))), averages)
        perturbed = RowProblem(self.item_ridge + self.noise_ridge * noise.scale, clamp, per_rating=False)
        noise.inside(solve_perturbed, model, by_item(train), perturbed, np.inf)
        return OwnFactors(self, model.without_users(), {}, train)

    def objective_noise(self, train: Ratings, clamp: float, epsilon: Epsilons, curator: Curator) -> Release:
        """η, scaled for rows of U of norm 1 at most and for x within ±`clamp`."""
        moves = sensitivity.least_squares_right_hand_side(1.0, clamp, train.scale)
        if self.mode is Mode.PUBLISHED:
            why = "Hua et al. 2015, theorem 1: U is fitted on the ratings"
            moves = no_bound_known(2, self.neighbours, why, moves)
        draw = partial(repeated_k_norm, "objective, item factors", repetitions=1, curator=curator)
        return next(draw((train.n_items, self.factors), sensitivity=moves, epsilon=epsilon))

    def with_own_factors(self, items: FactorModel, beside: Arrays, own: Ratings) -> FactorModel:
        averages = np.concatenate([group.table("items")[:, -1] for group in items.groups], axis=1)
        means = averages.astype(np.float64)
        sums = residual_sums_by_user(own.users, own.items, own.values, means, own.n_users)[:-1]
        counts, middle = own.user_counts[:, None].astype(np.float64), np.zeros(averages.shape[1])
        means = stabilised(sums, counts, self.effects.beta_u, middle)
        return factorization.regress(items.with_users(means), own, self.user_ridge)

    variants = by_mode(Neighbours.BOUNDED, published=published, corrected=corrected)

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes = 1.5 if self.mode is Mode.CORRECTED else self.iterations + 0.5
        d, rows = self.factors, 2 * shape.ratings + costs.ROW_IN_RATINGS * shape.rows
        work = passes * len(groups(grid)) * rows * costs.gram_entries(d) * costs.PERTURBED_ENTRY
        seconds = work + 1e-7 * shape.ratings
        return costs.factors_cost(shape, grid, d, seconds=seconds, held=24.0 * shape.ratings)


SIDES: tuple[Side, ...] = ("users", "items")

VISIT = 6e-8
"""Seconds per rating, latent factor and group of 16 lanes, including the noise of its two rows."""


class LiuMF(PrivateAlgorithm):
    """For K rounds over the n ratings, in one order; rows w_u = (p_u, b_u) and w_i = (q_i, b_i), biases last:

        η = η₁·t^−γ/n,   s = min(ε/4B, 1),  B = r_max²·τ
        at each visit of u and i, both rows first get N(0, ρ·η) for each visit since their own last one;
            e = r_ui − m − p_u·q_i − b_u − b_i
            p_u ← p_u + η·s·(n·λ_r·e·q_i − (n/n_u)·Λ_P∘p_u),   q_i and the biases likewise
        after the round all rows get the noise of the visits since, and
            λ_r, Λ_P, Λ_Q, λ of biases ← the means of their Gamma posteriors,  Gamma(a, b) before

    with τ ratings of each user at most. `dpps_mf` is the same method as Wang and Tang run it. This one differs from
    it: it visits ratings one by one, has biases, and learns λ. Each term of a prior is weighted by how rarely its row
    is visited. It departs from the authors' code in two ways: m is the middle of the scale, where the code takes a
    number from its command line, and each λ is the mean of its posterior, where the code draws λ. The drift has no ½,
    so the noise has temperature ρ/2.

    Nothing is provable (`privacy.posterior`). λ, and which rows are visited, depend on the ratings without noise.
    """

    title = "SGLD"
    about = "Langevin dynamics rating by rating, as the authors' own code runs it. Liu, Wang and Smola 2015."
    paper = Paper.LIU
    variants = by_mode(Neighbours.USER, published=None)
    averaged = False
    small: ClassVar[Mapping[str, Any]] = {"most_ratings": 4}

    algorithm: Literal["liu_mf"]
    neighbours: Neighbours = Neighbours.USER
    factors: int = Field(10, ge=1, le=64, description="d")
    iterations: int = Field(20, ge=1, le=10_000, description="K: rounds over the ratings")
    initial_rate: float = Field(0.02, gt=0, le=1e4, description="η₁")
    decay: float = Field(1.0, ge=0, le=1, description="γ")
    temperature: float = Field(1e-4, gt=0, le=1, description="ρ; 1 by default in the authors' code")
    most_ratings: int = Field(200, ge=1, description="τ")
    shape: float = Field(1.0, gt=0, description="a of the Gamma priors")
    rate: float = Field(100.0, gt=0, description="b of the Gamma priors")
    initial_factors: InitialFactors = InitialFactors(scale=0.01)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> FactorModel:
        train = factorization.at_most(train, self.most_ratings, streams.of_ratings("ratings kept", train))
        middle, largest = train.scale.middle, max(abs(train.scale.minimum), abs(train.scale.maximum))
        roots, count, grid = visits_between(train), max(len(train), 1), len(epsilons)
        rate, rounds = self.initial_rate / count, self.iterations
        chain = posterior_sampling(
            "factors",
            (len(roots), self.factors + 1),
            schedule=LangevinSchedule(rate, self.decay, self.temperature, rounds),
            bound=largest**2 * self.most_ratings,
            epsilon=epsilons,
            neighbours=self.neighbours,
            curator=curator,
        )
        centred = replace(train, values=train.values - np.float32(middle))
        model = factorization.start_model(train, self, streams, grid=grid)
        of_errors, of_rows = np.ones(grid), {side: np.full((self.factors + 1, grid), 100.0) for side in SIDES}
        counts: dict[Side, Longs] = {"users": train.user_counts, "items": train.item_counts}

        def posterior(numbers: Floats) -> Epsilons:
            """λ, for each ε and coordinate: the mean of its posterior, (a + n/2)/(b + Σx²/2) for n numbers x."""
            squares = np.square(numbers, dtype=np.float64).sum(axis=0)
            return np.asarray((self.shape + len(numbers) / 2) / (self.rate + squares / 2))

        for drift, noise in chain:
            power, decays = 2 * drift * count, {}  # n·η·s
            for side in SIDES:
                # (rows, d + 1, E) η·s·(n/n_row)·λ; 1 at most, because a row changes sign beyond
                visits = np.maximum(counts[side], 1)[:, None, None]
                decays[side] = np.minimum(power * of_rows[side] / visits, 1.0)
            noise.inside(langevin_round, model, centred, roots, power * of_errors, decays)
            rows = {side: [group.table(side) for group in model.groups] for side in SIDES}
            of_rows = {side: posterior(np.concatenate(rows[side], axis=2)) for side in SIDES}
            of_errors = posterior(centred.values[:, None] - model.predict(centred.users, centred.items))
        for group in model.groups:
            group.table("items")[:, -1] += np.float32(middle)
        return model

    def cost(self, shape: Shape, grid: int) -> Cost:
        ratings, row = min(shape.ratings, self.most_ratings * shape.users), self.factors + 1
        passes, rows = self.iterations * len(groups(grid)), shape.rows * row * LINE
        drawn = (2 * ratings + shape.rows) * float(row)
        seconds = passes * ratings * row * VISIT + self.iterations * drawn * 1e-8
        return Cost(seconds + 1e-7 * shape.ratings, 4 * rows * len(groups(grid)) + 16 * drawn + 64 * ratings)
