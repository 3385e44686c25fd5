"""Choosing post-processing parameters by their error on users' own ratings, and what that costs.

McSherry and Mironov 2009, section 5, train "the parameters for the cleaning step as well as for the kNN- and
SVD-based recommendation mechanisms" for each data set and θ separately, on RMSE, and charge nothing for it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.effects import Effects
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import exponential_choice
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams

STEP = "post-processing parameters"


@dataclass(frozen=True)
class Factors:
    """What a candidate multiplies the default shrinkage and ridge by."""

    shrinkage: float = 1.0
    ridge: float = 1.0


CANDIDATES = tuple(Factors(*pair) for pair in product((0.25, 1.0, 4.0), (1 / 3, 1.0, 3.0)))


@dataclass(frozen=True)
class Refitting:
    """Chooses, for each ε, the candidate whose predictions of some of the users' own ratings err least.

        L_c = Σ_u mean over u's validation ratings of min((r − r̂_c)², (Δr/2)²);   argmin_c L_c, or with noise

    The validation ratings are in what was released too: L_c favours weak shrinkage a little, most for rare items.

    asked    the validation ratings, each drawn by itself from the training ratings
    seen     the others: with released matrices, what predictions may use
    effects  averages, and users' own means of `seen`
    noise    on the L_c, (candidates,) for each ε; None where nothing is charged
    """

    asked: Ratings
    seen: Ratings
    effects: Effects
    noise: Release | None

    @classmethod
    def of(
        cls,
        train: Ratings,
        share: float,
        own_means: Callable[[Ratings], Effects],
        *,
        fraction: float,
        neighbours: Neighbours,
        mode: Mode,
        epsilons: Epsilons,
        streams: Streams,
        curator: Curator,
    ) -> "Refitting":
        """Published: L_c is used as it is, and nothing is charged, so that nothing can be proved. Corrected: the
        exponential mechanism with `fraction` of the total ε.
        """
        validation = streams.generator("validation ratings").random(len(train)) < share
        asked, seen = train.select(validation), train.select(~validation)
        moves = sensitivity.clipped_error_of_users(train.scale, neighbours)
        if mode is Mode.PUBLISHED:
            curator.ledger.charge_nothing(STEP, moves)
            return cls(asked, seen, own_means(seen), None)
        noise = exponential_choice(
            STEP,
            len(CANDIDATES),
            sensitivity=moves,
            epsilon=fraction * epsilons,
            curator=curator,
        )
        return cls(asked, seen, own_means(seen), noise)

    def choose(self, lane: int, predict: Callable[[Factors], NDArray[np.float64]]) -> Factors:
        """The candidate for one ε; `predict` gives (n,) predictions of `asked`."""
        losses = np.array([self._loss(predict(candidate)) for candidate in CANDIDATES])
        if self.noise is not None:
            losses = self.noise.added_to(losses)[:, lane]
        return CANDIDATES[int(np.argmin(losses))]

    def _loss(self, predicted: NDArray[np.float64]) -> float:
        asked = self.asked
        errors = np.minimum((asked.values - predicted) ** 2, (asked.scale.width / 2) ** 2)
        counts = np.maximum(asked.user_counts, 1)
        return float((np.bincount(asked.users, errors, asked.n_users) / counts).sum())
