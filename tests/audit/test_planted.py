"""Planted mistakes: the toy algorithm with one mistake at a time, each found by the tier that should find it."""

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import dp_accounting
import numpy as np
import pytest

from dpmf_cli.algorithms.shared import theta
from dpmf_cli.algorithms.shared.averages import Effects, EffectsModel
from dpmf_cli.algorithms.shared.factorization import OwnFactors
from dpmf_cli.algorithms.wang2017 import descent_and_sampling
from dpmf_cli.audit.distinguish import low_bits
from dpmf_cli.audit.entries import registered
from dpmf_cli.audit.job import Job, Settings, _of_all_pairs, audit
from dpmf_cli.audit.judge import Finding, Flaw, replay
from dpmf_cli.audit.laws import Watch
from dpmf_cli.audit.pairs import hovering_pair, tiny_pairs
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.similarities import LearnedRatings
from dpmf_cli.privacy import accounting, mechanisms
from dpmf_cli.privacy.accounting import SampledSteps, epsilon_of_mu, mu_of_epsilon, noise_multipliers
from dpmf_cli.privacy.grid import FINEST, on_grid
from dpmf_cli.privacy.mechanisms import exponential_choice
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import LaneNoise, unit_laplace
from dpmf_cli.privacy.release import Release
from dpmf_cli.privacy.sensitivity import Sensitivity
from tests.audit.planted import (
    ROUNDS,
    Fit,
    Joint,
    NotOnAGrid,
    Numbers,
    Toy,
    drawn,
    findings,
    fit_with,
    in_float64,
    kernel_that,
    of_user_sums,
    on_the_grid,
    own_noise,
)

VARIANTS = BOUNDED, UNBOUNDED, USER = Neighbours.BOUNDED, Neighbours.UNBOUNDED, Neighbours.USER


@dataclass(frozen=True)
class Planted:
    """A mistake, where it is planted, and what a replay is to find.

    steps  of which steps a finding may speak; any, if it is None
    size   how large the worst finding is; not looked at, if it is None
    """

    fit: type[Fit]
    neighbours: Neighbours
    flaw: Flaw
    steps: tuple[str, ...] | None = None
    size: float | None = None
    toy: type[Toy] = Toy

    @property
    def algorithm(self) -> Toy:
        return self.toy(fits=self.fit, neighbours=self.neighbours)


# --- noise ---


def noise_for_private_counts(self: Fit, average: Numbers) -> Numbers:
    count = max(len(self.ratings), 1)
    release = self.release("user sums", (self.train.n_users,), self.moves(self.scale_width), 0.2)
    with_noise = release.in_units_of(np.full(1, float(count))).added_to(self.user_sums(average) / count)
    return count * with_noise / 8


def one_draw_for_two(self: Fit, average: Numbers) -> Numbers:
    release = self.release("user sums", (self.train.n_users,), self.moves(self.scale_width), 0.2)
    sums = self.user_sums(average)
    return (release.added_to(sums) + release.added_to(sums**2)) / 16


def forgotten(self: Fit, average: Numbers) -> Numbers:
    Fit.users(self, average)
    return self.user_sums(average) / 8


def twice_the_rounds(self: Fit) -> Iterator[Release]:
    first = next(iter(Fit.rounds(self)))
    rng, shape = self.curator.noise("descent"), (self.train.n_items,)
    noises = (LaneNoise(unit_laplace(shape, rng), first.scale, unit_laplace) for _ in range(2 * ROUNDS))
    return self.curator.releases(first.entry, noises)


def losses_told(self: Fit, step: str, shape: tuple[int, ...], moves: Sensitivity, share: float) -> Release:
    """The losses of an exponential mechanism are released, where only the index of the smallest may be."""
    epsilon, moves = share * self.epsilons, replace(moves, norm=np.inf)
    return exponential_choice(step, shape[0], sensitivity=moves, epsilon=epsilon, curator=self.curator)


# --- sensitivities ---


def clamped_after_summing(self: Fit, average: Numbers, counts: Numbers) -> Numbers:
    """Unclipped errors are summed, and the sums are clipped to the largest sum of that many clipped errors."""
    biases = np.zeros_like(counts)
    largest = self.bound * np.maximum(self.ratings.item_counts, 1)[:, None]
    for release in self.rounds():
        errors = self.ratings.values[:, None] - average - biases[self.ratings.items]
        clean = np.clip(in_float64(self.ratings, errors), -largest, largest)
        biases += 0.5 / np.maximum(counts, 4) * release.added_to(clean)
    return biases


def of_sample(sampled: Callable[[Fit], Any]) -> type[Fit]:
    """A fit whose users' sums are those of a sample of the ratings."""

    def users(self: Fit, average: Numbers) -> Numbers:
        sums = self.sums_of(self.ratings.select(sampled(self)), average)
        return self.released("user sums", sums, self.moves(self.scale_width), 0.2) / 4

    return fit_with(users=users)


# --- what follows the releases ---


def crash_on_nothing(self: Fit) -> Numbers:
    assert self.ratings.values.max() <= self.train.scale.maximum
    return Fit.average(self)


class OwnMean(Fit):
    """No mistake in a joint method: a user's own offset has no noise, and is for this user only."""

    def users(self, average: Numbers) -> Numbers:
        return self.user_sums(average) / np.maximum(self.train.user_counts, 1)[:, None]

    def model(self) -> Effects:
        """A release of this model holds no users."""
        made, nothing = super().model(), np.zeros_like(self.epsilons)
        assert isinstance(made, EffectsModel)
        return Effects(made.items, made.users, nothing, residual=nothing)


def own_mean_of_others(self: Fit, average: Numbers) -> Numbers:
    """Users without ratings get the mean offset of the others."""
    own = OwnMean.users(self, average)  # type: ignore[arg-type]
    return np.where((self.train.user_counts > 0)[:, None], own, own.mean(axis=0))


# --- kernels ---


def in_float32(ratings: Ratings, errors: Numbers) -> Numbers:
    """Running sums in float32."""
    sums = np.zeros((ratings.n_items, errors.shape[1]), np.float32)
    for item in range(ratings.n_items):
        own = errors[ratings.items == item].astype(np.float32)
        if len(own):
            sums[item] = np.cumsum(own, axis=0, dtype=np.float32)[-1]
    return sums.astype(np.float64)


def of_first_ratings(ratings: Ratings, errors: Numbers) -> Numbers:
    return in_float64(ratings.select(np.arange(len(ratings)) < len(ratings) - 1), errors[:-1])


def without_the_grid(clean: Numbers, noise: LaneNoise) -> Numbers:
    return clean + noise.unit[:, None] * noise.scale


USER_SUMS, ALL, DESCENT, PREDICTIONS = ("user sums",), ("all ratings",), ("descent",), ("predictions",)


def told(neighbours: Neighbours, **hooks: Any) -> Planted:
    """Predictions that tell more than what was released."""
    return Planted(fit_with(**hooks), neighbours, Flaw.AFTER, PREDICTIONS)


def kernel(**mistakes: Any) -> Planted:
    """A kernel that does something else than its reference."""
    return told(BOUNDED, descends_by=kernel_that(**mistakes))


MISTAKES = {
    "losses told": Planted(fit_with(release=of_user_sums(losses_told)), BOUNDED, Flaw.AFTER),
    "half of the noise that is charged": Planted(
        fit_with(release=own_noise(lambda fit, shape, scale: drawn(fit, shape, scale / 2))),
        BOUNDED, Flaw.SPENDS, USER_SUMS, 2,
    ),
    "noise in other units than the numbers": Planted(
        fit_with(release=of_user_sums(lambda fit, *of: Fit.release(fit, *of).in_units_of(np.full(1, 2.0)))),
        BOUNDED, Flaw.MOVES, USER_SUMS, 2,
    ),
    "charged, and the clean sums used": told(BOUNDED, users=forgotten),
    "a scale that depends on private counts": Planted(
        fit_with(users=noise_for_private_counts), UNBOUNDED, Flaw.SCALES, USER_SUMS
    ),
    "one draw for two measurements": Planted(fit_with(users=one_draw_for_two), BOUNDED, Flaw.STEPS, USER_SUMS),
    "twice the rounds that are charged": Planted(
        fit_with(rounds=twice_the_rounds), BOUNDED, Flaw.SPENDS, DESCENT, 2
    ),
    "half of what a changed value moves": Planted(
        fit_with(half_of_the_scale=property(lambda fit: 0.5 * fit.scale_width)), BOUNDED, Flaw.MOVES, ALL, 2
    ),
    "ratings of a user that are not cut off": Planted(
        fit_with(ratings=property(lambda fit: fit.train)), USER, Flaw.MOVES,
        (*USER_SUMS, *ALL, *DESCENT, "item counts", "number of ratings"),
    ),
    "clamped after summing": Planted(
        fit_with(items=clamped_after_summing), UNBOUNDED, Flaw.MOVES, DESCENT
    ),
    "items visited by their clean counts": told(
        UNBOUNDED,
        smoothed=lambda fit, biases: Fit.smoothed(fit, biases[order := np.argsort(fit.train.item_counts)])[np.argsort(order)],
    ),
    "a sample by places": Planted(
        of_sample(lambda fit: np.arange(len(fit.ratings)) % 2 == 0), UNBOUNDED, Flaw.MOVES, USER_SUMS
    ),
    "0/0 for an item without ratings": Planted(
        fit_with(smoothed=lambda fit, biases: Fit.smoothed(fit, biases) * ones(fit.train.item_counts)),
        UNBOUNDED, Flaw.NAN, PREDICTIONS,
    ),
    "0/0 in a measurement": Planted(
        fit_with(user_sums=lambda fit, average: Fit.user_sums(fit, average) * ones(fit.train.user_counts)),
        UNBOUNDED, Flaw.NAN,
    ),
    "a crash without ratings": Planted(fit_with(average=crash_on_nothing), UNBOUNDED, Flaw.CRASH, ("",)),
    "a stop that depends on clean sums": Planted(
        fit_with(rounds=lambda fit: itertools.islice(Fit.rounds(fit), 1 if fit.total() < 0 else ROUNDS)),
        BOUNDED, Flaw.STEPS, DESCENT,
    ),
    "rounds by the number of ratings": Planted(fit_with(repetitions=property(lambda fit: 1 + len(fit.train) % 3)), UNBOUNDED, Flaw.LEDGER),
    "own means of others": Planted(
        fit_with(OwnMean, users=own_mean_of_others), BOUNDED, Flaw.AFTER, PREDICTIONS, toy=Joint
    ),
    "own means where nothing is one's own": Planted(OwnMean, BOUNDED, Flaw.AFTER, PREDICTIONS),
    "a loop that ends early": kernel(sums=of_first_ratings),
    "no grid": kernel(releases=without_the_grid),
    "half of the noise in the kernel": kernel(
        releases=lambda clean, noise: on_the_grid(clean, LaneNoise(noise.unit, noise.scale / 2))
    ),
}  # fmt: skip


def ones(counts: Any) -> Numbers:
    """n/n, which is 1 except where it is 0/0."""
    return np.asarray((counts / counts)[:, None])


# --- the tests ---

OWN_NOISE = fit_with(release=own_noise(drawn))
BY_COINS = of_sample(lambda fit: fit.streams.of_ratings("sample", fit.ratings) < 0.5)
RIGHT = {
    f"{name}, {neighbours.value}": toy(fits=fit, neighbours=neighbours, gaussian=gaussian)
    for name, fit, toy, gaussian, variants in (
        ("the toy", Fit, Toy, False, VARIANTS),
        ("Gaussian", Fit, Toy, True, VARIANTS),
        ("a sample by coins", BY_COINS, Toy, False, (BOUNDED, UNBOUNDED)),
        ("own means", OwnMean, Joint, False, (BOUNDED, UNBOUNDED)),
        ("own noise", OWN_NOISE, Toy, False, (BOUNDED, UNBOUNDED)),
    )
    for neighbours in variants
}
"""Without a mistake."""


@pytest.mark.parametrize("name", RIGHT)
def test_without_a_mistake_nothing_is_found(name: str) -> None:
    for pairs, epsilon in ((60, 1.0), (7, 0.1), (7, 300.0)):
        assert list(findings(RIGHT[name], pairs, epsilon)) == []


@pytest.mark.parametrize("name", MISTAKES)
def test_a_replay_finds_a_mistake_where_it_is(name: str) -> None:
    """A finding names the step that is wrong: no other step moves further than it may."""
    planted = MISTAKES[name]

    def found(pairs: int) -> Iterator[Finding]:
        return (each for each in findings(planted.algorithm, pairs) if each.flaw is planted.flaw)

    of_step = (each for each in found(60) if planted.steps is None or each.step in planted.steps)
    if planted.size is None:
        assert next(of_step, None) is not None
    else:
        assert max(each.size for each in of_step) == pytest.approx(planted.size, rel=1e-3)
    if planted.flaw is Flaw.MOVES and planted.steps is not None:
        assert {each.step for each in found(14)} <= set(planted.steps)


class WithoutDelta(Toy):
    """Gaussian noise, but no δ."""

    @property
    def spends_delta(self) -> float:
        return 0.0


def test_gaussian_noise_without_a_delta_is_refused() -> None:
    """The ledger refuses, on both sides alike: a replay reports that nothing ran, and why."""
    found = list(findings(WithoutDelta(neighbours=BOUNDED, gaussian=True), 5))
    assert {(each.flaw, each.step) for each in found} == {(Flaw.BROKEN, "")}
    assert all(each.said == "OverspentError: all ratings: Gaussian noise needs a δ" for each in found)


@pytest.mark.parametrize("neighbours", [BOUNDED, UNBOUNDED])
def test_sums_in_float32_show_on_large_data_alone(neighbours: Neighbours) -> None:
    """Tiny pairs find nothing. Where a row is near 2^17, it moves by dozens of sensitivities, but not in float64."""
    of_float32 = fit_with(descends_by=kernel_that(sums=in_float32))
    mistaken, right = (Toy(fits=fit, neighbours=neighbours) for fit in (of_float32, Fit))
    assert list(findings(mistaken)) == []
    for pair in (hovering_pair(neighbours, power) for power in (13, 15)):
        assert replay(right, pair, 300.0).findings == []
        assert Flaw.AFTER in {each.flaw for each in replay(mistaken, pair, 300.0).findings}
    pair = hovering_pair(neighbours, 17)
    assert replay(mistaken, pair, 300.0).steps["descent"].of_sensitivity > 50


def test_low_bits_of_a_law_that_does_not_round() -> None:
    """A replay sees numbers that are off the grid. The low bits of a single sum tell an extreme value from the
    other."""
    off_grid = own_noise(
        lambda fit, shape, scale: NotOnAGrid(
            unit_laplace(shape, fit.curator.noise("user sums")), scale, unit_laplace
        )
    )
    mistaken, right = (Toy(fits=fit, neighbours=BOUNDED) for fit in (fit_with(release=off_grid), OWN_NOISE))
    assert {(each.flaw, each.step) for each in findings(mistaken)} == {(Flaw.GRID, "user sums")}
    pair = next(each for each in tiny_pairs(BOUNDED, 7) if each.name.startswith("nothing else"))
    for algorithm, leaks in ((mistaken, True), (right, False)):
        (test,) = (each for each in low_bits(algorithm, pair, 0.1, 20_000) if each.step == "user sums")
        assert test.allowed == pytest.approx(0.02, rel=1e-3)
        assert test.epsilon > 1.5 if leaks else test.epsilon <= test.allowed


def test_a_sample_that_is_not_drawn_anew_shows_over_many_pairs() -> None:
    """Either all draws move, or none. On one pair that could be chance; on many it is not."""
    (sampled,) = (each for each in registered("dpam") if each.name == "dpam, samples of 0.3, user, corrected")
    pairs = [replay(sampled, pair, 300.0) for pair in tiny_pairs(USER, 21)]
    assert np.isnan([each.loss for each in pairs]).all()  # what moves cost on samples is no sum over steps
    found = [each for pair in pairs for each in pair.samples.items()]
    (mechanism,) = {mechanism for mechanism, _ in found}
    ((draws, rate),) = {(draws, rate) for _, (_, draws, rate) in found}
    assert (mechanism, rate) == (f"Gaussian × {draws}, of a part 0.3", 0.3)
    assert len({moved for _, (moved, _, _) in found}) > 2
    stale = [(mechanism, (draws if moved else 0, draws, rate)) for mechanism, (moved, _, _) in found]
    for samples, flaws in ((found, []), (stale, [(Flaw.STEPS, mechanism)])):
        assert [each[:2] for each in _of_all_pairs(samples, Counter(), Watch(), len(pairs))] == flaws


def test_a_draw_that_serves_two_steps_shows_over_many_pairs() -> None:
    """One has a single number, of the size of the other's first, and of its sign every other time: no chance."""

    def again(fit: Fit, shape: tuple[int, ...], scale: Numbers) -> LaneNoise:
        return LaneNoise(unit_laplace(shape, fit.curator.noise_again("all ratings")), scale, unit_laplace)

    one_stream_for_two = fit_with(release=own_noise(again))
    (found,) = audit(Job(Toy(fits=one_stream_for_two, neighbours=BOUNDED), Settings())).refuted
    assert (found.flaw, found.step) == (Flaw.STEPS, "user sums")
    assert found.said.startswith("has the noise of all ratings, on ")
    assert 25 < found.pairs < 65


# --- mistakes in dpmf's own code, found by what `make audit` runs ---

LOW_BITS = "told apart by low bits"
FEW = Settings(pairs=1, larger=False, draws=20_000, epsilons=(1.0,))
LARGER = replace(FEW, larger=True)
"""Parts of what `make audit` replays that are enough to find a mistake."""


@dataclass(frozen=True)
class Broken:
    """The variant in which a mistake shows, what is found of which step, and the names with other values."""

    label: str
    flaws: tuple[str, ...]
    step: str
    patches: tuple[tuple[object, str, Any], ...]
    settings: Settings = FEW


def wide(clean: Any, noise: LaneNoise) -> Numbers:
    values = np.asarray(clean, np.float64)
    values = values[..., None] if values.ndim == noise.unit.ndim else values
    return np.asarray(values + noise.unit[..., None] * noise.scale)


CLIPPED = LearnedRatings.of
OF_GAUSSIAN = "get_epsilon_gaussian", "get_sigma_gaussian"
PUBLISHED: Any = vars(OwnFactors)["published"].fget


def at_a_hundred_times(of_gaussian: Callable[..., float]) -> Callable[..., float]:
    return lambda noise, delta, *more: of_gaussian(noise, 100 * delta, *more)


BROKEN = {
    "noise and charge are for half of the sampled steps": Broken(
        "dpam, samples of 0.3, user, corrected", (Flaw.SPENDS,), "gradients",
        (
            (mechanisms, "SampledSteps", lambda noise, rate, times: SampledSteps(noise, rate, times // 2)),
            (
                theta, "noise_multipliers",
                lambda *of, steps, **more: noise_multipliers(*of, steps=steps // 2, **more),
            ),
        ),
    ),
    "no rounding": Broken(
        "mm_averages, laplace, user, corrected", (Flaw.GRID, LOW_BITS), "item sums",
        ((LaneNoise, "added_to", lambda self, clean: on_grid(wide(clean, self), np.full_like(self.scale, FINEST))),),
    ),
    "no clip beyond 64 ratings": Broken(
        "dpsgd_pnbm, gaussian, user, corrected", (Flaw.MOVES,), "gradients",
        (
            (
                LearnedRatings, "of",
                lambda train, limits=np.inf, norm=2: CLIPPED(train, np.where(train.user_counts > 64, 1e9, limits), norm),
            ),
        ),
        LARGER,
    ),
    "clean counts published, which no prediction needs": Broken(
        "dpals, user, corrected", (Flaw.AFTER,), "published counts",
        ((OwnFactors, "published", property(lambda self: {**PUBLISHED(self), "counts": self.own.item_counts})),),
    ),
    "a hundred times δ": Broken(
        "mm_averages, gaussian, user, corrected", (Flaw.SPENDS,), "all steps",
        tuple((dp_accounting, name, at_a_hundred_times(getattr(dp_accounting, name))) for name in OF_GAUSSIAN),
    ),
    "amplification to first order": Broken(
        "dpsgd_pnbm, laplace, samples of 0.3, user, corrected", (Flaw.SPENDS,), "gradient 1",
        (
            (mechanisms, "amplified", lambda epsilon, rate: rate * np.asarray(epsilon)),
            (descent_and_sampling, "before_sampling", lambda epsilon, rate: epsilon / rate),
        ),
    ),
}  # fmt: skip
ACCOUNTED = epsilon_of_mu, mu_of_epsilon, accounting._composed_epsilon, accounting._noise_multiplier


def forget() -> None:
    """No number of a right accountant is kept for a wrong one, nor the other way about."""
    for each in ACCOUNTED:
        each.cache_clear()


@pytest.mark.parametrize("name", BROKEN)
def test_the_audit_of_all_finds_a_mistake_in_dpmf(name: str) -> None:
    broken = BROKEN[name]
    (entry,) = (each for each in registered(broken.label.partition(",")[0]) if each.label == broken.label)
    job = Job(entry, broken.settings)
    assert audit(job).refuted == ()
    forget()
    with pytest.MonkeyPatch.context() as patch:
        for where, attribute, value in broken.patches:
            patch.setattr(where, attribute, value)
        found = {(each.flaw, each.step) for each in audit(job).refuted}
    forget()
    assert {(flaw, broken.step) for flaw in broken.flaws} <= found
