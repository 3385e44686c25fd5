"""Methods of the local model and the input of an aggregator, for their tests."""

from typing import Any

import numpy as np

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.local import PerturbedRatings, perturb_ratings
from tests.conftest import make_ratings

RATINGS = make_ratings(3)
STREAMS = Streams(1, "data", "test", 0, 0)


def entry(**keys: Any) -> Any:
    if keys["algorithm"] == "local_means" and keys.get("mechanism") in ("oue", "piecewise", "duchi"):
        keys["debias"] = False
    return PRIVATE[keys["algorithm"]].model_validate(keys)


def received(algorithm: Any, epsilons: list[float]) -> PerturbedRatings:
    curator, device = Curator(Ledger(epsilons), STREAMS), algorithm.device(RATINGS.scale)
    return perturb_ratings(RATINGS, device, np.array(epsilons), debias=algorithm.debias, curator=curator)


def started(algorithm: Any) -> tuple[np.ndarray, np.ndarray]:
    law = algorithm.initial_factors
    users = law.draw(RATINGS.n_users, algorithm.factors, STREAMS.start("initial user factors"))
    return users, law.draw(RATINGS.n_items, algorithm.factors, STREAMS.start("initial item factors"))
