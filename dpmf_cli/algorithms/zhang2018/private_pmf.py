"""DP-PMF, and personalised privacy around any method that hides presence. Zhang, Liu, Chen and Zhong 2018."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal, Self, get_args

import numpy as np
from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from dpmf_cli.algorithms.beyond.comparisons import PrivateBatchGradientDescent
from dpmf_cli.algorithms.friedman2016 import matrix_factorization as friedman
from dpmf_cli.algorithms.shared import base as methods, sample_fits
from dpmf_cli.algorithms.shared.base import IN_PUBLISHED_MODE, ByMode, Model, Paper, PrivateAlgorithm
from dpmf_cli.algorithms.shared.budget import Size
from dpmf_cli.algorithms.shared.cost import LINE, PERTURBED_ENTRY, Cost, Shape, gram_entries
from dpmf_cli.algorithms.shared.factorization import GradientDescentPMF, Kept, KnownModel, sampled_model
from dpmf_cli.algorithms.shared.private_factorization import Side
from dpmf_cli.algorithms.shared.sample_fits import AroundABase, Draw, ModelColumns, RecordCosts
from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import StrictModel, tagged
from dpmf_cli.kernels.als import RowProblem, by_item, by_user, solve_perturbed
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.gradients import Descent, step_noisy, sum_gradients
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.accounting import LEAST_SHARE
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons, Ledger
from dpmf_cli.privacy.mechanisms import laplace, redrawn_k_norm, repeated_k_norm
from dpmf_cli.privacy.neighbours import RECORDS_APART, Mode, Neighbours
from dpmf_cli.privacy.protection import Protection
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import moved_by_presence


class ObjectivePerturbation(StrictModel):
    """The parameters of objective perturbation, and the ε that it spends besides noise.

    Bounded: the noise η hides only the vectors Σ r̃·u (`sensitivity.least_squares_right_hand_side`). Unbounded: w is
    so large that the change of the determinant costs no more than its share of ε (`sensitivity.hessian_unbounded`).
    The rest of ε scales the noise (`sensitivity.ridge_objective_unbounded`). The same w, about 1/(share·ε), serves
    both.
    """

    least_ridge: float = Field(
        1.0,
        ge=1e-3,
        description="corrected: the least w; with less, float64 solves rows of 10⁵ ratings too inexactly",
    )
    passes: int = Field(1, ge=1, description="corrected: how often the items are solved")
    average_share: float = Field(
        0.05, ge=LEAST_SHARE, le=0.9, description="corrected: fraction of ε for the global average"
    )
    jacobian_share: float = Field(
        0.1,
        ge=LEAST_SHARE,
        le=0.9,
        description="corrected: fraction of a solution's ε for its determinant; sets w",
    )
    residual_clamp: Size = Field(2.0, description="corrected: B, the clamp of ratings less their average")
    item_norm: Size = Field(
        1.5,
        description="corrected: R, the largest norm of an item's row; above the limit its square overflows float32",
    )
    public_constant: float = Field(0.9, ge=0, le=1, description="corrected: the constant in a unit row")

    def public_rows(self, rows: int, dimension: int, rng: np.random.Generator) -> Doubles:
        """(rows, dimension) unit rows that do not depend on any rating."""
        if dimension == 1:
            return np.ones((rows, 1))
        direction = rng.standard_normal((rows, dimension - 1))
        direction *= np.sqrt(1 - self.public_constant**2) / np.linalg.norm(direction, axis=1, keepdims=True)
        return np.column_stack([np.full(rows, self.public_constant), direction])

    def norms(self, side: Side) -> tuple[float, float]:
        """The largest ‖row‖₂ of this side, and of the other side."""
        return (self.item_norm, 1.0) if side == "item" else (1.0, self.item_norm)

    def ridge(self, other: float, each: Epsilons) -> Doubles:
        """(E,) w of solutions that each spend ε `each` (E,), if the other side's rows have norms up to `other`."""
        hessian = sensitivity.hessian_unbounded(other)
        return np.maximum(
            self.least_ridge, sensitivity.ridge_for_jacobian(hessian, self.jacobian_share * each)
        )


def private_global_average(
    train: Ratings, epsilon: Doubles, neighbours: Neighbours, *, curator: Curator
) -> Doubles:
    """(E,) the mean rating, measured with ε `epsilon` and clamped to the scale.

    The sum is of r − middle of the scale. Bounded, the number of ratings is public; unbounded, it gets half of ε.
    """
    scale, unbounded, known = train.scale, neighbours is Neighbours.UNBOUNDED, float(len(train))
    moves = sensitivity.centred_rating_sums_unbounded(scale) if unbounded else sensitivity.rating_sums(scale)
    spent = epsilon / 2 if unbounded else epsilon
    centred = train.values.sum(dtype=np.float64) - len(train) * scale.middle
    total = laplace("global sum", (), sensitivity=moves, epsilon=spent, curator=curator).added_to(centred)
    count = np.full(len(epsilon), known)
    if unbounded:
        moves = sensitivity.rating_counts_unbounded()
        noise = laplace("global count", (), sensitivity=moves, epsilon=spent, curator=curator)
        count = noise.added_to(np.asarray(known))
    average = scale.middle + total / np.maximum(count, 1)
    return np.asarray(np.clip(average, scale.minimum, scale.maximum))


class PrivatePMF(GradientDescentPMF, ObjectivePerturbation, PrivateAlgorithm):
    """PMF under privacy, as published and as the paper's theorem 4 means it: two algorithms that share only d, each
    of which refuses parameters that only the other uses."""

    title = "DP-PMF"
    about = "DP-PMF: PMF by objective perturbation. Zhang, Liu, Chen and Zhong 2018, section 4, algorithm 2."
    paper = Paper.ZHANG
    averaged = False
    joint = IN_PUBLISHED_MODE
    new_users = False
    shares_lanes = IN_PUBLISHED_MODE
    revision = 2
    small: ClassVar[Mapping[str, Any]] = {"epochs": 3, "noisy_epochs": 3, "learning_rate": 0.1}
    """The published learning rate is meant for 10⁵ ratings, and diverges on a few."""
    only: ClassVar[ByMode] = {
        Mode.PUBLISHED: (
            *(name for name in GradientDescentPMF.model_fields if name != "factors"),
            "noisy_epochs",
        ),
        Mode.CORRECTED: tuple(ObjectivePerturbation.model_fields),
    }

    algorithm: Literal["dp_pmf"]
    noisy_epochs: int = Field(50, ge=1, description="k₂, published; the paper does not give it")

    def published(self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator) -> KnownModel:
        """Algorithm 2, by batches of b ratings:

            U, V = PMF without noise, k₁ epochs                                                lines 1 to 13
            for k₂ epochs:  v_j ← v_j − γ/b·(−Σ_i (r_ij − u_i·v_j)·u_i + η_j + λ·v_j)          from line 14
                            ‖η_j‖ ~ Gamma(d, r_max/ε), drawn anew every time                   line 17

        Lines 14 and 17 undo what theorem 4 proves: V starts from the data, and the noise of many draws averages out.
        U is fitted on the ratings too, and |r − u·v| ≤ r_max does not hold, nor ‖u‖ ≤ 1 without `unit_users`. Nothing
        is provable. Only V is released: a prediction u_i·v_j uses the user's own u_i, fitted to that user's clean
        ratings (‡). Centred, r less the middle of the scale stands for r, also in r_max.
        """
        kept = np.ones((len(train), len(epsilons)), np.bool_)
        return self.fit_samples(train, kept, epsilons, streams=streams, curator=curator)

    def fit_samples(
        self, train: Ratings, kept: Kept, epsilons: Epsilons, *, streams: Streams, curator: Curator
    ) -> KnownModel:
        why = "Zhang et al. 2018, algorithm 2: noise redrawn, U and V fitted before"
        stated = sensitivity.published_objective(train.scale, self.neighbours, self.centre(train.scale))
        moves = sensitivity.no_bound_known(2, self.neighbours, why, stated)
        shape = train.n_items, self.factors
        gradients = redrawn_k_norm("objective", shape, sensitivity=moves, epsilon=epsilons, curator=curator)
        model, schedule = self.descend(train, kept, streams)
        descent, (of_row, of_rating) = Descent(model, momentum=0.0), self.ridges
        for epoch in range(self.noisy_epochs):
            for batch in schedule.stretches:
                sum_gradients(
                    descent, schedule.visits, batch.first, batch.last, of_users=False, ridge=of_rating
                )
                noise = gradients(f"{epoch} {batch.place}")
                noise.inside(step_noisy, descent, "items", batch.rates, of_row)
        return sampled_model(train, kept, model)

    def corrected(
        self, train: Ratings, epsilons: Epsilons, streams: Streams, curator: Curator
    ) -> FactorModel:
        """Objective perturbation as theorem 4 means it: η is drawn once, and U is not taken from the ratings.

            m = the average rating, noisy;    r̃_ij = clamp(r_ij − m, ±B)
            u_i = a public unit row of a constant and a random direction, so that it may be treated as constant
            v_j = argmin over ‖v‖ ≤ R of ½Σ_i (r̃_ij − u_i·v)² + ½w‖v‖² + η_j·v,   η_j drawn once
            `passes` − 1 times:  u_i likewise given the released V, over ‖u‖ ≤ 1;  then v_j again
            r̂_ij = m + u_i·v_j

        Each solution gets an equal part of ε, gives every row noise, rated or not, and is solved in float64 and put
        on a grid of 2⁻¹⁰·R. Bounded, the release is the noisy vector Σ r̃·u, on the grid of its noise. Unbounded, the
        release is the solution, on its own grid (`privacy.grid`).
        """
        share = self.average_share
        average = private_global_average(train, share * epsilons, self.neighbours, curator=curator)
        each = (1 - share) * epsilons / (2 * self.passes - 1)
        item_noises = self.noises("item", train, self.passes, each, curator)
        user_noises = self.noises("user", train, self.passes - 1, each, curator)
        items, users = self.problem("item", each), self.problem("user", each)
        ratings_by_user, ratings_by_item = by_user(train), by_item(train)
        public = self.public_rows(train.n_users, self.factors, streams.start("public user factors"))
        nothing, grid = np.zeros((train.n_items, self.factors)), len(epsilons)
        averages = np.broadcast_to(average, (train.n_items, grid))
        model = factor_model(public, nothing, np.zeros((train.n_users, grid)), averages)
        of_user, of_item = self.norms("user")
        next(item_noises).inside(solve_perturbed, model, ratings_by_item, items, of_item)
        for of_users, of_items in zip(user_noises, item_noises, strict=True):
            of_users.inside(solve_perturbed, model, ratings_by_user, users, of_user)
            of_items.inside(solve_perturbed, model, ratings_by_item, items, of_item)
        return model

    def problem(self, side: Side, each: Epsilons) -> RowProblem:
        """The problem to solve for each row of a side, with ε `each` (E,)."""
        own, other = self.norms(side)
        ridge, hidden = self.ridge(other, each), self.neighbours is Neighbours.UNBOUNDED
        return RowProblem(ridge, self.residual_clamp, per_rating=False, ball=own, private_raters=hidden)

    def noises(
        self, side: Side, train: Ratings, count: int, each: Epsilons, curator: Curator
    ) -> Iterator[Release]:
        """η for `count` solutions of one side, each with ε `each` (E,), of which, unbounded, the determinant gets a
        part."""
        if count == 0:
            return iter(())
        (own, other), clamp = self.norms(side), self.residual_clamp
        step, rows = f"objective, {side} factors", train.n_users if side == "user" else train.n_items
        draw = partial(repeated_k_norm, step, (rows, self.factors), repetitions=count, curator=curator)
        if self.neighbours is Neighbours.BOUNDED:
            moves = sensitivity.least_squares_right_hand_side(other, clamp, train.scale)
            return draw(sensitivity=moves, epsilon=count * each)
        hessian = sensitivity.hessian_unbounded(other)
        determinants = curator.ledger.spend(
            f"determinants, {side} factors",
            "change of variables" + (f" × {count}" if count > 1 else ""),
            hessian,
            count * sensitivity.jacobian_epsilon(hessian, self.ridge(other, each)),
            repetitions=count,
        )
        moves = sensitivity.ridge_objective_unbounded(own, other, clamp)
        drawn = draw(sensitivity=moves, epsilon=count * each - determinants.claimed, rounded=False)
        return (release.paid_for_volume(determinants) for release in drawn)

    variants = methods.by_mode(
        Neighbours.BOUNDED, Neighbours.UNBOUNDED, published=published, corrected=corrected
    )

    def cost(self, shape: Shape, grid: int) -> Cost:
        d, parts = self.factors, len(groups(grid))
        if self.mode is Mode.PUBLISHED:
            descent = self.descent_cost(shape, grid, self.epochs + self.noisy_epochs)
            steps = self.noisy_epochs * self.batches_of(shape.ratings)
            return Cost(descent.seconds + steps * shape.items * d * 2e-8, descent.bytes)
        work = (shape.ratings + 20 * d * shape.rows) * gram_entries(d) * PERTURBED_ENTRY
        seconds = (2 * self.passes - 1) * parts * work + 1e-7 * shape.ratings
        return Cost(seconds, shape.rows * (d + 1) * LINE * parts + 40.0 * shape.ratings)


PrivateBase = (
    PrivatePMF
    | friedman.InputPerturbationSGD
    | friedman.PrivateALS
    | friedman.PrivateSGD
    | PrivateBatchGradientDescent
    | friedman.PrivateGlobalEffects
)
"""The algorithms that can be personalised. They hide the presence of a rating by pure ε-DP in all predictions. The
one exception is published `dp_pmf`, which is joint; the paper personalises it.

`pknn` and `mm_*` are joint too and are not offered: a user's predictions contain that user's own clean ratings, so a
record's ε would hold only against everybody else. `psgd` has no corrected mode for unbounded neighbours.
"""


class Personalized(AroundABase, PrivateAlgorithm):
    """PDP by sampling. Zhang et al. 2018, definition 5, algorithm 1, theorem 6; Jorgensen et al. 2015.

        every record (u, i) that asks for ε_ui enters the sample with probability
            1 where ε_ui ≥ t,   (e^{ε_ui} − 1)/(e^t − 1) below;
        the base algorithm is fitted on the sample with ε = t, for neighbours that differ in the presence of a rating

    Record (u, i) is then hidden by min(ε_ui, t) (definition 3). An ε of the grid is a *ceiling*: ε_ui ← min(ε_ui, ε),
    so that no record spends more than ε. One curve thus leads from uniform privacy (ε = ε_c, where nothing is sampled
    away) to the specification itself (ε ≥ ε_l; the paper's figures are at ε_l). The ledger lists the base's steps,
    which add up to t ≤ ε. `RecordCosts` says how much the records do spend; these are exact statistics of the
    ratings, not to be released.

    For bounded neighbours (remark 7), the same algorithm runs. Because another value is one record less and one more,
    the value of record (u, i) is hidden by 2·min(ε_ui, t): the ledger claims twice the base's ε, and the ceiling is
    on 2ε_ui. For a record with ε_ui < t, a smaller ε is provable (`replaced_epsilon`). A base that hides only values
    would not do: it would show which records are sampled, and sampling would gain nothing.
    """

    title = "Personalised"
    about = (
        "Personalised differential privacy around any algorithm that hides the presence of a rating, and "
        "its noise-free run."
    )
    paper = Paper.ZHANG
    variants = methods.in_both_modes(Neighbours.BOUNDED, Neighbours.UNBOUNDED)
    averaged = False
    why_no_noise_free_run = (
        "a personalised algorithm has no noise-free run, because its records set their own ε; remove `twins`, and "
        "add `sampled` to `baselines`"
    )
    revision = 2
    new_users = False
    joint = methods.Where(lambda entry: entry.base.joint, "where its base is")
    small: ClassVar[Mapping[str, Any]] = {
        "epsilon_conservative": 0.5,
        "epsilon_moderate": 1,
        "epsilon_liberal": 2,
        "threshold": 1,
    }

    algorithm: Literal["personalized"]
    neighbours: Neighbours = Neighbours.UNBOUNDED
    base: Annotated[PrivateBase, Field(discriminator="algorithm"), BeforeValidator(tagged)] = Field(
        description="the unbounded algorithm that is fitted on the sample; it inherits mode and effects"
    )

    @classmethod
    def choices(cls, mode: Mode) -> methods.Choices:
        bases = [each for each in get_args(PrivateBase) if (Neighbours.UNBOUNDED, mode) in each.variants]
        return (tuple({"base": {"algorithm": each.key(), **each.small_in(mode)}} for each in bases),)

    @model_validator(mode="before")
    @classmethod
    def _hand_down(cls, data: Any) -> Any:
        if not isinstance(data, dict) or not isinstance(base := tagged(data.get("base")), dict):
            return data
        given = {key: data[key] for key in ("mode", "effects") if key in data}
        return {**data, "base": {"neighbours": Neighbours.UNBOUNDED, **given, **base}}

    @model_validator(mode="after")
    def _provable_where_corrected(self) -> Self:
        if (self.base.neighbours, self.base.mode) != (Neighbours.UNBOUNDED, self.mode):
            what = (
                "`base` must hide presence (neighbours: unbounded), in the same mode as the entry around it"
            )
            raise PydanticCustomError("base", what)
        if self.mode is Mode.CORRECTED and not self.threshold_is_public:
            what = (
                "the {threshold} of a column depends on which ratings there are: give a number as `threshold`"
            )
            raise PydanticCustomError("threshold", what, {"threshold": self.threshold})
        return self

    @property
    def default_name(self) -> str:
        return f"{self.base.title}, personalised"

    @property
    def source(self) -> str:
        """The paper, which personalises its own DP-PMF; around another paper's method, both papers."""
        own = self.base.paper is self.paper
        return self.paper if own else f"{self.paper} around {self.base.paper}"

    @property
    def protects(self) -> Protection:
        unbounded = self.neighbours is Neighbours.UNBOUNDED
        return Protection.PERSONALISED if unbounded else Protection.PERSONALISED_VALUE

    @property
    def changes(self) -> int:
        return RECORDS_APART[self.neighbours]

    def accounted(self, draw: Draw, model: ModelColumns, account: Ledger, ledger: Ledger) -> Model:
        columns = model.columns
        for step in account.entries:
            provable = self.changes * step.provable[columns]
            ledger.spend(
                step.step,
                f"{step.mechanism}, on a sample",
                moved_by_presence(step.sensitivity, self.neighbours),
                self.changes * step.claimed[columns],
                provable if self.threshold_is_public else np.full_like(provable, np.inf),
            )
        kept, records = np.zeros_like(draw.thresholds), np.zeros((3, len(draw.thresholds)))
        if len(draw.kept):
            of_a_record = sample_fits.sampled_epsilon if self.changes == 1 else sample_fits.replaced_epsilon
            spent = of_a_record(draw.probability, ledger.provable / self.changes)
            records = np.quantile(spent, (0, 0.5, 1), axis=0, method="nearest")
            kept = draw.kept.mean(axis=0)
        costs = (tuple(column.tolist()) for column in (draw.thresholds, kept, *records))
        return replace(model, record_costs=RecordCosts(*costs))

    def cost(self, shape: Shape, grid: int) -> Cost:
        together = grid if self.base.shares_lanes else 1
        base, times = self.base.cost(shape, together), grid // together
        sampling = 1e-7 * shape.ratings * grid
        return Cost(times * base.seconds + sampling, times * base.bytes + 40.0 * shape.ratings * grid)
