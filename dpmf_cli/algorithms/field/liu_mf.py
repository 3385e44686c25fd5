"""Langevin dynamics rating by rating, as the authors' own code runs it. Liu, Wang and Smola 2015."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from dpmf_cli.algorithms.shared.base import Paper, PrivateAlgorithm, Variants
from dpmf_cli.algorithms.shared.cost import LINE, Cost, Shape
from dpmf_cli.algorithms.shared.factorization import InitialFactors, at_most, initial_factors
from dpmf_cli.core.compiled.lane_groups import groups
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.kernels.factors import FactorModel, Side, factor_model
from dpmf_cli.kernels.langevin import Round, langevin_round, visits_between
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.posterior import LangevinSchedule, posterior_sampling

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

    title: ClassVar[str] = "SGLD"
    paper: ClassVar[Paper] = Paper.LIU
    variants: ClassVar[Variants] = {(Neighbours.USER, Mode.PUBLISHED): None}
    averaged: ClassVar[bool] = False
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
        train = at_most(train, self.most_ratings, streams.of_ratings("ratings kept", train))
        middle, largest = train.scale.middle, max(abs(train.scale.minimum), abs(train.scale.maximum))
        roots, count, grid = visits_between(train), max(len(train), 1), len(epsilons)
        chain = posterior_sampling(
            "factors",
            (len(roots), self.factors + 1),
            schedule=LangevinSchedule(
                self.initial_rate / count, self.decay, self.temperature, self.iterations
            ),
            bound=largest**2 * self.most_ratings,
            epsilon=epsilons,
            neighbours=self.neighbours,
            curator=curator,
        )
        centred = replace(train, values=train.values - np.float32(middle))
        factors = initial_factors(train, self.initial_factors, self.factors, streams)
        model = factor_model(*factors, np.zeros((train.n_users, grid)), np.zeros((train.n_items, grid)))
        of_errors, of_rows = np.ones(grid), {side: np.full((self.factors + 1, grid), 100.0) for side in SIDES}
        counts: dict[Side, NDArray[np.int64]] = {"users": train.user_counts, "items": train.item_counts}
        for step in chain:
            power, decays = 2 * step.drift * count, {}  # n·η·s
            for side in SIDES:
                # (rows, d + 1, E) η·s·(n/n_row)·λ; 1 at most, because a row changes sign beyond
                visits = np.maximum(counts[side], 1)[:, None, None]
                decays[side] = np.minimum(power * of_rows[side] / visits, 1.0)
            step.noise.inside(langevin_round, model, centred, roots, Round(power * of_errors, decays))
            of_errors, of_rows = self.learned(centred, model)
        for group in model.groups:
            group.table("items")[:, -1] += np.float32(middle)
        return model

    def learned(self, train: Ratings, model: FactorModel) -> tuple[Epsilons, dict[Side, Epsilons]]:
        """Returns the means of the posteriors of λ, given all rows: (a + n/2)/(b + Σx²/2) for n numbers x.

        They are λ for each ε: of errors (E,), and by side of the coordinates of rows (d + 1, E), with the bias last.
        """

        def posterior(numbers: NDArray[np.floating]) -> NDArray[np.float64]:
            squares = np.square(numbers, dtype=np.float64).sum(axis=0)
            return np.asarray((self.shape + len(numbers) / 2) / (self.rate + squares / 2))

        of_rows = {}
        for side in SIDES:
            of_rows[side] = posterior(np.concatenate([group.table(side) for group in model.groups], axis=2))
        return posterior(train.values[:, None] - model.predict(train.users, train.items)), of_rows

    def cost(self, shape: Shape, grid: int) -> Cost:
        ratings, row = min(shape.ratings, self.most_ratings * shape.users), self.factors + 1
        passes, rows = self.iterations * len(groups(grid)), shape.rows * row * LINE
        drawn = (2 * ratings + shape.rows) * float(row)
        seconds = passes * ratings * row * VISIT + self.iterations * drawn * 1e-8
        return Cost(seconds + 1e-7 * shape.ratings, 4 * rows * len(groups(grid)) + 16 * drawn + 64 * ratings)
