"""Matrix factorisation without noise whose rank, λ and biases are chosen on the training ratings."""

from dataclasses import dataclass
from itertools import islice, product

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.averages_baseline import EffectsModel
from dpmf_cli.algorithms.shared.effects import EffectsParameters
from dpmf_cli.algorithms.shared.factorization import InitialFactors, initial_factors
from dpmf_cli.algorithms.shared.tuned_averages import both_averages, tuned_for_both
from dpmf_cli.algorithms.shared.tuning import inner_folds
from dpmf_cli.kernels.als import RowProblem, by_item, by_user, solve_rows
from dpmf_cli.kernels.factors import FactorModel, factor_model
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams

FACTORS = (5, 10, 20)
"""The values tried for d."""

RIDGES = np.array([0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5])
"""(L,) the values tried for λ, with every d. All are fitted side by side in one pass."""

STARTS = {
    True: InitialFactors(distribution="normal", scale=0.1),
    False: InitialFactors(distribution="uniform", scale=1.0),
}
"""The distribution of the start factors with biases (True) and without (False)."""


@dataclass(frozen=True)
class FactorsOrAverages:
    """Predicts from factors if the user and the item have training ratings, and from averages otherwise.

    known_users (n_users,), known_items (n_items,) bool
    """

    factors: FactorModel
    averages: EffectsModel
    known_users: NDArray[np.bool_]
    known_items: NDArray[np.bool_]

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.floating]:
        known = (self.known_users[users] & self.known_items[items])[:, None]
        return np.where(known, self.factors.predict(users, items), self.averages.predict(users, items))


def tuned_factorization(train: Ratings, iterations: int, streams: Streams) -> FactorsOrAverages:
    """Fits r̂_ui = IAvg(i) + UAvg(u) + p_u·q_i, or r̂_ui = p_u·q_i, by ALS-WR (Zhou et al. 2008).

    β_m and β_u are those of the best averages. Then the use of biases, d and λ are chosen together, on the first
    inner fold.
    """
    effects = tuned_for_both(train, EffectsParameters())
    least, chosen = np.inf, (True, FACTORS[0], RIDGES[-1:])
    for fitted, held_out in islice(inner_folds(train), 1):
        for biased, factors in product(STARTS, FACTORS):
            model = _factorised(fitted, effects, biased, factors, RIDGES, iterations, streams)
            left = held_out.values[:, None] - model.predict(held_out.users, held_out.items)
            errors = np.square(left, dtype=np.float64).sum(axis=0)
            best = int(np.argmin(errors))
            if errors[best] < least:
                least, chosen = errors[best], (biased, factors, RIDGES[best : best + 1])
    return _factorised(train, effects, *chosen, iterations, streams)


def _factorised(
    train: Ratings,
    parameters: EffectsParameters,
    biased: bool,
    factors: int,
    ridges: NDArray[np.float64],
    iterations: int,
    streams: Streams,
) -> FactorsOrAverages:
    """Fits one model for each λ of `ridges` (L,)."""
    items, users = (np.repeat(each, len(ridges), axis=1) for each in both_averages(train, parameters))
    averages = EffectsModel(items, users)
    start = initial_factors(train, STARTS[biased], factors, streams)
    model = factor_model(*start, *((users, items) if biased else (0 * users, 0 * items)))
    problem = RowProblem(ridges, bound=np.inf)
    ratings_by_user, ratings_by_item = by_user(train), by_item(train)
    for _ in range(iterations):
        solve_rows(model, ratings_by_user, problem)
        solve_rows(model, ratings_by_item, problem)
    return FactorsOrAverages(model, averages, train.user_counts > 0, train.item_counts > 0)
