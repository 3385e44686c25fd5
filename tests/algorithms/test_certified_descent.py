"""What certifies both private neighbourhood methods: public neighbours, samples of users, clipping, composition."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.neighbourhood import all_others, most_co_rated
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.privacy.accounting import mu_of_epsilon
from tests.algorithms.similarity_models import RATINGS, Array, Run, entry, fit
from tests.conftest import make_ratings


@pytest.mark.parametrize("key", ["dpsgd_pnbm", "dpps_pnbm", "private_constant_nbm"])
def test_neighbours_are_chosen_by_what_is_public_alone(key: str) -> None:
    """In corrected mode neighbours are found from who rated what if that is public. In published mode they
    always are."""
    for neighbours, mode in sorted(PRIVATE[key].variants):
        public = mode == "published" or neighbours == "bounded"
        chosen = {"neighbourhood": 3} if public else {}
        algorithm = entry(key, neighbours=neighbours, mode=mode, **chosen)
        found = fit(algorithm, RATINGS)[0].groups[0].neighbours
        assert np.array_equal(found, most_co_rated(RATINGS, 3) if public else all_others(12))


def partly_in(train: Ratings, sampled: NDArray[np.bool_]) -> Array:
    """(n,) the users of whom a sample has some ratings, but not all."""
    shares = np.bincount(train.users, sampled, train.n_users) / np.maximum(train.user_counts, 1)
    return np.asarray((shares > 0) & (shares < 1))


@pytest.mark.parametrize("key", ["dpsgd_pnbm", "dpps_pnbm"])
def test_samples_are_of_users_where_they_are_certified_and_of_ratings_as_published(
    key: str, watched: Callable[..., Run]
) -> None:
    train = make_ratings(7, n_users=800, n_items=10, density=0.5)
    more = {"sampling_rate": 0.3, "iterations": 3}
    corrected = watched(entry(key, mode="corrected", noise="laplace", **more), train, [1.0])
    for sampled in corrected.samples:
        assert not partly_in(train, sampled).any()
        assert len(np.unique(train.users[sampled])) == pytest.approx(240, abs=5 * np.sqrt(800 * 0.21))
    one, other = (np.bincount(train.users, sampled, 800) > 0 for sampled in corrected.samples[:2])
    assert np.mean(one & other) == pytest.approx(0.09, abs=0.05)
    for sampled in watched(entry(key, mode="published", **more), train, [1.0]).samples:
        assert partly_in(train, sampled).mean() > 0.4
        assert sampled.mean() == pytest.approx(0.3, abs=5 * np.sqrt(0.21 / len(train)))


@pytest.mark.parametrize(("key", "neighbours"), [("dpsgd_pnbm", "bounded"), ("dpps_pnbm", "user")])
def test_sampled_steps_and_averages_compose_to_the_budget(
    key: str, neighbours: str, watched: Callable[..., Run]
) -> None:
    """With dp_accounting only, from the multiplier and the μ of the averages in the ledger."""
    from dp_accounting import GaussianDpEvent, NeighboringRelation, PoissonSampledDpEvent
    from dp_accounting.pld import PLDAccountant

    algorithm = entry(key, mode="corrected", neighbours=neighbours, sampling_rate=0.2, iterations=5)
    ledger = watched(algorithm, RATINGS, [2.0]).ledger
    exchange = neighbours != "user"
    relation = NeighboringRelation.REPLACE_ONE if exchange else NeighboringRelation.ADD_OR_REMOVE_ONE
    accountant = PLDAccountant(relation, 1e-3)
    *averages, steps = ledger.entries
    square = sum(float(step.mu[0]) ** 2 for step in averages if step.mu is not None)
    theta = mu_of_epsilon(2.0, 1e-6) / np.sqrt(0.02**2 + 0.58**2 + 0.4**2)
    assert square == pytest.approx((0.02**2 + 0.58**2) * theta**2)
    accountant.compose(GaussianDpEvent((2 if exchange else 1) / np.sqrt(square)))
    assert steps.sampled is not None
    assert (steps.sampled.rate, steps.sampled.repetitions) == (0.2, 5)
    event = PoissonSampledDpEvent(0.2, GaussianDpEvent(float(steps.sampled.multiplier[0])))
    accountant.compose(event, 5)
    assert accountant.get_epsilon(1e-6) == pytest.approx(2.0, rel=5e-3)
    assert ledger.provable == pytest.approx([2.0], rel=1e-3)
    assert ledger.provable[0] <= 2.0


@pytest.mark.parametrize("key", ["dpsgd_pnbm", "dpps_pnbm"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_corrected_mode_clips_every_user_to_its_contribution(
    key: str, noise: str, watched: Callable[..., Run]
) -> None:
    """All of a step on the ratings of one user is that user's contribution."""
    norm = 1 if noise == "laplace" else 2
    more: dict[str, Any] = {"learning_rate": 1.0} if key == "dpsgd_pnbm" else {"initial_rate": 2.0}
    algorithm = entry(
        key,
        mode="corrected",
        neighbours="user",
        noise=noise,
        clip=0.02,
        iterations=1,
        regularization=0,
        **more,
    )
    only = RATINGS.select(RATINGS.users == int(np.argmax(RATINGS.user_counts)))
    moved = watched(algorithm, only, [np.inf]).moves(1)
    length = np.linalg.norm(moved, norm)
    assert 0.25 * 0.02 < length <= 0.02 * (1 + 1e-4)
