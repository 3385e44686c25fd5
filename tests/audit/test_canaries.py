"""Canaries in one run: leaks are guessed, and private canaries are not guessed better than their ε allows."""

import numpy as np
import pytest

from dpmf_cli.audit import bounds
from dpmf_cli.audit.canaries import GUESSED, one_run
from dpmf_cli.audit.distinguish import LowerBound
from dpmf_cli.errors import DpmfError
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.ratings import Ratings, Scale, with_ratings
from tests.audit.planted import DELTA, Fit, Numbers, Toy

ITEMS, USERS = 300, 60
KINDS = (Neighbours.BOUNDED, Neighbours.UNBOUNDED, Neighbours.USER)


def data(items: int = ITEMS) -> Ratings:
    """A few ratings of every item, as in real data: some like it and some do not."""
    rng = np.random.default_rng(1)
    users, rated = np.nonzero(rng.random((USERS, items)) < 0.05)
    none = np.zeros(0, np.int32)
    empty = Ratings(none, none, none.astype(np.float32), USERS, items, Scale(1, 5, 1))
    return with_ratings(empty, users, rated, rng.integers(1, 6, len(users)).astype(np.float64))


class CleanAverages(Fit):
    """The steps are charged nothing, and items' averages are released without noise."""

    def items(self, average: Numbers, counts: Numbers) -> Numbers:
        sums = np.bincount(self.train.items, self.train.values - self.train.scale.middle, self.train.n_items)
        return (sums / np.maximum(self.train.item_counts, 1))[:, None]

    def users(self, average: Numbers) -> Numbers:
        return np.zeros((self.train.n_users, len(self.epsilons)))


class Joint(Toy):
    """The toy as a joint method: the guesser sees predictions for other users."""

    joint = True


def of(fit: type[Fit], neighbours: Neighbours, epsilon: float = 1.0, run: int = 0) -> LowerBound:
    return one_run(Toy(fits=fit, neighbours=neighbours), data(), epsilon, run=run)


@pytest.mark.parametrize(("toy", "neighbours"), [*((Toy, each) for each in KINDS), (Joint, KINDS[0])])
def test_a_leak_is_guessed(toy: type[Toy], neighbours: Neighbours) -> None:
    found = one_run(toy(fits=CleanAverages, neighbours=neighbours), data(), 1.0)
    assert 2 < found.epsilon <= found.ceiling


@pytest.mark.parametrize("neighbours", KINDS)
@pytest.mark.parametrize("epsilon", [0.3, 3.0])
def test_what_is_private_is_not_above_its_epsilon(neighbours: Neighbours, epsilon: float) -> None:
    """In 20 runs with other coins and other noise, at 95 %: at most once or twice."""
    bounds_of_runs = np.array([of(Fit, neighbours, epsilon, run).epsilon for run in range(20)])
    assert (bounds_of_runs > epsilon).sum() <= 2


def test_with_little_noise_something_is_guessed() -> None:
    """Shows that the test before has power: at a large ε canaries are guessed."""
    assert of(Fit, Neighbours.BOUNDED, 1000.0).epsilon > 1


def test_a_part_is_guessed_and_the_ceiling_is_all_of_it() -> None:
    found = of(Fit, Neighbours.BOUNDED)
    guesses = round(GUESSED * ITEMS)
    assert found.statistic.endswith(f"of {guesses} guesses right, of {ITEMS} canaries in one run")
    assert found.ceiling == bounds.ceiling_of_guesses(guesses, ITEMS, 0.0, 0.95)
    gaussian = one_run(Toy(neighbours=Neighbours.BOUNDED, gaussian=True), data(), 1.0)
    assert gaussian.ceiling == bounds.ceiling_of_guesses(guesses, ITEMS, DELTA, 0.95)


def test_a_run_is_the_same_again() -> None:
    first, again, other = (of(Fit, Neighbours.UNBOUNDED, 30.0, run) for run in (0, 0, 1))
    assert (
        (first.statistic, first.epsilon)
        == (again.statistic, again.epsilon)
        != (other.statistic, other.epsilon)
    )


@pytest.mark.parametrize("neighbours", KINDS)
def test_data_of_hardly_any_items(neighbours: Neighbours) -> None:
    """So few guesses show nothing. One item leaves nothing to guess."""
    for items in (2, 3):
        assert one_run(Toy(neighbours=neighbours), data(items), 1.0).epsilon == 0
    with pytest.raises(DpmfError, match="canaries need two items or more"):
        one_run(Toy(neighbours=neighbours), data(1), 1.0)
