"""Fits a method once on all ratings, under a seed that nobody knows."""

from threadpoolctl import threadpool_limits

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.model import Model
from dpmf_cli.errors import DpmfError
from dpmf_cli.privacy.accounting import LEAST_EPSILON, MOST_EPSILON
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import SECRET, Streams, UnaccountedNoiseError, drawn_seed


def fit_once(entry: PrivateAlgorithm, ratings: Ratings, epsilon: float) -> tuple[Model, Ledger]:
    """Returns the model for one ε, and the ledger of its fit.

    The seed is drawn by the operating system, is held only in memory, and is forgotten when this returns.

    Raises DpmfError for an ε outside of 1e-6 to 1e6, and for an algorithm that draws noise past its curator.
    """
    if not LEAST_EPSILON <= epsilon <= MOST_EPSILON:
        raise DpmfError(f"epsilon is {epsilon:g}; give one from {LEAST_EPSILON:g} to {MOST_EPSILON:g}")
    streams = Streams(drawn_seed(SECRET), "", entry.algorithm, 0, 0)
    ledger = Ledger([epsilon], entry.mode, entry.spends_delta)
    try:
        with threadpool_limits(limits=1):
            model = entry.fit(ratings, ledger.limit, streams=streams, curator=Curator(ledger, streams))
    except UnaccountedNoiseError as error:
        raise DpmfError(f"{entry.name}: {error}") from None
    return model, ledger
