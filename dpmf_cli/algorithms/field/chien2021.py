"""Private alternating minimisation, by normal equations (DPALS) or by gradients (DPAM). Chien et al. 2021."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from dpmf_cli.algorithms.shared.base import SAMPLED, ByMode, Choices
from dpmf_cli.algorithms.shared.budget import Fractions
from dpmf_cli.algorithms.shared.cost import Cost, Shape, fetched, gram_entries
from dpmf_cli.algorithms.shared.factorization import InitialFactors, OwnFactors
from dpmf_cli.algorithms.shared.item_alternation import EQUATION_ENTRY, ITEM_ENTRY, Begun, ItemAlternation
from dpmf_cli.algorithms.shared.theta import certified_gradients, rates_under
from dpmf_cli.core.compiled.lane_groups import groups, padded_grid
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.factors import set_items
from dpmf_cli.kernels.gradients import descend_items
from dpmf_cli.kernels.normal_equations import (
    HELD,
    Residuals,
    isometric,
    item_equations,
    whole,
)
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.privacy.sensitivity import Sensitivity

EIGEN_ENTRY = 4e-9
"""Seconds per item and ε, times d³, for the eigenvectors of its Gram matrix."""


class EquationsBudget(Fractions):
    """Fractions of θ: for the global mean, the items' counts, all Gram matrices, and all right-hand sides."""

    centre: float = Field(0.015, gt=0, lt=1)
    counts: float = Field(0.08, gt=0, lt=1)
    grams: float = Field(0.2, gt=0, lt=1)
    right_sides: float = Field(0.705, gt=0, lt=1)


class PrivateAlternatingLeastSquares(ItemAlternation):
    """In each of T steps, once the users are solved:

        A_i = Σ_u w_ui·p_u·p_uᵀ + symmetric N(0, (σ₁Γ²)²), projected to matrices without negative eigenvalues
        b_i = Σ_u w_ui·x̃_ui·p_u + N(0, (σ₂ΓΓ_M)²)
        q_i ← (A_i + (λ·f_i + κ·s)·I)⁻¹·b_i,    f_i ∝ (n̂_i + 1)^ν, s = σ₁Γ²√d

    Corrected, x̃ is x clipped to ±Γ_M. As published (the public code), x̃ is x, and the noise is scaled for Γ_M = 1.
    Since a centred rating is within r_max − r_min, the provable ε is finite all the same. κ makes the ridge grow with
    the noise by a public rule. The paper chooses λ anew for each ε instead.
    """

    title = "DPALS"
    about = "DPALS: private alternating least squares. Chien, Jain, Krichene, Rendle, Song, Thakurta and Zhang 2021."
    small: ClassVar[Mapping[str, Any]] = {"most_ratings": 4}
    only: ClassVar[ByMode] = {Mode.CORRECTED: ("rating_clip",)}

    algorithm: Literal["dpals"]
    rating_clip: float = Field(0.85, ge=1e-6, le=1e6, description="Γ_M, corrected")
    item_ridge: float = Field(10.0, ge=1e-3, le=1e6, description="λ")
    frequency_exponent: float = Field(
        0.75,
        ge=0,
        le=1,
        description="ν: items with more ratings have a larger ridge; its mean over ratings is λ",
    )
    noise_ridge: float = Field(1.0, ge=0, le=1e6, description="κ")
    budget: EquationsBudget = EquationsBudget()

    @property
    def measurements(self) -> Mapping[str, int]:
        return {"centre": 2, "counts": 1, "grams": self.iterations, "right_sides": self.iterations}

    def residuals(self, scale: Scale) -> Residuals:
        return Residuals(self.rating_clip) if self.mode is Mode.CORRECTED else Residuals()

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> OwnFactors:
        begun = self.begin(train, epsilons, streams, curator)
        for t in range(1, self.iterations + 1):
            self.step_users(begun)
            self.step_items(begun, t, train)
        return self.end(begun, train)

    def step_items(self, begun: Begun, t: int, train: Ratings) -> None:
        """Q ← the solutions of noisy normal equations, blocks of items one after the other."""
        k, d, norm = self.most_ratings, self.factors, self.user_norm
        entries, noise = d * (d + 1) // 2, begun.measurer.noise
        of_grams = noise("grams", f"grams {t}", (train.n_items, entries), sensitivity.item_grams(k, norm))
        of_sides = noise("right_sides", f"right sides {t}", (train.n_items, d), *self.side_moves(train.scale))
        # f_i, with mean 1 over the ratings as counted with noise
        powers = (begun.counts + 1) ** self.frequency_exponent
        ridge = self.item_ridge * (powers * (begun.counts.sum(axis=0) / (begun.counts * powers).sum(axis=0)))
        ridge += self.noise_ridge * np.sqrt(d) * of_grams.scale
        at_once = max(1, HELD // (entries * ridge.shape[1]))
        for first in range(0, train.n_items, at_once):
            items = slice(first, min(first + at_once, train.n_items))
            grams, sides = item_equations(begun.model, begun.parts, items)
            (now_grams, of_grams), (now_sides, of_sides) = (
                each.split(len(grams)) for each in (of_grams, of_sides)
            )
            grams, sides = now_grams.added_to(isometric(grams, d)), now_sides.added_to(sides)
            set_items(begun.model, items, solved(whole(grams, d), sides, ridge[items]))

    def side_moves(self, scale: Scale) -> tuple[Sensitivity, ...]:
        """Returns how far right-hand sides move and, if published, how far their noise assumes that they move."""
        k, norm = self.most_ratings, self.user_norm
        if self.mode is Mode.CORRECTED:
            return (sensitivity.item_right_sides(k, norm, self.rating_clip),)
        return sensitivity.centred_right_sides(k, norm, scale), sensitivity.published_right_sides(k, norm)

    def cost(self, shape: Shape, grid: int) -> Cost:
        times, parts, d = self.iterations, padded_grid(grid) / 16, self.factors
        summed = times * parts * shape.ratings * gram_entries(d) * ITEM_ENTRY
        equations = times * grid * shape.items * (d**3 * EIGEN_ENTRY + gram_entries(d) * EQUATION_ENTRY)
        held = 24.0 * shape.items * gram_entries(d) + 48.0 * HELD
        far = (fetched(shape.users, d, times * shape.ratings * len(groups(grid))),)
        return self.users_cost(shape, grid, times + 1) + Cost(summed + equations, held, far)


def solved(
    grams: NDArray[np.float64], sides: NDArray[np.float64], ridge: NDArray[np.float64]
) -> NDArray[np.float64]:
    """(n, d, E) (A⁺ + ridge·I)⁻¹·b, where A⁺ is the nearest matrix without negative eigenvalues.

    grams (n, E, d, d), sides (n, d, E), ridge (n, E)
    """
    values, vectors = np.linalg.eigh(grams)
    rotated = np.matmul(np.moveaxis(sides, 1, 2)[..., None, :], vectors)[..., 0, :]
    scaled = rotated / (np.maximum(values, 0) + ridge[..., None])
    return np.moveaxis(np.matmul(vectors, scaled[..., None])[..., 0], 2, 1)


FEW = 1000
"""Up to this many users, the learning rate is as given; it falls with more. The number of users is public."""


class ItemGradientsBudget(Fractions):
    """Fractions of θ: for the global mean, the items' counts, and the gradients."""

    centre: float = Field(0.015, gt=0, lt=1)
    counts: float = Field(0.15, gt=0, lt=1)
    gradients: float = Field(0.835, gt=0, lt=1)


class PrivateAlternatingMinimization(ItemAlternation):
    """In each of T rounds, once the users are solved, `steps` steps follow. Each step is on a sample of the users,
    each drawn with probability γ:

        Q ← Q + η(Σ_u clip_C((w_ui·(x_ui − p_u·q_i)·p_u)_i) + N(0, (C·σ)²))/γ − η·λ·Q

    An accountant certifies σ for all steps together with the mean and the counts. η is lowered for more than 1000
    users, and where the noise of all steps would add up to more than `spread` in a coordinate of Q. Published and
    corrected mode differ only in the noise of the mean m. The public code has batches of a fixed size and charges for
    them as for samples. Its rates may adapt; these do not.
    """

    title = "DPAM"
    about = "DPAM: private alternating minimisation by noisy gradients. The public code of Chien et al. 2021."
    counts_users = True
    small: ClassVar[Mapping[str, Any]] = {"most_ratings": 4, "iterations": 2, "steps": 3}

    algorithm: Literal["dpam"]
    iterations: int = Field(12, ge=1, le=1000, description="T")
    factors: int = Field(2, ge=1, le=64, description="d")
    user_norm: float = Field(1.5, ge=1e-6, le=1e6, description="Γ")
    initial_factors: InitialFactors = InitialFactors(scale=0.05)
    steps: int = Field(3, ge=1, le=10_000, description="steps in each round")
    sampling_rate: float = Field(1.0, gt=0, le=1, description="γ, the fraction of the users in a step")
    clip: float = Field(
        5.0, ge=1e-6, le=1e6, description="C: the most that a user adds to a gradient, in L2 norm"
    )
    learning_rate: float = Field(
        0.01, gt=0, le=10, description="η, for up to 1000 users; it is 1000·η/n for n users, if n is larger"
    )
    item_ridge: float = Field(3.0, ge=0, description="λ; η·λ is 1 at most")
    spread: float = Field(
        0.2,
        gt=0,
        le=100,
        description="the largest standard deviation that noise may have in a coordinate of Q",
    )
    budget: ItemGradientsBudget = ItemGradientsBudget()

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (SAMPLED,)

    @model_validator(mode="after")
    def _refuse_what_cannot_be_certified(self) -> Self:
        self.refuse_a_delta_beyond_the_accountant(self.sampling_rate)
        self.refuse_steps_that_diverge(self.learning_rate, "item_ridge")
        return self

    @property
    def measurements(self) -> Mapping[str, int]:
        return {"centre": 2, "counts": 1}

    def residuals(self, scale: Scale) -> Residuals:
        return Residuals(after_factors=True, vector=self.clip)

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> OwnFactors:
        begun = self.begin(train, epsilons, streams, curator)
        shape, steps = (train.n_items, self.factors), self.iterations * self.steps
        beside = math.hypot(self.budget.centre, self.budget.counts)
        gradients, multiplier = certified_gradients(self, shape, self.clip, steps, beside, epsilons, curator)
        rng, rates = streams.generator("samples of users"), self.rates(multiplier, train.n_users)
        for _ in range(self.iterations):
            self.step_users(begun)
            for _ in range(self.steps):
                parts = begun.parts
                if self.sampling_rate < 1:
                    chosen = rng.random((train.n_users, 1)) < self.sampling_rate
                    weights = replace(parts.weights, users=parts.weights.users * chosen)
                    parts = replace(parts, weights=weights)
                _, sides = item_equations(begun.model, parts, slice(None), with_gram=False)
                noisy = next(gradients).added_to(sides)
                descend_items(begun.model, noisy / self.sampling_rate, rates, self.item_ridge)
        return self.end(begun, train)

    def rates(self, multiplier: Epsilons, n_users: int) -> Epsilons:
        """(E,) η, lowered for more users than `FEW`, whose gradients add up, and for noise that would add up."""
        noise = math.sqrt(self.iterations * self.steps) * self.clip * multiplier / self.sampling_rate
        return rates_under(noise, self.learning_rate * min(1.0, FEW / n_users), self.spread)

    def cost(self, shape: Shape, grid: int) -> Cost:
        steps, parts, d = self.iterations * self.steps, padded_grid(grid) / 16, self.factors
        summed = steps * parts * shape.ratings * 6 * d * ITEM_ENTRY
        noise = steps * grid * shape.items * d * EQUATION_ENTRY
        held = 48.0 * shape.items * d * padded_grid(grid)
        far = (fetched(shape.users, d, steps * shape.ratings * len(groups(grid))),)
        return self.users_cost(shape, grid, self.iterations + 1) + Cost(summed + noise, held, far)
