"""Released item averages, and user means that only the user sees.

McSherry and Mironov 2009, sections 4.2 and 4.3.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.averages import (
    Effects,
    ItemAverages,
    Part,
    TypicalCount,
    UserWeights,
    bounded_item_averages,
    measure_item_averages,
    moves_of,
)
from dpmf_cli.algorithms.shared.base import (
    UNUSED_WITHOUT_NOISE,
    Choices,
    PrivateAlgorithm,
    in_both_modes,
)
from dpmf_cli.algorithms.shared.budget import Delta, Fractions
from dpmf_cli.algorithms.shared.cost import Cost, Shape, effects_cost
from dpmf_cli.algorithms.shared.effects import EffectsParameters, Shrinkage, stabilised
from dpmf_cli.algorithms.shared.theta import ACCOUNTING, Accounting, Measurer, NoiseKind
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.covariance_sensitivity import residual_range
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import without_noise
from dpmf_cli.privacy.neighbours import Mode, Neighbours


class OwnMeansAlgorithm(PrivateAlgorithm):
    """Predicts MAvg_i + r̄_u, and what a subclass adds. `budget` has the fractions of θ that its measurements get.

    *Joint* differential privacy: predictions for a user use that user's own mean without noise.
    """

    variants = in_both_modes(Neighbours.UNBOUNDED, Neighbours.USER)
    joint = True

    neighbours: Neighbours = Neighbours.UNBOUNDED
    effects: EffectsParameters = EffectsParameters(beta_m=15, beta_u=20)
    budget: Fractions
    noise: NoiseKind = Field(
        NoiseKind.GAUSSIAN, description="laplace: pure ε; gaussian: (ε, δ), and far less noise"
    )
    delta: Delta = Field(1e-6, description="the δ of Gaussian noise")
    typical_count: TypicalCount = 100.0

    def parameters(self) -> dict[str, Any]:
        """The parameters, without δ if no step has one."""
        found = super().parameters()
        if not self.spends_delta:
            del found["delta"]
        return found

    @property
    def spends_delta(self) -> float:
        return self.delta if self.noise is NoiseKind.GAUSSIAN and self.charges_averages else 0.0

    @property
    def charges_averages(self) -> bool:
        """Whether item averages have noise and are paid for. Otherwise the method claims ε with δ = 0."""
        return True

    @classmethod
    def choices(cls, mode: Mode) -> Choices:
        return (tuple({"noise": kind.value} for kind in NoiseKind),)

    @property
    def ignored(self) -> frozenset[str]:
        return UNUSED_WITHOUT_NOISE

    @property
    def reserved(self) -> float:
        """The fraction of the total ε that is not spent on θ."""
        return 0.0

    @property
    def accounting(self) -> Accounting:
        """The accounting of θ under this entry's noise and mode."""
        return ACCOUNTING[self.noise, self.mode](self.budget.fractions, self.delta, self.reserved)

    def rating_weights(self, counts: NDArray[Any]) -> NDArray[np.float64]:
        """(n,) 1/‖e_u‖ in the norm of the noise, from numbers of ratings (n,); 1 for a user without ratings."""
        counts = np.maximum(counts, 1).astype(np.float64)
        return 1 / (counts if self.noise.norm == 1 else np.sqrt(counts))

    def epsilon_of(self, theta: float) -> float:
        return self.accounting.epsilon_of(theta) if self.charges_averages else theta

    def theta_of(self, epsilon: float) -> float:
        return self.accounting.theta_of(epsilon) if self.charges_averages else epsilon

    def measurer(self, epsilons: Epsilons, curator: Curator, **pieces: int) -> Measurer:
        """The source of noise. Both global averages have a sum and a count each, and item averages have sums and
        counts; `pieces` are the numbers of the other measurements."""
        return Measurer(self.accounting, {Part.OVERALL: 4, Part.ITEMS: 2, **pieces}, epsilons, curator)

    def widest(self, scale: Scale) -> float:
        """The true α: the width of the interval of item-centred ratings and their average."""
        return residual_range(scale)

    def released_averages(self, train: Ratings, measurer: Measurer) -> ItemAverages:
        """Measures MAvg. Its counts are in typical raters.

        If neighbours differ in a user, with all ratings, a rating of user u weighs 1/‖e_u‖ in sums by item, and 1/c_u
        in a sum over all items (section 4.5). β_m is then scaled by the weight of a typical user's rating.
        """
        unit, weights = 1.0, None
        if self.neighbours is Neighbours.USER:
            unit = float(self.rating_weights(np.array([self.typical_count]))[0])
            counts = train.user_counts
            weights = UserWeights(self.rating_weights(counts), 1 / np.maximum(counts, 1))
        averages = measure_item_averages(
            train,
            measurer.noise,
            measurer.noise,
            moves_of(self.neighbours, self.mode, train.scale, self.noise.norm),
            shrinkage=replace(self.effects.of_items, beta=self.effects.beta_m * unit),
            weights=weights,
        )
        return replace(averages, counts=averages.counts / unit)

    def uncharged_averages(
        self, train: Ratings, grid: int, curator: Curator, beta_m: float
    ) -> NDArray[np.float64]:
        """(n_items, E) r̄_i without noise, the same for all E = `grid` ε. No ε can then be proved for the fit."""
        unknown = sensitivity.no_bound_known(1, self.neighbours, "item averages without noise")
        as_they_are = without_noise("item averages", sensitivity=unknown, grid=grid, curator=curator)

        return bounded_item_averages(
            train,
            lambda part, step, shape, moves: as_they_are(shape),
            sensitivity.rating_sums(train.scale),
            shrinkage=Shrinkage(beta_m),
        )[1]

    def own_means(self, train: Ratings, averages: Effects) -> Effects:
        """Adds r̄_u = (Σ_i x_ui + β_p·G)/(c_u + β_p) to the averages; x_ui = r_ui − MAvg_i and G are within ±α/2.

        The users' part is not released. `train` may be other ratings than those of the averages.
        """
        limit = self.widest(train.scale) / 2
        sums = np.empty((train.n_users, averages.items.shape[1]))
        for lane in range(sums.shape[1]):
            centred = np.clip(train.values - averages.items[train.items, lane], -limit, limit)
            sums[:, lane] = np.bincount(train.users, centred, train.n_users)
        counts, centre = train.user_counts[:, None].astype(np.float64), averages.residual
        assert centre is not None
        users = stabilised(sums, counts, self.effects.beta_u, np.clip(centre, -limit, limit))
        return Effects(averages.items, users, averages.overall, averages.residual)

    def cost(self, shape: Shape, grid: int) -> Cost:
        return effects_cost(shape, grid)
