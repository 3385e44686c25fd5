"""DPALS: private alternating least squares. Chien, Jain, Krichene, Rendle, Song, Thakurta and Zhang 2021."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import ByMode
from dpmf_cli.algorithms.shared.budget import Fractions
from dpmf_cli.algorithms.shared.cost import Cost, Shape, fetched, gram_entries
from dpmf_cli.algorithms.shared.factorization import OwnFactors
from dpmf_cli.algorithms.shared.item_alternation import EQUATION_ENTRY, ITEM_ENTRY, Begun, ItemAlternation
from dpmf_cli.core.compiled.lane_groups import groups, padded_grid
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.factors import set_items
from dpmf_cli.kernels.normal_equations import HELD, Residuals, isometric, item_equations, whole
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

    title: ClassVar[str] = "DPALS"
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
