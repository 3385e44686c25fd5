"""What the devices of Neera et al. (2020) send: claims about messages that data do not decide."""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.neera2020 import local_factorization as neera
from dpmf_cli.core.ratings import Ratings, Scale
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.local_mechanisms import BoundedLaplace
from dpmf_cli.privacy.neighbours import HIDE_IDS

METHODS = ("blp_mog_mf", "isgd_local", "pg_mf")

Values = NDArray[np.float64]

SHOWN = np.linspace(0, 1, 21)
"""Ratings on [0, 1] at which a law is evaluated."""

EXTREMES = (2.0**-53, 1 - 2.0**-53)
"""The uniforms that lead to the least and the largest message."""


def names_item() -> int:
    """How many items a message of BLP-MoG-MF names: 0 if it hides which item was rated."""
    return int(neera.MixtureFactorization(algorithm="blp_mog_mf").neighbours not in HIDE_IDS)


def slope(epsilons: Values) -> Values:
    """By how much the mean of a message moves with the rating, from end to end of the scale."""
    return BoundedLaplace().slope(epsilons)


def ends(epsilons: Values) -> Values:
    """The least and the largest message for each of some ratings."""
    of = [BoundedLaplace().decoded(SHOWN, np.full((len(SHOWN), 1), each), epsilons) for each in EXTREMES]
    return np.array(of).ravel()


def bias(epsilons: Values) -> float:
    """How far the mean of a message is from its rating, at most."""
    return float(np.abs(BoundedLaplace().expected(SHOWN, epsilons) - SHOWN[:, None]).max())


@cache
def traffic(n_items: int) -> dict[str, dict[str, Any]]:
    """By method what it sends for three ratings of the first of `n_items` items.

    One is of the first user, two are of the second. PG-MF spends its ε per user, and each user sends one report for
    the mean before any gradient.
    """
    users, items = np.array([0, 1, 1], np.int32), np.array([0, 0, 1], np.int32)
    ratings = Ratings(users, items, np.array([5, 1, 3], np.float32), 2, n_items, Scale(1, 5, 1))
    entries = (
        neera.MixtureFactorization(algorithm="blp_mog_mf"),
        neera.LocalSGD(algorithm="isgd_local"),
        neera.PrivateGradientMF.model_validate({"algorithm": "pg_mf", "neighbours": "user"}),
    )
    found = {}
    for each in entries:
        streams = Streams(0, "a few ratings", each.algorithm, 0, 0)
        curator = Curator(Ledger([1.0]), streams)
        fitted: Any = each.fit(ratings, curator.ledger.limit, streams=streams, curator=curator)
        sent = fitted.traffic
        found[each.algorithm] = {
            "messages": sent.messages,
            "ratings": len(ratings),
            "down": sent.down,
            "size": sent.up / sent.messages,
            "gradients": sent.messages / sent.users - 1,
            "down_megabytes": sent.down_per_user / 1e6,
        }
    return found | {"iterations": neera.PrivateGradientMF.model_fields["iterations"].default}
