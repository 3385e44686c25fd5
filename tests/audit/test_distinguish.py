"""The black box: what many fits tell about ε, alone and along the moves that a replay has recorded."""

from dataclasses import replace

import numpy as np
import pytest

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.audit import bounds
from dpmf_cli.audit.distinguish import LowerBound, distinguish
from dpmf_cli.audit.job import Job, Settings, audit
from dpmf_cli.audit.judge import replay
from dpmf_cli.audit.pairs import Pair, tiny_pairs
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import LaneNoise, Law, unit_laplace
from dpmf_cli.report.tables.ledgers import audited_cell
from tests.audit.planted import DELTA, Fit, Numbers, Toy, fit_with, own_noise

TRIALS = 400
EPSILON = 1.5


class AllForUsers(Fit):
    """The full ε is for the users' offsets: nothing else is released."""

    def model(self) -> EffectsModel:
        average = np.full(len(self.epsilons), self.train.scale.middle)
        return EffectsModel(np.tile(average, (self.train.n_items, 1)), self.users(average))

    def users(self, average: Numbers) -> Numbers:
        return self.released("user sums", self.user_sums(average), self.moves(self.scale_width), 1.0) / 8


def half(shape: tuple[int, ...], rng: np.random.Generator) -> Numbers:
    """The noise has half the scale that is declared. A replay relies on the declaration."""
    return unit_laplace(shape, rng) / 2


def antithetic(shape: tuple[int, ...], rng: np.random.Generator) -> Numbers:
    """The last users have the negated noise of the first ones, so sums of two users are clean."""
    unit = unit_laplace(shape, rng)
    unit[len(unit) - len(unit) // 2 :] = -unit[: len(unit) // 2]
    return unit


def with_law(law: Law) -> type[Fit]:
    def noise(fit: Fit, shape: tuple[int, ...], scale: Numbers) -> LaneNoise:
        return LaneNoise(law(shape, fit.curator.noise("user sums")), scale, unit_laplace)

    return fit_with(AllForUsers, release=own_noise(noise))


class Forgotten(AllForUsers):
    """The clean sums are used."""

    def users(self, average: Numbers) -> Numbers:
        super().users(average)
        return self.user_sums(average) / 8


class SometimesNothing(AllForUsers):
    """From data without a large rating no average can be made. A number that is NaN reveals that."""

    def users(self, average: Numbers) -> Numbers:
        large = self.ratings.values > self.train.scale.middle
        return np.asarray(super().users(average) * (large.sum() / large.sum()))


class SometimesCrashes(AllForUsers):
    """A crash reveals the same."""

    def users(self, average: Numbers) -> Numbers:
        if not (self.ratings.values > self.train.scale.middle).any():
            raise ZeroDivisionError
        return super().users(average)


def one_rating() -> Pair:
    """One rating, which is the least on one side and the largest on the other."""
    every = tiny_pairs(Neighbours.BOUNDED, 20)
    return next(pair for pair in every if pair.name.startswith("nothing else"))


def bound_of(
    fit: type[Fit],
    *,
    epsilon: float = EPSILON,
    trials: int = TRIALS,
    directed: bool = True,
    gaussian: bool = False,
    allowed: float = np.inf,
) -> LowerBound:
    algorithm = Toy(fits=fit, neighbours=Neighbours.BOUNDED, gaussian=gaussian)
    pair = one_rating()
    directions = replay(algorithm, pair, epsilon).directions if directed else None
    return distinguish(algorithm, pair, epsilon, trials, allowed=allowed, directions=directions)


def ceiling(trials: int, delta: float = 0.0, confidence: float = 0.95) -> float:
    return bounds.epsilon_of_event(bounds.always_against_never(trials, trials), delta, confidence)


@pytest.mark.parametrize("directed", [True, False])
@pytest.mark.parametrize("fit", [Fit, AllForUsers])
def test_what_has_no_mistake_stays_below(fit: type[Fit], directed: bool) -> None:
    found = bound_of(fit, directed=directed)
    assert found.epsilon <= EPSILON
    assert fit is Fit or found.epsilon > EPSILON / 3


def test_half_the_noise_is_found() -> None:
    """Found by what is released along the pair's move, and by a prediction. A replay finds nothing."""
    algorithm = Toy(fits=with_law(half), neighbours=Neighbours.BOUNDED)
    assert replay(algorithm, one_rating(), EPSILON).findings == []
    assert bound_of(with_law(half)).epsilon > EPSILON
    blind = bound_of(with_law(half), directed=False)
    assert blind.epsilon > EPSILON
    assert blind.statistic.startswith("prediction of user")


def test_noise_that_other_numbers_give_away_is_found() -> None:
    """One number moves. The sum with another, which does not move and has the negated noise, tells for certain."""
    found = bound_of(with_law(antithetic), trials=100)
    assert found.epsilon == found.ceiling > EPSILON


def test_a_finding_must_show_again() -> None:
    """Fresh fits, twice as many, count the same event at a higher confidence: only a true finding remains."""
    first, same, again = (
        bound_of(AllForUsers, trials=100, directed=False, allowed=allowed)
        for allowed in (EPSILON, EPSILON, -1)
    )
    assert first == pytest.approx(same, nan_ok=True)
    assert (first.trials, first.confidence, np.isnan(first.gaussian)) == (100, 0.95, True)
    assert first.ceiling == ceiling(50)
    assert (again.trials, again.confidence) == (200, bounds.SURE)
    assert again.ceiling == ceiling(200, confidence=bounds.SURE)
    assert again.epsilon <= EPSILON
    assert bound_of(Forgotten, trials=100, directed=False, allowed=EPSILON).epsilon == again.ceiling


class ToldLater(AllForUsers):
    """The first half of the fits, which chooses the event, shows nothing; every other fit tells the sums."""

    def users(self, average: Numbers) -> Numbers:
        chooses = self.streams.run <= TRIALS
        return np.zeros((self.train.n_users, 1)) if chooses else 9 + self.user_sums(average)


def test_the_event_is_chosen_from_fits_that_are_not_counted() -> None:
    assert bound_of(ToldLater, directed=False).epsilon == 0
    assert bound_of(ToldLater, directed=False, trials=2 * TRIALS + 2).epsilon > EPSILON


@pytest.mark.parametrize("fit", [Forgotten, SometimesNothing, SometimesCrashes])
def test_what_tells_for_certain_reaches_the_ceiling(fit: type[Fit]) -> None:
    found = bound_of(fit, trials=101, directed=False)
    assert found.epsilon == found.ceiling == ceiling(51)


def test_gaussian_noise_has_a_second_bound() -> None:
    found = bound_of(Fit, epsilon=2.0, trials=100, gaussian=True)
    assert found.ceiling == ceiling(50, DELTA)
    most = bounds.always_against_never(50, 50)
    assert found.gaussian_ceiling == bounds.gaussian_epsilon_of_event(most, DELTA, 0.95)
    assert 0 <= found.epsilon <= 2.0
    assert 0 <= found.gaussian <= 2.0


@pytest.mark.parametrize(("seconds", "trials"), [(0.0, None), (1e-6, None), (1e6, TRIALS)])
def test_a_budget_of_seconds_buys_trials(seconds: float, trials: int | None) -> None:
    """The table says how many, and that a bound of 0 says nothing above the ceiling."""
    audited = audit(Job(Toy(neighbours=Neighbours.BOUNDED), Settings(pairs=2, seconds=seconds)))
    assert (audited.bound and audited.bound.trials) == trials
    cell = audited_cell(
        replace(audited, bound=replace(audited.bound, epsilon=0.0)) if audited.bound else audited
    )
    assert cell == ("–" if trials is None else f"[0, nothing above 3.98, {trials}]")
