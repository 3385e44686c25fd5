"""Item neighbourhoods: which items are neighbours, private averages, and similarities learned with a certified ε."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError
from scipy.sparse import csc_matrix, csr_matrix

from dpmf_cli.algorithms.shared import cost as costs
from dpmf_cli.algorithms.shared.averages import OwnMeansAlgorithm, bounded_item_averages
from dpmf_cli.algorithms.shared.base import SAMPLED, ByMode, Choices
from dpmf_cli.algorithms.shared.budget import EffectsParameters, ItemAveragesBudget, Part
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.theta import Measurer, NoiseKind, certified_gradients
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import later
from dpmf_cli.kernels.similarities import (
    LearnedRatings,
    NeighbourhoodModel,
    SimilarityStep,
    descend_noisy_similarities,
    neighbourhood_model,
)
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.accounting import before_sampling
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import clipped_contributions

BLOCK = 512
"""The number of items whose similarities to all others are held at a time."""


def by_user(train: Ratings, values: NDArray[np.float64]) -> csr_matrix:
    """(n_users, n_items) a sparse matrix with a number for each rating."""
    return csr_matrix((values, (train.users, train.items)), (train.n_users, train.n_items))


def item_products(left: csr_matrix, right: csr_matrix) -> Iterator[tuple[slice, NDArray[np.float64]]]:
    """Yields Σ_u left_ui·right_uj (b, n_items) for one block of items i after the other."""
    columns = csc_matrix(left)
    for first in range(0, left.shape[1], BLOCK):
        block = slice(first, min(first + BLOCK, left.shape[1]))
        yield block, (columns[:, block].T @ right).toarray()


def largest(scores: NDArray[np.float64], items: slice, k: int) -> NDArray[np.int32]:
    """(b, k) for each row the k items with the largest scores, in ascending order of items.

    Among equal scores the lower items are taken. `scores` (b, n_items) belong to the rows' `items`; an item is not
    its own neighbour. k < n_items. Overwrites the scores of each item with itself.
    """
    scores[np.arange(len(scores)), np.arange(items.start, items.stop)] = -np.inf
    last = scores.shape[1] - max(k, 1)  # k is 0 if there is one item
    least = np.partition(scores, last, axis=1)[:, last, None]
    above, equal = scores > least, scores == least
    room = k - above.sum(axis=1, keepdims=True)
    chosen = above | (equal & (np.cumsum(equal, axis=1, dtype=np.int32) <= room))
    return np.nonzero(chosen)[1].reshape(len(scores), k).astype(np.int32)


def most_co_rated(train: Ratings, k: int) -> NDArray[np.int32]:
    """(n_items, min(k, n_items − 1)) for each item, the items that most users rated together with it."""
    ones = by_user(train, np.ones(len(train)))
    k = min(k, train.n_items - 1)
    return np.concatenate([largest(counts, items, k) for items, counts in item_products(ones, ones)])


def all_others(n_items: int) -> NDArray[np.int32]:
    """(n_items, n_items − 1) for each item, every other item. Uses no rating."""
    others = np.arange(n_items - 1, dtype=np.int32)[None, :]
    return np.asarray(others + (others >= np.arange(n_items)[:, None]), dtype=np.int32)


CERTIFIED = Neighbours.BOUNDED, Neighbours.UNBOUNDED, Neighbours.USER
"""The neighbours of a neighbourhood with noisy averages."""


class PrivateNeighbourhood(OwnMeansAlgorithm):
    """r̂_ui = r̄_i + Σ_j s_ij(r_uj − r̄_j)/Σ_j |s_ij|, from the target user's own ratings: *joint* privacy.

    Averages r̄ are noisy. Neighbours are found from public data only. With bounded neighbours, who rated what is
    public, and the N_k items with the most common raters are an item's neighbours. Otherwise nothing is public, and
    every other item is a neighbour. As published, averages have no noise, and neighbours are chosen from the ratings
    whether or not that is public.
    """

    neighbours: Neighbours = Neighbours.BOUNDED
    effects: EffectsParameters = EffectsParameters(beta_m=10)
    neighbourhood: int = Field(500, ge=1, le=100_000, description="N_k, if neighbours of items can be chosen")

    def item_averages(self, train: Ratings, epsilons: Epsilons, curator: Curator) -> NDArray[np.float64]:
        """(n_items, E) r̄. Published: without noise, and the paper does not charge for it."""
        if self.mode is Mode.PUBLISHED:
            return self.uncharged_averages(train, len(epsilons), curator, self.effects.beta_m)
        if self.neighbours is not Neighbours.BOUNDED:
            return self.released_averages(train, self.measurer(epsilons, curator)).items
        pieces: dict[str, int] = {Part.OVERALL: 1, Part.ITEMS: 1}
        measurer = Measurer(self.accounting, pieces, epsilons, curator)
        moves = sensitivity.rating_sums(train.scale, self.noise.norm)
        return bounded_item_averages(train, measurer.noise, moves, shrinkage=self.effects.of_items)[1]

    @model_validator(mode="after")
    def _refuse_a_choice_that_would_not_be_private(self) -> Self:
        own = type(self).model_fields["neighbourhood"].default
        if self.neighbourhood != own and not self.chooses_neighbours:
            fix = "every item is a neighbour if who rated what is not public; remove `neighbourhood`"
            raise PydanticCustomError("neighbourhood", "{fix}", {"fix": fix, "path": ("neighbourhood",)})
        return self

    @property
    def chooses_neighbours(self) -> bool:
        """Whether an item has N_k chosen neighbours; otherwise all other items are its neighbours."""
        return self.neighbours is Neighbours.BOUNDED or self.mode is Mode.PUBLISHED

    @property
    def charges_averages(self) -> bool:
        return self.mode is Mode.CORRECTED

    def start(
        self, train: Ratings, epsilons: Epsilons, curator: Curator, similarity: float
    ) -> tuple[NeighbourhoodModel, int]:
        """The model with averages, the neighbours of each item and the same similarity of all; and how many
        similarities it has."""
        averages = self.item_averages(train, epsilons, curator)
        others = (
            most_co_rated(train, self.neighbourhood) if self.chooses_neighbours else all_others(train.n_items)
        )
        return neighbourhood_model(train, others, similarity, averages), others.size

    @property
    def steps_of_learning(self) -> int:
        """How many steps learn similarities."""
        return 0

    def cost(self, shape: Shape, grid: int) -> Cost:
        k = self.neighbourhood if self.chooses_neighbours else shape.items
        return costs.effects_cost(shape, grid) + costs.neighbourhood_cost(
            shape, grid, k, steps=self.steps_of_learning
        )

    def predictions_cost(self, shape: Shape, grid: int, pairs: float, calls: int) -> Cost:
        k = self.neighbourhood if self.chooses_neighbours else shape.items
        return costs.pairs_cost(grid, pairs) + costs.met_cost(shape, grid, pairs, k)


class LearningBudget(ItemAveragesBudget):
    """Fractions of θ: for the averages, and for all steps of learning together. Corrected only."""

    global_averages: float = Field(0.02, gt=0, lt=1)
    item_averages: float = Field(0.58, gt=0, lt=1)
    similarities: float = Field(0.40, gt=0, lt=1)


def error_bound(scale: Scale, t: int) -> float:
    """0.5 + (φ − 1)/(t + 1), φ = r_max − r_min: the bound to which section 3 clamps errors in step t = 1, 2, …"""
    return 0.5 + (scale.width - 1) / (t + 1)


class LearnedNeighbourhood(PrivateNeighbourhood):
    """Similarities S that K noisy steps learn, starting from s_ij = s₀: as published, or `certified`."""

    only: ClassVar[ByMode] = {Mode.CORRECTED: ("clip", "budget", "noise", "typical_count")}
    by_rating: ClassVar[bool] = True

    budget: LearningBudget = LearningBudget()
    initial_similarity: float = Field(1.0, ge=1e-6, le=1e6, description="s₀")
    iterations: int = Field(5, ge=1, description="K: 1 to 20, fewer for smaller ε")
    sampling_rate: float = Field(
        1.0, gt=0, le=1, description="γ: the fraction of ratings (corrected: of users) that a step uses"
    )
    regularization: float = Field(0.005, ge=0, description="λ: 0.05 or 0.005")
    clip: float = Field(
        0.3,
        ge=1e-6,
        le=1e6,
        description="c, corrected only: the largest norm of a user's gradient, at s₀ = 1",
    )
    least_ratings: int = later(
        0, ge=0, description="users with fewer ratings are left out of learning; 21 in section 3"
    )

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        laws = super().choices(mode) if mode is Mode.CORRECTED else ()
        return (*laws, SAMPLED)

    @model_validator(mode="after")
    def _refuse_what_cannot_be_certified(self) -> Self:
        if self.mode is Mode.CORRECTED:
            self.refuse_a_delta_beyond_the_accountant(self.sampling_rate)
            first = float(self.rates(1, np.zeros(1))[0])
            self.refuse_steps_that_diverge(first, "regularization")
        return self

    def learned_from(self, train: Ratings, streams: Streams) -> Ratings:
        """The ratings from whose errors the method learns: those of users with at least `least_ratings`.

        Averages and users' own predictions use all ratings. If users or the presence of a rating are protected, one
        rating decides whether a user's complete gradient counts. A clipped gradient that appears moves the sum no
        more than the change of one clipped gradient into another.
        """
        return (
            train.select(train.user_counts[train.users] >= self.least_ratings)
            if self.least_ratings
            else train
        )

    @property
    def steps_of_learning(self) -> int:
        return self.iterations

    def certified(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        """Starts from noisy averages r̄ and S = s₀. Then, for t = 1 … K:

            U_t: a sample of the users, each with probability γ
            g_u = Σ_i clip(e_ui·∂r̂_ui/∂S) for u in U_t, each of its c_u terms clipped to c/√c_u, or to c/c_u
            S ← S − η_t·(Σ_u g_u + noise_t + λS)

        The bound is c/√c_u in the L2 norm for Gaussian noise, and c/c_u in the L1 norm for Laplace noise. c is in
        units of 1/s₀. `rates` sets η_t.

        The value of one rating enters the errors of all ratings of its user, so the user's complete gradient is
        clipped: every term is in a different row of S, hence ‖g_u‖ ≤ c. For the same reason a sample of ratings would
        amplify next to nothing, so users are sampled.
        """
        model, size = self.start(train, epsilons, curator, self.initial_similarity)
        learned = self.clipped(self.learned_from(train, streams))
        rng = streams.generator("samples")
        deviation = math.sqrt(2) if self.noise is NoiseKind.LAPLACE else 1.0  # of noise of scale 1
        for t, gradients in enumerate(self.gradients(size, epsilons, curator), start=1):
            users = rng.random(train.n_users) < self.sampling_rate
            rates = self.rates(t, deviation * gradients.scale)
            step = SimilarityStep(users[learned.train.users], rates, self.regularization)
            gradients.inside(descend_noisy_similarities, model, learned, step)
        return model

    @abstractmethod
    def rates(self, t: int, deviation: Epsilons) -> Epsilons:
        """(E,) η_t. `deviation` (E,) is the standard deviation of the noise of one coordinate of the gradient."""

    def clipped(self, train: Ratings) -> LearnedRatings:
        """The ratings of `train`, each with its part of its user's bound c."""
        counts = np.maximum(train.user_counts, 1)
        parts = counts if self.noise.norm == 1 else np.sqrt(counts)
        return LearnedRatings.clipped(train, self._contribution / parts, self.noise.norm)

    @property
    def _contribution(self) -> float:
        """c in units of the gradient. The gradient shrinks as S grows."""
        return self.clip / self.initial_similarity

    def gradients(self, size: int, epsilons: Epsilons, curator: Curator) -> Iterator[Release]:
        """The release of each step's `size` sums of gradients. They cost the ε that the averages leave.

        Laplace: every step claims an equal part of ε. Gaussian: an accountant certifies all steps together, composed
        with the averages.
        """
        if self.noise is NoiseKind.LAPLACE:
            each = self.budget.similarities * epsilons / self.iterations
            return (
                laplace(
                    f"gradient {t}",
                    (size,),
                    rate=self.sampling_rate,
                    sensitivity=clipped_contributions(self._contribution, 1, self.neighbours),
                    epsilon=before_sampling(each, self.sampling_rate),
                    claimed=each,
                    curator=curator,
                    stream="gradients",
                )
                for t in range(1, self.iterations + 1)
            )
        beside = np.hypot(self.budget.global_averages, self.budget.item_averages)
        contribution, steps = self._contribution, self.iterations
        return certified_gradients(self, (size,), contribution, steps, beside, epsilons, curator)[0]
