"""Fits for audits: an algorithm on one of two neighbours, for one ε, with or without a witness."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.model import Arrays
from dpmf_cli.audit.pairs import Pair
from dpmf_cli.errors import DpmfError
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.keyed import uniforms_of_cells
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.release import Witness
from dpmf_cli.ratings import Ratings, UserMajor
from dpmf_cli.releasing.models import published
from dpmf_cli.streams import Streams, named_generator


@dataclass(frozen=True)
class CoupledStreams(Streams):
    """Streams whose secret draw for a rating depends only on its (user, item) pair, not on the other ratings."""

    def of_ratings(self, purpose: str, pairs: UserMajor, *sets: int) -> NDArray[np.float64]:
        cells = pairs.users.astype(np.int64) * pairs.n_items + pairs.items
        keys = self.generator(purpose).integers(2**63, size=sets, dtype=np.uint64)
        drawn = [uniforms_of_cells(np.uint64(key), cells) for key in np.ravel(keys)]
        return np.array(drawn).reshape(*sets, len(pairs))


def fitted(
    algorithm: PrivateAlgorithm,
    ratings: Ratings,
    epsilon: float,
    *,
    run: int = 0,
    witness: Witness | None = None,
) -> tuple[Any, Ledger]:
    """Returns the model for one ε, and the ledger of its fit. Each `run` has noise of its own."""
    streams = CoupledStreams(0, "audit", algorithm.algorithm, 0, run)
    ledger = Ledger([epsilon], algorithm.mode, algorithm.spends_delta)
    with np.errstate(all="ignore"):
        model = algorithm.fit(
            ratings, ledger.limit, streams=streams, curator=Curator(ledger, streams, witness)
        )
    return model, ledger


def predictions(model: Any, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.floating]:
    """Returns (n,) predictions of a model for one ε."""
    with np.errstate(all="ignore"):
        return np.asarray(model.predict(users, items))[:, 0]


def published_arrays(model: Any) -> Arrays:
    """Returns the arrays that a release of the model would hold; none if it cannot be released."""
    try:
        with np.errstate(all="ignore"):
            return published(model)[1]
    except DpmfError:
        return {}


def covered(
    algorithm: PrivateAlgorithm, pair: Pair, most: int = 20_000
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Returns the predictions that privacy covers, as users (n,) and items (n,).

    If there are more than `most`, it returns a part: all items of the user who differs, and about `most` others at
    random. For joint methods, privacy covers the predictions for the other users. For methods that hide a user with
    all ratings, it covers those for the users who are on both sides.
    """
    n_users, n_items = pair.here.n_users, pair.here.n_items
    if n_users * n_items <= most:
        users, items = np.divmod(np.arange(n_users * n_items), n_items)
    else:
        rng = named_generator("audit", "predictions", n_users, n_items)
        users = np.append(np.full(n_items, pair.changed), rng.integers(n_users, size=most))
        items = np.append(np.arange(n_items), rng.integers(n_items, size=most))
    if algorithm.joint or algorithm.neighbours is Neighbours.USER:
        stays = users != pair.changed
        users, items = users[stays], items[stays]
    return users.astype(np.int32), items.astype(np.int32)
