"""One run: a lower bound on ε from a single fit with many canaries, for methods that are too slow to repeat.

Steinke, Nasr and Jagielski 2023, "Privacy auditing with one (1) training run". Every canary is a record that a coin
puts in or leaves out. Where neighbours differ in a value, the coin chooses between the ends of the scale. The audit
sees the predictions that privacy covers, and guesses the coins of the canaries of which it is surest. The number of
right guesses bounds ε (`bounds.epsilon_of_guesses`).
"""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.audit import bounds
from dpmf_cli.audit.distinguish import LowerBound
from dpmf_cli.audit.fits import fitted, predictions
from dpmf_cli.errors import DpmfError
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.ratings import Ratings, with_ratings
from dpmf_cli.streams import named_generator

OBSERVERS = 20
"""The number of users without canaries whose predictions are used if privacy does not cover a canary's own user."""

GUESSED = 0.2
"""The fraction of the canaries that is guessed. Half of the guesses are "in", for those that most seem to be in."""


def one_run(
    algorithm: PrivateAlgorithm, ratings: Ratings, epsilon: float, *, confidence: float = 0.95, run: int = 0
) -> LowerBound:
    """Returns the lower bound that one fit gives, with one canary at every item. Each `run` has coins of its own.

    A canary's user has no other rating of its item. Where neighbours differ in a user, each canary is a user of its
    own. Raises DpmfError if the ratings have no room for two canaries.
    """
    rng = named_generator("audit", "canaries", run)
    scale = ratings.scale
    items = np.arange(ratings.n_items, dtype=np.int32)
    sums = np.bincount(ratings.items, ratings.values, ratings.n_items)
    averages = (sums + scale.middle) / (ratings.item_counts + 1)
    whole_users = algorithm.neighbours is Neighbours.USER
    if whole_users:
        users = (ratings.n_users + items).astype(np.int32)
        more = ratings.n_users + ratings.n_items
        ratings = Ratings(ratings.users, ratings.items, ratings.values, more, ratings.n_items, scale)
    else:
        users = _users_without(ratings, rng)
        items, users = items[users >= 0], users[users >= 0]  # an item that all users have rated has no canary
    n_items, averages = len(items), averages[items]
    others = np.setdiff1d(np.arange(ratings.n_users), users)[:OBSERVERS].astype(np.int32)
    if n_items < 2 or not len(others):
        raise DpmfError("canaries need two items or more, and users who have no canary")
    coins = rng.random(n_items) < 0.5
    high = averages < scale.middle
    values = np.where(high, scale.maximum, scale.minimum)
    if algorithm.neighbours in (Neighbours.BOUNDED, Neighbours.LOCAL):
        added = np.where(coins, scale.maximum, scale.minimum)
        data, sign = with_ratings(ratings, users, items, added), np.ones(n_items)
    else:
        data = with_ratings(ratings, users[coins], items[coins], values[coins])
        sign = np.where(high, 1.0, -1.0)
    model, _ = fitted(algorithm, data, epsilon, run=run)
    seen = np.zeros(n_items)
    if algorithm.joint or whole_users:
        for user in others:
            seen += predictions(model, np.full(n_items, user, np.int32), items)
        seen /= len(others)
    else:
        seen += predictions(model, users, items)
    score = sign * np.nan_to_num(seen - averages)
    each = min(max(1, round(GUESSED * n_items / 2)), n_items // 2)
    order = np.argsort(score, kind="stable")
    correct = int(coins[order[n_items - each :]].sum() + (~coins[order[:each]]).sum())
    delta = algorithm.spends_delta
    return LowerBound(
        f"{correct} of {2 * each} guesses right, of {n_items} canaries in one run",
        bounds.epsilon_of_guesses(correct, 2 * each, n_items, delta, confidence),
        bounds.ceiling_of_guesses(2 * each, n_items, delta, confidence),
        1,
        confidence,
    )


def _users_without(ratings: Ratings, rng: np.random.Generator) -> NDArray[np.int32]:
    """Returns (n_items,) a user who has not rated the item, for each item; −1 if there is none.

    The first users are left out, since they observe.
    """
    first = min(OBSERVERS, ratings.n_users // 2)
    rated = set(zip(ratings.users.tolist(), ratings.items.tolist(), strict=True))
    users = np.zeros(ratings.n_items, np.int32)
    for item in range(ratings.n_items):
        free = [u for u in range(first, ratings.n_users) if (u, item) not in rated]
        users[item] = rng.choice(free) if free else -1
    return users
