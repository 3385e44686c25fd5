"""Claims of Neera et al. (2020) about what devices send. Data do not decide them."""

from functools import cache
from typing import Any

import numpy as np

from dpmf_cli.algorithms.neera2020.blp_mog_mf import MixtureFactorization
from dpmf_cli.algorithms.neera2020.isgd_local import LocalSGD
from dpmf_cli.algorithms.neera2020.pg_mf import PrivateGradientMF
from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.datasets.catalog import entry
from dpmf_cli.evaluation.numbers import significant
from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.printed import load
from dpmf_cli.papers.rules.base import Computed
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.local import Traffic
from dpmf_cli.privacy.local_mechanisms import BoundedLaplace
from dpmf_cli.privacy.neighbours import HIDE_IDS
from dpmf_cli.ratings import Ratings, Scale
from dpmf_cli.streams import Streams

PRINTED = load("neera2020")

EPSILONS = np.array([0.1, 1.0])
"""The ε of figure 2."""

SHOWN = np.linspace(0, 1, 21)
"""Ratings on [0, 1] at which a law is evaluated."""

EXTREMES = (2.0**-53, 1 - 2.0**-53)
"""The uniforms that lead to the least and the largest message."""


def hides_completely(_: Evidence) -> Computed:
    """Messages reveal neither which item was rated nor how: not even their mean may move with the rating."""
    algorithm = MixtureFactorization(algorithm="blp_mog_mf")
    slope = BoundedLaplace().slope(EPSILONS)
    parts = algorithm.neighbours in HIDE_IDS, *(bool(each <= 0) for each in slope)
    said = ", ".join(f"{each:.3f} at ε = {epsilon:g}" for each, epsilon in zip(slope, EPSILONS, strict=True))
    return Computed(
        parts,
        f"a message names its item; its mean moves with the rating, from end to end by {said} of the scale",
    )


def noise_of_messages(_: Evidence) -> Computed:
    """Messages stay within the scale, and their noise is no longer Laplace's and has the mean 0 of equation 6."""
    centred = BoundedLaplace().expected(SHOWN, EPSILONS) - SHOWN[:, None]
    ends = np.array(
        [BoundedLaplace().decoded(SHOWN, np.full((len(SHOWN), 1), u), EPSILONS) for u in EXTREMES]
    )
    deviation = np.sqrt(2) / EPSILONS
    mean = float(np.abs(centred).max())
    parts = (
        bool(((ends >= 0) & (ends <= 1)).all()),
        bool((deviation > 1).all()),
        mean <= float(PRINTED["tolerances"]["zero_mean"]),
    )
    return Computed(
        parts,
        f"messages lie within {ends.min():g} and {ends.max():g}; Laplace noise deviates by "
        f"{' and '.join(map(significant, deviation))}; bounded noise has a mean of up to {mean:.2f} off 0, which "
        "follows the rating",
    )


def traffic(evidence: Evidence) -> Computed:
    """Counts the messages of table 1.

    There is one message per rating and nothing back. In PG-MF, there are one gradient and the items' factors.
    """
    table, times = PRINTED["table1"], float(PRINTED["tolerances"]["traffic"])
    items = entry(evidence.data).expected.items
    ours, isgd, theirs = _sent(items)
    ratings, iterations = len(_few(items)), PrivateGradientMF.model_fields["iterations"].default
    size, down = ours.up / ours.messages, theirs.down_per_user / 1e6
    gradients = theirs.messages / theirs.users - 1  # without the one report for the mean
    parts = (
        ours.messages == isgd.messages == ratings,
        ours.down == isgd.down == 0,
        size <= times * table["blp_mog_mf"]["up_bytes"],
        gradients == iterations,
        _within(down, table["pg_mf"]["down_megabytes"], times),
    )
    return Computed(
        parts,
        f"a message a rating, of {size:g} bytes, and nothing back; PG-MF one gradient of a user in each of "
        f"{gradients:g} iterations, and {down:.3g} MB back in all",
    )


def _within(value: float, printed: float, times: float) -> bool:
    return printed / times <= value <= printed * times


@cache
def _sent(n_items: int) -> tuple[Traffic, ...]:
    """Returns what BLP-MoG-MF, ISGD, and PG-MF with ε per user send for a few ratings among `n_items` items."""
    entries: tuple[PrivateAlgorithm, ...] = (
        MixtureFactorization(algorithm="blp_mog_mf"),
        LocalSGD(algorithm="isgd_local"),
        PrivateGradientMF.model_validate({"algorithm": "pg_mf", "neighbours": "user"}),
    )
    return tuple(_fitted(each, _few(n_items)).traffic for each in entries)


def _fitted(algorithm: PrivateAlgorithm, ratings: Ratings) -> Any:
    streams = Streams(0, "a few ratings", algorithm.algorithm, 0, 0)
    curator = Curator(Ledger([1.0]), streams)
    return algorithm.fit(ratings, curator.ledger.limit, streams=streams, curator=curator)


def _few(n_items: int) -> Ratings:
    """Returns three ratings of the first items: one of the first user, two of the second."""
    users, items = np.array([0, 1, 1], np.int32), np.array([0, 0, 1], np.int32)
    return Ratings(users, items, np.array([5, 1, 3], np.float32), 2, n_items, Scale(1, 5, 1))
