"""DPSGD-PNBM, DPPS-PNBM and DPPS-MF: noisy gradient descent, and sampling from a posterior. Wang and Tang 2017."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from dpmf_cli.algorithms.shared import base
from dpmf_cli.algorithms.shared.averages import Effects, OwnMeansAlgorithm
from dpmf_cli.algorithms.shared.budget import EffectsParameters, Fractions, ItemAveragesBudget, Ridge, Size
from dpmf_cli.algorithms.shared.cost import BATCH_VISIT, CLIPPED_VISIT, LINE, Cost, Shape, effects_cost
from dpmf_cli.algorithms.shared.factorization import InitialFactors, OwnFactors, at_most, regress, start_model
from dpmf_cli.algorithms.shared.neighbourhood import CERTIFIED, PrivateNeighbourhood, error_bound
from dpmf_cli.algorithms.shared.theta import NoiseKind, certified_gradients, rates_under
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import later
from dpmf_cli.kernels import gradients as gradients_of, similarities
from dpmf_cli.kernels.factors import FactorModel
from dpmf_cli.kernels.gradients import Descent, step_noisy, sum_gradients, visits_of_all
from dpmf_cli.kernels.similarities import LearnedRatings, NeighbourhoodModel, SimilarityStep
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.accounting import before_sampling
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.posterior import LangevinSchedule, posterior_sampling
from dpmf_cli.privacy.release import Release


class LearningBudget(ItemAveragesBudget):
    """Fractions of θ: for the averages, and for all steps of learning together. Corrected only."""

    global_averages: float = Field(0.02, gt=0, lt=1)
    item_averages: float = Field(0.58, gt=0, lt=1)
    similarities: float = Field(0.40, gt=0, lt=1)


class LearnedNeighbourhood(PrivateNeighbourhood):
    """Similarities S that K noisy steps learn, starting from s_ij = s₀: as published, or `corrected`."""

    only: ClassVar[base.ByMode] = {Mode.CORRECTED: ("clip", "budget", "noise", "typical_count")}
    by_rating = True

    budget: LearningBudget = LearningBudget()
    initial_similarity: Size = Field(1.0, description="s₀")
    iterations: int = Field(5, ge=1, description="K: 1 to 20, fewer for smaller ε")
    sampling_rate: float = Field(
        1.0, gt=0, le=1, description="γ: the fraction of ratings (corrected: of users) that a step uses"
    )
    regularization: float = Field(0.005, ge=0, description="λ: 0.05 or 0.005")
    clip: Size = Field(0.3, description="c, corrected only: the largest norm of a user's gradient, at s₀ = 1")
    least_ratings: int = later(
        0, ge=0, description="users with fewer ratings are left out of learning; 21 in section 3"
    )

    @classmethod
    def choices(cls, mode: Mode) -> base.Choices:
        laws = super().choices(mode) if mode is Mode.CORRECTED else ()
        return (*laws, base.SAMPLED)

    @model_validator(mode="after")
    def _refuse_what_cannot_be_certified(self) -> Self:
        if self.mode is Mode.CORRECTED:
            self.refuse_a_delta_beyond_the_accountant(self.sampling_rate)
            self.refuse_steps_that_diverge(float(self.rates(1, np.zeros(1))[0]), "regularization")
        return self

    def learned_from(self, train: Ratings, streams: Streams) -> Ratings:
        """The ratings from whose errors the method learns: those of users with at least `least_ratings`.

        Averages and users' own predictions use all ratings. If users or the presence of a rating are protected, one
        rating decides whether a user's complete gradient counts. A clipped gradient that appears moves the sum no
        more than the change of one clipped gradient into another.
        """
        least = self.least_ratings
        return train.select(train.user_counts[train.users] >= least) if least else train

    @property
    def steps_of_learning(self) -> int:
        return self.iterations

    def corrected(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        """The model after K steps from noisy averages r̄ and S = s₀. Step t = 1 … K is:

            U_t: a sample of the users, each with probability γ
            g_u = Σ_i clip(e_ui·∂r̂_ui/∂S) for u in U_t, each of its c_u terms clipped to c/√c_u, or to c/c_u
            S ← S − η_t·(Σ_u g_u + noise_t + λS)

        The bound is c/√c_u in the L2 norm for Gaussian noise, and c/c_u in the L1 norm for Laplace noise, with c in
        units of 1/s₀. Each method sets its own η_t.

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
            gradients.inside(similarities.descend_noisy_similarities, model, learned, step)
        return model

    @abstractmethod
    def rates(self, t: int, deviation: Epsilons) -> Epsilons:
        """(E,) η_t. `deviation` (E,) is the standard deviation of the noise of one coordinate of the gradient."""

    def clipped(self, train: Ratings) -> LearnedRatings:
        """The ratings of `train`, each with its part of its user's bound c."""
        counts = np.maximum(train.user_counts, 1)
        parts = counts if self.noise.norm == 1 else np.sqrt(counts)
        return LearnedRatings.of(train, self._contribution / parts, self.noise.norm)

    @property
    def _contribution(self) -> float:
        """c in units of the gradient, which shrinks as S grows."""
        return self.clip / self.initial_similarity

    def gradients(self, size: int, epsilons: Epsilons, curator: Curator) -> Iterator[Release]:
        """The release of each step's `size` sums of gradients, which cost the ε that the averages leave.

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
                    sensitivity=sensitivity.clipped_contributions(self._contribution, 1, self.neighbours),
                    epsilon=before_sampling(each, self.sampling_rate),
                    claimed=each,
                    curator=curator,
                    stream="gradients",
                )
                for t in range(1, self.iterations + 1)
            )
        beside = np.hypot(self.budget.global_averages, self.budget.item_averages)
        of_steps = self._contribution, self.iterations, beside
        return certified_gradients(self, (size,), *of_steps, epsilons, curator)[0]


class PrivatePNBM(LearnedNeighbourhood):
    """S ← S − η·(Σ e·∂r̂/∂S + noise + λS), K times.

    Published, Laplace noise is scaled to one coordinate of the gradient of one rating. Corrected, each user's
    complete gradient is clipped, averages are noisy, and the rate is η, or less where the noise of all K steps
    together would have a standard deviation of more than `step_noise`·s₀ in a similarity:

        η_t = min(η, step_noise·s₀/(σ·√K)),   σ: the deviation of the noise of one coordinate, public
    """

    title = "DPSGD-PNBM"
    about = "DPSGD-PNBM: similarities learned by noisy gradient descent. Wang and Tang 2017, section 3, algorithm 1."
    paper = base.Paper.WANG
    revision = 2
    only: ClassVar[base.ByMode] = {
        Mode.PUBLISHED: ("floor", "upscaling"),
        Mode.CORRECTED: (*LearnedNeighbourhood.only[Mode.CORRECTED], "step_noise"),
    }

    algorithm: Literal["dpsgd_pnbm"]
    learning_rate: float = Field(0.4, gt=0, description="η: 0.1 or 0.4 in the paper")
    floor: float = Field(15.0, gt=0, description="C: 10 or 15, published only")
    step_noise: float = Field(
        0.5,
        gt=0,
        description="corrected only: the most noise of all steps together in a similarity, in units of s₀",
    )
    upscaling: float = later(
        0.0,
        ge=0,
        le=4,
        description="a, published only: the gradient of step t counts tᵃ times; section 3 does not say how it grows",
    )

    def published(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        """Algorithm 1. From averages r̄ without noise and S = s₀, for t = 1 … K, φ = r_max − r_min:

            e_t = 0.5 + (φ − 1)/(t + 1),   Δ_t = 2·e_t·φ/C
            L: a sample of the ratings, each with probability γ
            e_ui = clamp(r̂_ui − r_ui, ±e_t) for (u, i) in L,   Σ_j |s_ij| at least C
            S ← S − η·(tᵃ·(Σ_L e_ui·∂r̂_ui/∂S + Laplace(Δ_t·Kγ/ε)) + λS)

        s₀ covers the listing's rescaling of S by β: predictions from (s₀, C, η, λ) and (β·s₀, β·C, β²·η, λ/β²) are
        the same, including the noise. So η covers a fixed up-scaling of gradients, and tᵃ is an up-scaling that
        grows.

        Noise is added only where a rating of L has a gradient. Nothing is provable: Δ_t bounds one coordinate of the
        gradient of one rating; averages have no noise; and Kγ·ε/(Kγ) is only the linear approximation of
        amplification, and only for samples of ratings.
        """
        model, size = self.start(train, epsilons, curator, self.initial_similarity)
        learned = LearnedRatings.of(self.learned_from(train, streams))
        why = "a rating changes the gradients of all ratings of its user"
        for t in range(1, self.iterations + 1):
            bound, each = error_bound(train.scale, t), epsilons / self.iterations
            stated = sensitivity.published_similarity_gradients(train.scale, bound, self.floor)
            gradients = laplace(
                f"gradient {t}",
                (size,),
                rate=self.sampling_rate,
                sensitivity=sensitivity.no_bound_known(1, Neighbours.BOUNDED, why, stated),
                epsilon=each / self.sampling_rate,
                claimed=each,
                curator=curator,
            )
            sampled = streams.of_ratings(f"sample {t}", learned.train) < self.sampling_rate
            scaled = t**self.upscaling
            rates = np.full(len(epsilons), self.learning_rate * scaled)
            ridge = self.regularization / scaled
            step = SimilarityStep(sampled, rates, ridge, bound, self.floor, everywhere=False)
            gradients.inside(similarities.descend_noisy_similarities, model, learned, step)
        return model

    def rates(self, t: int, deviation: Epsilons) -> Epsilons:
        whole = np.maximum(deviation * np.sqrt(self.iterations), 1e-300)
        return np.asarray(np.minimum(self.learning_rate, self.step_noise * self.initial_similarity / whole))

    variants = base.by_mode(Neighbours.BOUNDED, published=published)
    variants |= base.by_mode(*CERTIFIED, corrected=LearnedNeighbourhood.corrected)


class PosteriorPNBM(LearnedNeighbourhood):
    """SGLD on U = ½Σe² + λ/2·‖S‖², e over at most τ ratings of each user (section 4.3):

        S ← S − (η_t/2)·s·∇U + N(0, ρη_t),   η_t = η₁·t^−ξ,   K times

    The method protects users. Published, s tempers the posterior as theorem 2 asks for. Corrected, it is noisy
    gradient descent, and no posterior is sampled: averages are noisy, users' gradients are clipped to a norm c, and
    the drift is as much of that of SGLD as an accountant certifies for its noise:

        (η_t/2)·s = √(ρη_t)/σ, s ≤ 1,   σ: the deviation of the noise of one coordinate of the gradient, public
    """

    title = "DPPS-PNBM"
    about = (
        "DPPS-PNBM: similarities sampled from their posterior, by SGLD. Wang and Tang 2017, section 4, "
        "algorithm 2."
    )
    paper = base.Paper.WANG
    revision = 2
    small: ClassVar[Mapping[str, Any]] = {"most_ratings": 4, "iterations": 5}

    algorithm: Literal["dpps_pnbm"]
    neighbours: Neighbours = Neighbours.USER
    initial_rate: float = Field(8e-6, gt=0, le=1e4, description="η₁: 8e-8, 4e-7 or 8e-6 in the paper")
    decay: float = Field(0.3, ge=0, le=1, description="ξ")
    temperature: float = Field(0.09, gt=0, le=1, description="ρ: 0.001, 0.006 or 0.09 in the paper")
    iterations: int = Field(100, ge=1, description="K; not in the paper")
    regularization: float = Field(0.02, ge=0, description="λ: 0.02 or 0.002")
    most_ratings: int = Field(200, ge=1, description="τ: the most ratings of a user that are learned from")

    @property
    def schedule(self) -> LangevinSchedule:
        return LangevinSchedule(self.initial_rate, self.decay, self.temperature, self.iterations)

    def learned_from(self, train: Ratings, streams: Streams) -> Ratings:
        train = super().learned_from(train, streams)
        return at_most(train, self.most_ratings, streams.of_ratings("ratings kept", train))

    def published(
        self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> NeighbourhoodModel:
        """Algorithm 2. From averages r̄ without noise and S = s₀, for t = 1 … K:

            L: a sample of the ratings that are learned from, each with probability γ
            ∇U = Σ_L e_ui·∂r̂_ui/∂S/γ + λS
            S ← S − (η_t/2)·s·∇U + N(0, ρη_t),   η_t = η₁·t^−ξ,   s = min(ε/4B, 1)

        with B = φ²τ, φ = r_max − r_min. ε is "x·τ" for the paper's x. Every step includes the prior, so H⁻¹ (equation
        11) is not needed, and every similarity gets noise. Nothing is provable (`privacy.posterior`), and averages
        have no noise.
        """
        model, size = self.start(train, epsilons, curator, self.initial_similarity)
        learned = LearnedRatings.of(self.learned_from(train, streams))
        chain = posterior_sampling(
            "similarities",
            (size,),
            schedule=self.schedule,
            bound=train.scale.width**2 * self.most_ratings,
            epsilon=epsilons,
            neighbours=self.neighbours,
            curator=curator,
        )
        for t, (drift, unscaled) in enumerate(chain, start=1):
            sampled = streams.of_ratings(f"sample {t}", learned.train) < self.sampling_rate
            # (η_t/2)·s·(Σ_L/γ + λS) = rate·(Σ_L + γλS), rate = (η_t/2)·s/γ; what is measured is Σ_L.
            rates = drift / self.sampling_rate
            step = SimilarityStep(sampled, rates, self.regularization * self.sampling_rate)
            noise = unscaled.in_units_of(rates)
            noise.inside(similarities.descend_noisy_similarities, model, learned, step)
        return model

    def rates(self, t: int, deviation: Epsilons) -> Epsilons:
        schedule = self.schedule
        return np.minimum(schedule.rate(t) / 2, schedule.deviation(t) / np.maximum(deviation, 1e-300))

    variants = base.by_mode(Neighbours.USER, published=published, corrected=LearnedNeighbourhood.corrected)


class GradientsBudget(Fractions):
    """Fractions of θ: for both global averages, the item averages, and the gradients."""

    global_averages: float = Field(0.02, gt=0, lt=1)
    item_averages: float = Field(0.7, gt=0, lt=1)
    gradients: float = Field(0.28, gt=0, lt=1)


class PosteriorSamplingMF(OwnMeansAlgorithm):
    """Matrix factorisation with privacy for users: published mode samples from a posterior, corrected mode descends
    noisy gradients of the items. Each of these two algorithms refuses parameters that only the other uses."""

    title = "DPPS-MF"
    about = (
        "DPPS-MF: matrix factorisation by posterior sampling. Liu, Wang and Smola 2015, as Wang and Tang 2017 "
        "run it."
    )
    paper = base.Paper.WANG
    revision = 2
    joint = base.IN_CORRECTED_MODE
    small: ClassVar[Mapping[str, Any]] = {"most_ratings": 4, "iterations": 5}
    by_rating = True
    only: ClassVar[base.ByMode] = {
        Mode.PUBLISHED: ("regularization", "initial_rate", "decay", "temperature", "most_ratings"),
        Mode.CORRECTED: (
            "learning_rate",
            "clip",
            "sampling_rate",
            "user_ridge",
            "item_ridge",
            "spread",
            "budget",
            "typical_count",
        ),
    }

    algorithm: Literal["dpps_mf"]
    neighbours: Neighbours = Neighbours.USER
    noise: Literal[NoiseKind.GAUSSIAN] = NoiseKind.GAUSSIAN
    factors: int = Field(10, ge=1, le=64, description="d: 10, 15, 20 in section 5.1")
    iterations: int = Field(50, ge=1, le=100_000, description="K; not in the paper")
    initial_factors: InitialFactors = InitialFactors()
    regularization: float = Field(0.05, ge=0, description="λ, published: 0.02, 0.05, 0.1, 0.2 in section 5.1")
    initial_rate: float = Field(
        8e-6, gt=0, description="η₁, published: 2e-9, 2e-8, 8e-7, 8e-6 in section 5.1"
    )
    decay: float = Field(0.3, ge=0, le=1, description="ξ, published: 0.3 in section 5.1")
    temperature: float = Field(
        1e-4, gt=0, le=1, description="ρ, published: 1e-4, 6e-4, 4e-3, 3e-2 in section 5.1"
    )
    most_ratings: int = Field(200, ge=1, description="τ, published, section 4.3")
    learning_rate: float = Field(0.02, gt=0, description="η, corrected")
    clip: Size = Field(1.0, description="C, corrected: the most that a user adds to a gradient, in L2 norm")
    sampling_rate: float = Field(
        1.0, gt=0, le=1, description="γ, corrected: the fraction of the users in a step"
    )
    user_ridge: Ridge = Field(
        20.0,
        description="w_P, corrected: the ridge of a user's own regression; with less, users with few ratings "
        "cannot be solved",
    )
    item_ridge: float = Field(3.0, ge=0, description="w_Q, corrected; η·w_Q is 1 at most")
    spread: float = Field(
        0.2,
        gt=0,
        description="corrected: the largest standard deviation that noise may have in a coordinate of Q",
    )
    effects: EffectsParameters = EffectsParameters(beta_m=30, beta_u=20)
    budget: GradientsBudget = GradientsBudget()

    @classmethod
    def choices(cls, mode: Mode) -> base.Choices:
        return (*super().choices(mode), base.SAMPLED)

    @model_validator(mode="after")
    def _refuse_what_cannot_be_certified(self) -> Self:
        self.refuse_a_delta_beyond_the_accountant(self.sampling_rate)
        if self.mode is Mode.CORRECTED:
            self.refuse_steps_that_diverge(self.learning_rate, "item_ridge")
        return self

    @property
    def charges_averages(self) -> bool:
        return self.mode is Mode.CORRECTED

    def published(
        self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator
    ) -> FactorModel:
        """E(P, Q) = ½Σ(r_ui − r̄_i − p_u·q_i)² + λ/2·(‖P‖² + ‖Q‖²), and for K steps, s = min(ε/4B, 1),

            (P, Q) ← (P, Q) − (η_t/2)·s·∇E + N(0, ρ·η_t),    η_t = η₁·t^−ξ,    B = (r_max − r_min)²·τ

        At most τ ratings of each user, drawn uniformly, are used in every step. Item means r̄_i are released without
        noise and are not charged for. p_u is sampled and released with Q. Nothing is provable (`privacy.posterior`).
        """
        train = at_most(train, self.most_ratings, streams.of_ratings("ratings kept", train))
        means = self.uncharged_averages(train, len(epsilons), curator, beta_m=0)
        chain = posterior_sampling(
            "factors",
            (train.n_users + train.n_items, self.factors),
            schedule=LangevinSchedule(self.initial_rate, self.decay, self.temperature, self.iterations),
            bound=train.scale.width**2 * self.most_ratings,
            epsilon=epsilons,
            neighbours=self.neighbours,
            curator=curator,
        )
        model = start_model(train, self, streams, np.zeros((train.n_users, len(epsilons))), means)
        descent, visits = Descent(model, momentum=0.0), visits_of_all(train, len(epsilons))
        for drift, noise in chain:
            of_users, of_items = noise.in_units_of(drift).split(train.n_users)
            sum_gradients(descent, visits, 0, len(train))
            of_users.inside(step_noisy, descent, "users", drift, self.regularization)
            of_items.inside(step_noisy, descent, "items", drift, self.regularization)
        return model

    def corrected(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> OwnFactors:
        """(ε, δ)-DP for users. No posterior is sampled. Only Q is learned from other users; each p_u is the user's
        own ridge regression on Q:

            x_ui = r_ui − MAvg_i − r̄_u,    MAvg noisy averages, r̄_u the user's own mean (`own_means`)
            K times, each on a sample of the users, each drawn with probability γ:
                p_u ← argmin Σ_i (x_ui − p·q_i)² + w_P‖p‖²
                Q ← Q + η(Σ_u clip_C((e_ui·p_u)_i) + N(0, (C·σ)²))/γ − η·w_Q·Q
            p_u once more

        An accountant certifies σ, together with the averages. η is lowered where the noise of all steps would add up
        to more than `spread` in a coordinate of Q. Predictions use the target user's own ratings (‡).
        """
        effects = self.own_means(train, self.released_averages(train, self.measurer(epsilons, curator)))
        shape = train.n_items, self.factors
        beside = math.hypot(self.budget.global_averages, self.budget.item_averages)
        clip, times = self.clip, self.iterations
        steps, multiplier = certified_gradients(self, shape, clip, times, beside, epsilons, curator)
        rates, chosen = self.rates(multiplier), streams.generator("samples of users")
        model = start_model(train, self, streams, effects.users, effects.items)
        for gradients in steps:
            sampled = np.flatnonzero(chosen.random(train.n_users) < self.sampling_rate)
            regress(model, train, self.user_ridge)
            sums, _ = gradients_of.clipped_item_sums(model, train, clip, sampled=sampled)
            noisy = gradients.added_to(sums)
            gradients_of.descend_items(model, noisy / self.sampling_rate, rates, self.item_ridge)
        return OwnFactors(self, model.without_users(), effects.published, train)

    def with_own_factors(self, items: FactorModel, beside: base.Arrays, own: Ratings) -> FactorModel:
        return regress(items.with_users(Effects.restored(beside, self, own).users), own, self.user_ridge)

    def rates(self, multiplier: Epsilons) -> Epsilons:
        """(E,) η, or less where the noise of all steps, √K·η·C·σ/γ, asks for it."""
        noise = math.sqrt(self.iterations) * self.clip * multiplier / self.sampling_rate
        return rates_under(noise, self.learning_rate, self.spread)

    variants = base.by_mode(Neighbours.USER, published=published, corrected=corrected)

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes, rows = self.iterations * len(groups(grid)), shape.rows * self.factors * LINE
        visit = BATCH_VISIT if self.mode is Mode.PUBLISHED else CLIPPED_VISIT
        seconds = passes * (shape.ratings * visit * self.factors + rows * 3e-10)
        return effects_cost(shape, grid) + Cost(seconds, 6 * rows * len(groups(grid)))
