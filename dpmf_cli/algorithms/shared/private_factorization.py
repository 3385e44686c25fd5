"""The base of the private factorisations of Friedman et al. 2016: averages first, then factors of the residuals."""

from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
from pydantic import Field

from dpmf_cli.algorithms.shared import cost as costs, factorization
from dpmf_cli.algorithms.shared.averages import Effects, averages_of
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.budget import FactorizationBudget
from dpmf_cli.algorithms.shared.cost import Cost, Shape
from dpmf_cli.algorithms.shared.factorization import InitialFactors
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.core.strict_model import later
from dpmf_cli.kernels.als import RowProblem, by_item, by_user, solve_perturbed
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.kernels.releasing import project_side
from dpmf_cli.kernels.sgd import Visits
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import repeated_k_norm
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity

Side = Literal["user", "item"]


class PrivateFactorization(PrivateAlgorithm):
    """Private averages, and factors of the residuals clamped to [−B, B]. Section 4.1 and table 3."""

    budget: FactorizationBudget = FactorizationBudget(
        global_averages=0.02, item_averages=0.14, user_averages=0.14, factorization=0.70
    )
    factors: int = Field(5, ge=1, le=256, description="d, table 3")
    regularization: float = Field(0.045, ge=0, le=1e6, description="λ, table 3")
    initial_factors: InitialFactors = InitialFactors()
    preprocessing: bool = Field(
        True, description="false: factorise the raw ratings, with all of ε (figure 3a)"
    )

    def bound(self, scale: Scale) -> float:
        """B, to which residuals are clamped. Without preprocessing it is the largest rating, which clamps nothing."""
        largest = max(abs(scale.minimum), abs(scale.maximum))
        return self.effects.residual_clamp if self.preprocessing else largest

    def measure_effects(self, train: Ratings, epsilons: Epsilons, curator: Curator) -> Effects:
        """The averages that are subtracted before factorisation; all are 0 without preprocessing."""
        if not self.preprocessing:
            grid = len(epsilons)
            return Effects(np.zeros((train.n_items, grid)), np.zeros((train.n_users, grid)), np.zeros(grid))
        return averages_of(self, train, self.budget.for_effects(epsilons), curator)

    def for_factors(self, epsilons: Epsilons) -> Epsilons:
        """(E,) the ε for the factors, which the averages leave."""
        return (self.budget.factorization if self.preprocessing else 1.0) * epsilons

    def start(self, train: Ratings, effects: Effects, streams: Streams) -> FactorModel:
        """Start factors and the effects. If presence is public, rows without ratings start at 0. If it is private,
        nothing may depend on who has ratings."""
        users, items = factorization.initial_factors(train, self.initial_factors, self.factors, streams)
        if self.neighbours is Neighbours.BOUNDED:
            users[train.user_counts == 0] = 0
            items[train.item_counts == 0] = 0
        return factor_model(users, items, effects.users, effects.items)


SOLVABLE = "above the limit rounding may make a system unsolvable, for some data sets and not for others"


class NormBoundedFactorization(PrivateFactorization):
    """A factorisation that keeps its rows within L2 norms. Section 5.2."""

    user_norm: float = Field(0.4, ge=1e-6, le=100, description=f"p_max, section 5.2; {SOLVABLE}")
    item_norm: float = Field(0.5, ge=1e-6, le=100, description=f"q_max, section 5.2; {SOLVABLE}")

    def norms(self, side: Side) -> tuple[float, float]:
        """The norm bounds of this side and of the other side."""
        users, items = self.user_norm, self.item_norm
        return (users, items) if side == "user" else (items, users)

    def start_within_norms(self, train: Ratings, effects: Effects, streams: Streams) -> FactorModel:
        """`start`, with all rows projected to their norm bounds."""
        model = self.start(train, effects, streams)
        project_side(model, "users", self.user_norm)
        project_side(model, "items", self.item_norm)
        return model


class TwoSidedFactorization(NormBoundedFactorization):
    """A factorisation whose user rows and item rows get noise separately. The paper gives each half of ε, and names
    other splits (section 5.2)."""

    user_share: float = later(
        0.5,
        gt=0,
        lt=1,
        description="fraction of the factorisation's ε for the users' rows P; the items' rows Q get the rest. With "
        "PSGD, unbounded only",
    )

    def side_noises(
        self,
        side: Side,
        train: Ratings,
        times: int,
        moves: Sensitivity,
        epsilons: Epsilons,
        curator: Curator,
    ) -> Iterator[Release]:
        """K-norm noise for the rows of one side, so many times, each with an equal part of the side's ε."""
        share = self.user_share if side == "user" else 1 - self.user_share
        return repeated_k_norm(
            f"{side} factors",
            (train.n_users if side == "user" else train.n_items, self.factors),
            repetitions=times,
            sensitivity=moves,
            epsilon=share * self.for_factors(epsilons),
            curator=curator,
        )


def in_order(train: Ratings, kind: Literal["user_major", "shuffled"], streams: Streams) -> Visits:
    """The training ratings in the order in which SGD visits them, which is drawn once."""
    rng = streams.generator("order of visits")
    if kind == "shuffled":
        order = factorization.visiting_order(train, kind, rng)
        return Visits(train.users[order], train.items[order], train.values[order])
    items, values = train.items.copy(), train.values.copy()
    for ratings, places in factorization.shuffled_blocks(train, rng):
        items[ratings], values[ratings] = train.items[ratings][places], train.values[ratings][places]
    return Visits(train.users, items, values)


class PrivateLeastSquares(TwoSidedFactorization):
    """Repeats k times: every user's ridge regression on the items with noise of ε/(2k), ‖p_u‖ ≤ p_max; then every
    item's on the users. The 2 comes from `user_share`, a half by default."""

    regularization: float = Field(
        0.045,
        ge=1e-6,
        description="λ, table 3; the noise is scaled by 1/λ. Below the limit, errors of solving a row in float64 are "
        "larger than noise hides",
    )
    iterations: int = Field(5, ge=1, description="k, section 5.2")

    def problem(self, side: Side, scale: Scale) -> RowProblem:
        """The regression that is solved for each row of a side."""
        return RowProblem(self.regularization, self.bound(scale))

    def moves(self, side: Side, scale: Scale) -> Sensitivity:
        """How far the numbers of one side move that get noise."""
        moves: Sensitivity = self.variant(self, side, scale)
        return moves

    def row_step(self, side: Side, train: Ratings) -> tuple[Any, ...]:
        """What `solve_perturbed` needs besides the model: the ratings by row, the regression, the norm bound."""
        ratings = by_user(train) if side == "user" else by_item(train)
        return ratings, self.problem(side, train.scale), self.norms(side)[0]

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> FactorModel:
        effects = self.measure_effects(train, epsilons, curator)
        sides: tuple[Side, Side] = ("user", "item")
        noises = [
            self.side_noises(side, train, self.iterations, self.moves(side, train.scale), epsilons, curator)
            for side in sides
        ]
        steps = [self.row_step(side, train) for side in sides]
        model = self.start_within_norms(train, effects, streams)
        for releases in zip(*noises, strict=True):
            for release, arguments in zip(releases, steps, strict=True):
                release.inside(solve_perturbed, model, *arguments)
        return model

    def cost(self, shape: Shape, grid: int) -> Cost:
        passes, d = self.iterations * len(groups(grid)), self.factors
        solved = (
            passes * (2 * shape.ratings + costs.ROW_IN_RATINGS * shape.rows) * costs.gram_entries(d) * 7.5e-10
        )
        seconds = solved + 3e-8 * shape.ratings
        whole = costs.factors_cost(shape, grid, d, seconds=seconds, held=8.0 * shape.ratings)
        far = tuple(costs.fetched(side, d, passes * shape.ratings) for side in (shape.items, shape.users))
        return whole + costs.noise_on_rows(shape, d, self.iterations) + Cost(0.0, 0.0, far)
