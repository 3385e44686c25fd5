"""Chooses post-processing parameters by their error on users' own ratings, and charges for the choice.

McSherry and Mironov 2009, section 5, train "the parameters for the cleaning step as well as for the kNN- and
SVD-based recommendation mechanisms" for each data set and θ separately, on RMSE, and charge nothing for it.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.effects import Effects
from dpmf_cli.privacy import sensitivity
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import exponential_choice, without_noise
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams

STEP = "post-processing parameters"


@dataclass(frozen=True)
class Multipliers:
    """The factors by which a candidate multiplies the configured shrinkage and ridge."""

    shrinkage: float = 1.0
    ridge: float = 1.0


AS_CONFIGURED = Multipliers()

CANDIDATES = tuple(Multipliers(*pair) for pair in product((0.25, 1.0, 4.0), (1 / 3, 1.0, 3.0)))


class Charge(ABC):
    """The cost in ε of a choice among the candidates."""

    @property
    @abstractmethod
    def reserved(self) -> float:
        """The fraction of the total ε that the choice spends."""

    @abstractmethod
    def losses(self, moves: Sensitivity, epsilons: Epsilons, curator: Curator) -> Release:
        """The release of the candidates' losses. The candidate with the least loss is chosen."""


class Uncharged(Charge):
    """Published: losses are used without noise, and nothing is charged. So no ε can be proved."""

    @property
    def reserved(self) -> float:
        return 0.0

    def losses(self, moves: Sensitivity, epsilons: Epsilons, curator: Curator) -> Release:
        as_they_are = without_noise(STEP, sensitivity=moves, grid=len(epsilons), curator=curator)
        return as_they_are((len(CANDIDATES),))


@dataclass(frozen=True)
class ByExponentialMechanism(Charge):
    """Corrected: the exponential mechanism, with `fraction` of the total ε."""

    fraction: float

    @property
    def reserved(self) -> float:
        return self.fraction

    def losses(self, moves: Sensitivity, epsilons: Epsilons, curator: Curator) -> Release:
        return exponential_choice(
            STEP, len(CANDIDATES), sensitivity=moves, epsilon=self.fraction * epsilons, curator=curator
        )


@dataclass(frozen=True)
class Refitting:
    """Chooses, for each ε, the candidate with the least error on some of the users' own ratings.

        L_c = Σ_u mean over u's validation ratings of min((r − r̂_c)², (Δr/2)²);   argmin_c of the released L_c

    The released matrices include the validation ratings. So L_c favours weak shrinkage a little, most for rare items.

    asked    the validation ratings, each drawn independently from the training ratings
    seen     the other training ratings. Predictions may use them and the released matrices
    effects  averages, and users' own means of `seen`
    losses   the release of the L_c, (candidates,) for each ε
    """

    asked: Ratings
    seen: Ratings
    effects: Effects
    losses: Release

    @classmethod
    def of(
        cls,
        train: Ratings,
        share: float,
        own_means: Callable[[Ratings], Effects],
        charge: Charge,
        *,
        neighbours: Neighbours,
        epsilons: Epsilons,
        streams: Streams,
        curator: Curator,
    ) -> "Refitting":
        """Sets each rating aside for validation with probability `share`. `own_means` gives the effects of the
        others."""
        validation = streams.of_ratings("validation ratings", train) < share
        asked, seen = train.select(validation), train.select(~validation)
        moves = sensitivity.clipped_error_of_users(train.scale, neighbours)
        return cls(asked, seen, own_means(seen), charge.losses(moves, epsilons, curator))

    def choose(self, lane: int, predict: Callable[[Multipliers], NDArray[np.floating]]) -> Multipliers:
        """The chosen candidate for one ε; `predict` gives (n,) predictions of `asked`."""
        measured = np.array([self._loss(predict(candidate)) for candidate in CANDIDATES])
        released = self.losses.at(lane).added_to(measured)[:, 0]
        return CANDIDATES[int(np.argmin(released))]

    def _loss(self, predicted: NDArray[np.floating]) -> float:
        asked = self.asked
        errors = np.minimum((asked.values - predicted) ** 2, (asked.scale.width / 2) ** 2)
        counts = np.maximum(asked.user_counts, 1)
        return float((np.bincount(asked.users, errors, asked.n_users) / counts).sum())
