"""Planted mistakes: the toy algorithm with one mistake at a time, each found by the tier that should find it."""

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import dp_accounting
import numpy as np
import pytest
from dp_accounting.pld import PLDAccountant
from numpy.typing import NDArray

from dpmf_cli.algorithms.field import dpam
from dpmf_cli.algorithms.field.dpam import PrivateAlternatingMinimization as DPAM
from dpmf_cli.algorithms.shared import certified_descent, item_alternation
from dpmf_cli.algorithms.shared.averages_baseline import EffectsModel
from dpmf_cli.algorithms.shared.effects import Effects
from dpmf_cli.algorithms.shared.item_alternation import ItemAlternation
from dpmf_cli.algorithms.shared.own_factors import OwnFactors
from dpmf_cli.algorithms.shared.own_means import OwnMeansModel
from dpmf_cli.algorithms.shared.ratings_per_user import at_most
from dpmf_cli.audit.entries import registered
from dpmf_cli.audit.job import Job, Settings, audit
from dpmf_cli.audit.judge import Flaw
from dpmf_cli.audit.pairs import large_pairs, tiny_pairs
from dpmf_cli.audit.replay import low_bits, replay
from dpmf_cli.kernels.similarity_descent import LearnedRatings
from dpmf_cli.privacy import mechanisms, subsampling
from dpmf_cli.privacy.accounting import epsilon_of_mu, mu_of_epsilon
from dpmf_cli.privacy.grid import FINEST, MARGIN, on_grid
from dpmf_cli.privacy.mechanisms import exponential_choice, repeated_laplace, subsampled_gaussian
from dpmf_cli.privacy.neighbours import Neighbours
from dpmf_cli.privacy.noise import LaneNoise, unit_laplace
from dpmf_cli.privacy.release import NoisyKernel, Publish, Release, noisy_kernel
from dpmf_cli.privacy.sensitivity import Sensitivity
from dpmf_cli.privacy.subsampling import SampledSteps, noise_multipliers
from dpmf_cli.ratings import Ratings
from tests.audit.planted import (
    DELTA,
    ROUNDS,
    TAU,
    Biases,
    Fit,
    Numbers,
    Toy,
    findings,
    in_float64,
    kernel_that,
    on_the_grid,
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
    gaussian: bool = False

    @property
    def algorithm(self) -> Toy:
        return self.toy(fits=self.fit, neighbours=self.neighbours, gaussian=self.gaussian)


# --- noise ---


class HalfTheNoise(Fit):
    """The noise of the users' sums has half the scale that the ledger entry charges."""

    def release(self, step: str, shape: tuple[int, ...], sensitivity: Sensitivity, share: float) -> Release:
        if step != "user sums":
            return super().release(step, shape, sensitivity, share)
        epsilon = share * self.epsilons
        entry = self.curator.ledger.spend(step, "Laplace", sensitivity, epsilon)
        scale = sensitivity.value / epsilon / 2
        return self.curator.release(
            entry, LaneNoise.drawn(unit_laplace, shape, self.curator.noise(step), scale)
        )


class NoiseInOtherUnits(Fit):
    """The noise is divided by 2, as if the numbers counted halves of ratings, which they do not."""

    def release(self, step: str, shape: tuple[int, ...], sensitivity: Sensitivity, share: float) -> Release:
        release = super().release(step, shape, sensitivity, share)
        return release.in_units_of(np.full(len(self.epsilons), 2.0)) if step == "user sums" else release


class ForgottenStep(Fit):
    """The users' sums are charged, but the clean sums are used."""

    def users(self, average: Numbers) -> Numbers:
        super().users(average)
        return self.user_sums(average) / 8


class NoiseForPrivateCounts(Fit):
    """The scale of the noise of averages depends on the number of ratings, which is private."""

    def users(self, average: Numbers) -> Numbers:
        count = max(len(self.ratings), 1)
        release = self.release("user sums", (self.train.n_users,), self.moves(self.scale_width), 0.2)
        return (
            count
            * release.in_units_of(np.full(1, float(count))).added_to(self.user_sums(average) / count)
            / 8
        )


class OneDrawForTwo(Fit):
    """The noise of the users' sums is also used to hide their squares."""

    def users(self, average: Numbers) -> Numbers:
        release = self.release("user sums", (self.train.n_users,), self.moves(self.scale_width), 0.2)
        sums = self.user_sums(average)
        return (release.added_to(sums) + release.added_to(sums**2)) / 16


class NoisyCountsForgotten(Fit):
    """The number of an item's raters is private, and is used without noise."""

    def counts(self) -> Numbers:
        return np.repeat(self.ratings.item_counts[:, None], len(self.epsilons), 1).astype(np.float64)


class TwiceTheRepetitions(Fit):
    """The descent is charged for fewer rounds than it makes: it makes twice as many."""

    def rounds(self) -> Iterable[Release]:
        first = next(iter(super().rounds()))
        rng, shape = self.curator.noise("descent"), (self.train.n_items,)
        noises = (LaneNoise.drawn(unit_laplace, shape, rng, first.scale) for _ in range(2 * ROUNDS))
        return self.curator.releases(first.entry, noises)


class RoundsOverAgain(Fit):
    """The descent makes each round twice, with the same draw of noise."""

    def rounds(self) -> Iterable[Release]:
        rounds = list(super().rounds())
        return rounds + rounds


# --- sensitivities ---


class UnderstatedSensitivity(Fit):
    """The sensitivity is half the width of the scale, but a changed rating moves the sum by the full width."""

    @property
    def half_of_the_scale(self) -> float:
        return self.scale_width / 2


class SensitivityOfOtherNeighbours(Fit):
    """Raw ratings are summed, but the noise hides only a changed value; an added rating moves the sum by its
    full value."""

    def total(self) -> float:
        return float(self.ratings.values.sum(dtype=np.float64))

    @property
    def half_of_the_scale(self) -> float:
        return self.scale_width


class NormMixedUp(Fit):
    """Laplace noise is scaled to an L2 sensitivity, although a user moves the counts of several items."""

    def counts(self) -> Numbers:
        used = Sensitivity(float(np.sqrt(TAU)), 1, self.neighbours, "the L2 norm")
        return self.released("item counts", self.ratings.item_counts, used, 0.2)


class AllRatingsOfAUser(Fit):
    """Noise is scaled as if a user had at most `TAU` ratings, but the others are not cut off."""

    @property
    def ratings(self) -> Ratings:
        return self.train


class OneRatingOfAUser(Fit):
    """Noise hides one rating of a user, where it should hide all of the user's ratings."""

    def moves(self, each: float) -> Sensitivity:
        return Sensitivity(each, 1, self.neighbours, "one rating")


class ClampedAfterSumming(Fit):
    """Unclipped errors are summed, and the sums are clipped to the largest sum of that many clipped errors."""

    descends_by: ClassVar[NoisyKernel]

    def items(self, average: Numbers, counts: Numbers) -> Numbers:
        biases = np.zeros_like(counts)
        largest = self.bound * np.maximum(self.ratings.item_counts, 1)[:, None]
        for release in self.rounds():
            errors = self.ratings.values[:, None] - average - biases[self.ratings.items]
            clean = np.clip(in_float64(self.ratings, errors), -largest, largest)
            biases += 0.5 / np.maximum(counts, 4) * release.added_to(clean)
        return biases


class NotClipped(Fit):
    """Errors are not clipped at all."""

    @property
    def bound(self) -> float:
        return self.scale_width * 5

    def moves_of_descent(self) -> Sensitivity:
        return Sensitivity(self.scale_width / 2, 1, self.neighbours, "errors that are not clipped")


class NotProjected(Fit):
    """The released average may lie outside the scale, so residuals may be larger than the scale's width."""

    def within_scale(self, average: Numbers) -> Numbers:
        return average


# --- samples ---


class _Sampled(Fit):
    """The users' sums are those of a sample of the ratings. Base class of the fits below."""

    def sampled(self) -> NDArray[np.bool_]:
        raise NotImplementedError

    def users(self, average: Numbers) -> Numbers:
        sampled = self.ratings.select(self.sampled())
        residuals = sampled.values.astype(np.float64)[:, None] - average
        sums = np.stack(
            [np.bincount(sampled.users, column, self.train.n_users) for column in residuals.T], -1
        )
        return self.released("user sums", sums, self.moves(self.scale_width), 0.2) / 4


class SampleByCoins(_Sampled):
    """No mistake: each rating is in the sample by its own coin."""

    def sampled(self) -> NDArray[np.bool_]:
        return np.asarray(self.streams.of_ratings("sample", self.ratings) < 0.5)


class SampleByValues(_Sampled):
    """Membership in the sample depends on the average of all values."""

    def sampled(self) -> NDArray[np.bool_]:
        return np.asarray(self.ratings.values >= self.ratings.values.mean())


class SampleByPlaces(_Sampled):
    """Every second rating is in the sample, so one more rating changes the sample after it."""

    def sampled(self) -> NDArray[np.bool_]:
        return np.asarray(np.arange(len(self.ratings)) % 2 == 0)


# --- what follows the releases ---


class OrderOfValues(Fit):
    """Items are visited in the order of their clean sums."""

    def order_of_visits(self) -> NDArray[np.integer]:
        return np.argsort(np.bincount(self.train.items, self.train.values, self.train.n_items), kind="stable")


class FilledIn(Fit):
    """Items without ratings get the average; other items get their bias."""

    def smoothed(self, biases: Numbers) -> Numbers:
        return np.where((self.train.item_counts > 0)[:, None], super().smoothed(biases), 0.0)


class EmptyAverage(Fit):
    """A factor n/n, which is 1 except for items without ratings, where it is 0/0."""

    def smoothed(self, biases: Numbers) -> Numbers:
        counts = self.train.item_counts[:, None]
        return super().smoothed(biases) * (counts / counts)


class EmptyMeasurement(Fit):
    """The same factor in a measurement."""

    def user_sums(self, average: Numbers) -> Numbers:
        counts = self.train.user_counts[:, None]
        return super().user_sums(average) * (counts / counts)


class CrashOnNothing(Fit):
    """The maximum over no ratings is an error."""

    def average(self) -> Numbers:
        assert self.ratings.values.max() <= self.train.scale.maximum
        return super().average()


class StopsEarly(Fit):
    """The descent stops after a round if the clean sum of ratings is small."""

    def rounds(self) -> Iterable[Release]:
        return itertools.islice(super().rounds(), 1 if self.total() < 0 else ROUNDS)


class RoundsByCount(Fit):
    """The number of rounds that the descent is charged for depends on the number of ratings."""

    def rounds(self) -> Iterable[Release]:
        return repeated_laplace(
            "descent",
            (self.train.n_items,),
            repetitions=1 + len(self.train) % 3,
            sensitivity=self.moves_of_descent(),
            epsilon=0.4 * self.epsilons,
            curator=self.curator,
        )


class BudgetByCount(Fit):
    """The split of ε depends on the number of ratings."""

    def release(self, step: str, shape: tuple[int, ...], sensitivity: Sensitivity, share: float) -> Release:
        few = step == "user sums" and len(self.train) < 12
        return super().release(step, shape, sensitivity, share / 2 if few else share)


class OwnMean(Fit):
    """No mistake in a joint method: a user's own offset has no noise, and is for this user only."""

    def users(self, average: Numbers) -> Numbers:
        return self.user_sums(average) / np.maximum(self.train.user_counts, 1)[:, None]

    def model(self) -> OwnMeansModel:
        """A release of this model holds no users."""
        made, nothing = super().model(), np.zeros_like(self.epsilons)
        assert isinstance(made, EffectsModel)
        return OwnMeansModel(Effects(nothing, made.items, made.users, residual=nothing))


class OwnMeanOfOthers(OwnMean):
    """Users without ratings get the mean offset of the others."""

    def users(self, average: Numbers) -> Numbers:
        own = super().users(average)
        return np.where((self.train.user_counts > 0)[:, None], own, own.mean(axis=0))


class Joint(Toy):
    """The toy as a joint method."""

    joint: ClassVar[bool] = True


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
    """The last rating is left out: a loop ends one step early."""
    return in_float64(ratings.select(np.arange(len(ratings)) < len(ratings) - 1), errors[:-1])


def without_the_grid(clean: Numbers, noise: LaneNoise) -> Numbers:
    return clean + noise.unit[:, None] * noise.scale


def on_a_finer_grid(clean: Numbers, noise: LaneNoise) -> Numbers:
    return on_grid(without_the_grid(clean, noise), noise.grid / 4)


def with_half_the_scale(clean: Numbers, noise: LaneNoise) -> Numbers:
    return on_the_grid(clean, LaneNoise(noise.unit, noise.scale / 2))


def of_another_place(clean: Numbers, noise: LaneNoise) -> Numbers:
    return on_the_grid(clean, LaneNoise(np.roll(noise.unit, 1), noise.scale))


class SumsInFloat32(Fit):
    """The kernel's sums are in float32, those of its twin in float64."""

    descends_by = kernel_that(sums=in_float32)


class LoopEndsEarly(Fit):
    """The kernel omits a rating that its twin measures."""

    descends_by = kernel_that(sums=of_first_ratings)


class KernelForgetsTheGrid(Fit):
    """The kernel does not round what it releases."""

    descends_by = kernel_that(releases=without_the_grid)


class KernelTakesAnotherGrid(Fit):
    """The kernel rounds to another grid than its twin."""

    descends_by = kernel_that(releases=on_a_finer_grid)


class KernelHalvesTheNoise(Fit):
    """The kernel's noise has another scale than its release."""

    descends_by = kernel_that(releases=with_half_the_scale)


class KernelTakesOtherNoise(Fit):
    """The kernel adds to an item the noise of the item before."""

    descends_by = kernel_that(releases=of_another_place)


class OverlappingPlaces(Fit):
    """The first two items each get a draw. All other items reuse these draws, in the kernel and in its twin."""

    def items(self, average: Numbers, counts: Numbers) -> Numbers:
        def twin(group: Biases, publish: Publish, clean: Numbers) -> None:
            group.values[:2] += publish(clean[:2], 0)
            group.values[1:] += publish(clean[1:], 0)

        @noisy_kernel(twin)
        def run(group: Biases, noise: LaneNoise, clean: Numbers) -> None:
            group.values[:2] += on_the_grid(clean[:2], LaneNoise(noise.unit[:2], noise.scale))
            group.values[1:] += on_the_grid(clean[1:], LaneNoise(noise.unit[: len(clean) - 1], noise.scale))

        biases = Biases(np.zeros_like(counts))
        errors = np.clip(self.ratings.values[:, None] - average, -self.bound, self.bound)
        next(iter(self.rounds())).inside(run, biases, in_float64(self.ratings, errors))
        return biases.values


USER_SUMS, ALL, DESCENT, PREDICTIONS = ("user sums",), ("all ratings",), ("descent",), ("predictions",)
COUNTS = "item counts", "number of ratings"


class _OwnMechanism(Fit):
    """The users' sums get noise of the plugin's own class or law. Users and items share the rest of ε."""

    def noise(self, shape: tuple[int, ...], scale: Numbers) -> LaneNoise:
        raise NotImplementedError

    def release(self, step: str, shape: tuple[int, ...], sensitivity: Sensitivity, share: float) -> Release:
        if step != "user sums":
            return super().release(step, shape, sensitivity, share)
        epsilon = share * self.epsilons
        entry = self.curator.ledger.spend(step, "Laplace", sensitivity, epsilon)
        return self.curator.release(
            entry, self.noise(shape, sensitivity.value / epsilon * (1 + MARGIN)), draw=0
        )


def quarter_of_laplace(shape: tuple[int, ...], rng: np.random.Generator) -> Numbers:
    return unit_laplace(shape, rng) / 4


class OneStreamForTwo(_OwnMechanism):
    """Users' sums get the draw that hides the sum of all. Subtracting one from the other reveals them."""

    def noise(self, shape: tuple[int, ...], scale: Numbers) -> LaneNoise:
        return LaneNoise.drawn(unit_laplace, shape, self.curator.noise_again("all ratings"), scale)


class LossesTold(Fit):
    """The losses of an exponential mechanism are released, where only the index of the smallest may be."""

    def release(self, step: str, shape: tuple[int, ...], sensitivity: Sensitivity, share: float) -> Release:
        if step != "user sums":
            return super().release(step, shape, sensitivity, share)
        return exponential_choice(
            step,
            shape[0],
            sensitivity=replace(sensitivity, norm=np.inf),
            epsilon=share * self.epsilons,
            curator=self.curator,
        )


MISTAKES: Sequence[Planted] = (
    Planted(LossesTold, BOUNDED, Flaw.AFTER),
    Planted(HalfTheNoise, BOUNDED, Flaw.SPENDS, USER_SUMS, 2),
    Planted(NoiseInOtherUnits, BOUNDED, Flaw.MOVES, USER_SUMS, 2),
    Planted(ForgottenStep, BOUNDED, Flaw.AFTER, PREDICTIONS),
    Planted(NoiseForPrivateCounts, UNBOUNDED, Flaw.SCALES, USER_SUMS),
    Planted(OneDrawForTwo, BOUNDED, Flaw.STEPS, USER_SUMS),
    Planted(NoisyCountsForgotten, UNBOUNDED, Flaw.AFTER, PREDICTIONS),
    Planted(TwiceTheRepetitions, BOUNDED, Flaw.SPENDS, DESCENT, 2),
    Planted(RoundsOverAgain, BOUNDED, Flaw.STEPS, DESCENT),
    Planted(UnderstatedSensitivity, BOUNDED, Flaw.MOVES, ALL, 2),
    Planted(SensitivityOfOtherNeighbours, UNBOUNDED, Flaw.MOVES, ALL, 1.25),
    Planted(NormMixedUp, USER, Flaw.MOVES, ("item counts",), 2**0.5),
    Planted(AllRatingsOfAUser, USER, Flaw.MOVES, (*USER_SUMS, *ALL, *DESCENT, *COUNTS)),
    Planted(OneRatingOfAUser, USER, Flaw.MOVES, None, 2),
    Planted(ClampedAfterSumming, UNBOUNDED, Flaw.MOVES, DESCENT),
    Planted(NotClipped, UNBOUNDED, Flaw.MOVES, DESCENT),
    Planted(NotProjected, UNBOUNDED, Flaw.MOVES, USER_SUMS),
    Planted(SampleByValues, BOUNDED, Flaw.MOVES, USER_SUMS),
    Planted(SampleByPlaces, UNBOUNDED, Flaw.MOVES, USER_SUMS),
    Planted(OrderOfValues, BOUNDED, Flaw.AFTER, PREDICTIONS),
    Planted(FilledIn, UNBOUNDED, Flaw.AFTER, PREDICTIONS),
    Planted(EmptyAverage, UNBOUNDED, Flaw.NAN, PREDICTIONS),
    Planted(EmptyMeasurement, UNBOUNDED, Flaw.NAN),
    Planted(CrashOnNothing, UNBOUNDED, Flaw.CRASH, ("",)),
    Planted(StopsEarly, BOUNDED, Flaw.STEPS, DESCENT),
    Planted(RoundsByCount, UNBOUNDED, Flaw.LEDGER),
    Planted(BudgetByCount, UNBOUNDED, Flaw.LEDGER),
    Planted(OwnMeanOfOthers, BOUNDED, Flaw.AFTER, PREDICTIONS, toy=Joint),
    Planted(OwnMean, BOUNDED, Flaw.AFTER, PREDICTIONS),
    Planted(LoopEndsEarly, BOUNDED, Flaw.AFTER, PREDICTIONS),
    Planted(KernelForgetsTheGrid, BOUNDED, Flaw.AFTER, PREDICTIONS),
    Planted(KernelTakesAnotherGrid, BOUNDED, Flaw.AFTER, PREDICTIONS),
    Planted(KernelHalvesTheNoise, BOUNDED, Flaw.AFTER, PREDICTIONS),
    Planted(KernelTakesOtherNoise, BOUNDED, Flaw.AFTER, PREDICTIONS),
    Planted(OverlappingPlaces, BOUNDED, Flaw.AFTER, PREDICTIONS),
)

# --- noise whose law is not what it is said to be: a replay takes the law as it is declared ---


class QuarterOfTheLaw(_OwnMechanism):
    """The unit noise is a quarter of the unit to which the scale refers."""

    def noise(self, shape: tuple[int, ...], scale: Numbers) -> LaneNoise:
        return LaneNoise.drawn(quarter_of_laplace, shape, self.curator.noise("user sums"), scale)


class OwnNoise(_OwnMechanism):
    """No mistake."""

    def noise(self, shape: tuple[int, ...], scale: Numbers) -> LaneNoise:
        return LaneNoise.drawn(unit_laplace, shape, self.curator.noise("user sums"), scale)


class NotOnAGrid(LaneNoise):
    """Noise whose sums are not rounded."""

    @property
    def grid(self) -> Numbers:
        return np.full_like(self.scale, FINEST)


class LowBitsLeft(_OwnMechanism):
    """The sums are released as they are added up: their low bits reveal the terms."""

    def noise(self, shape: tuple[int, ...], scale: Numbers) -> LaneNoise:
        return NotOnAGrid.drawn(unit_laplace, shape, self.curator.noise("user sums"), scale)


# --- mistakes that a replay does not see ---


class OneSampleForAll(Fit):
    """The descent is charged for a new sample of users in each round, but draws one sample for all rounds."""

    def rounds(self) -> Iterable[Release]:
        multiplier = noise_multipliers(
            0.3 * self.epsilons, DELTA, rate=0.3, steps=ROUNDS, neighbours=self.neighbours
        )
        return subsampled_gaussian(
            "descent",
            (self.train.n_items,),
            repetitions=ROUNDS,
            rate=0.3,
            sensitivity=Sensitivity(TAU * self.bound, 2, self.neighbours, "clipped errors"),
            contribution=TAU * self.bound,
            multiplier=multiplier,
            curator=self.curator,
        )

    def items(self, average: Numbers, counts: Numbers) -> Numbers:
        biases = np.zeros_like(counts)
        drawn = self.streams.generator("sample").random(self.train.n_users) < 0.3
        sampled = self.ratings.select(drawn[self.ratings.users])
        for release in self.rounds():
            errors = sampled.values[:, None] - average - biases[sampled.items]
            sums = in_float64(sampled, np.clip(errors, -self.bound, self.bound))
            biases += 0.5 / np.maximum(counts, 4) * release.added_to(sums)
        return biases


# --- the tests ---


RIGHT: Sequence[Planted] = tuple(
    Planted(fit, neighbours, Flaw.CRASH, toy=toy, gaussian=gaussian)
    for fit, neighbours, toy, gaussian in (
        *((Fit, neighbours, Toy, gaussian) for neighbours in VARIANTS for gaussian in (False, True)),
        (SampleByCoins, BOUNDED, Toy, False),
        (SampleByCoins, UNBOUNDED, Toy, False),
        (OwnMean, BOUNDED, Joint, False),
        (OwnMean, UNBOUNDED, Joint, False),
        (OwnNoise, BOUNDED, Toy, False),
        (OwnNoise, UNBOUNDED, Toy, False),
    )
)
"""Fits without a mistake; the flaw is not used."""


def named(planted: Planted) -> str:
    law = ", Gaussian" if planted.gaussian else ""
    return f"{planted.fit.__name__}, {planted.toy.__name__}, {planted.neighbours.value}{law}"


@pytest.mark.parametrize("planted", RIGHT, ids=named)
def test_without_a_mistake_nothing_is_found(planted: Planted) -> None:
    for pairs, epsilon in ((60, 1.0), (7, 0.1), (7, 300.0)):
        assert list(findings(planted.algorithm, pairs, epsilon)) == []


@pytest.mark.parametrize("planted", MISTAKES, ids=named)
def test_a_replay_finds_a_mistake(planted: Planted) -> None:
    found = (
        each
        for each in findings(planted.algorithm)
        if each.flaw is planted.flaw and (planted.steps is None or each.step in planted.steps)
    )
    if planted.size is None:
        assert next(found, None) is not None
    else:
        assert max(each.size for each in found) == pytest.approx(planted.size, rel=1e-3)


def test_a_mistake_is_not_found_elsewhere() -> None:
    """Findings name the step that is wrong: no other step moves further than it may."""
    for planted in MISTAKES:
        if planted.flaw is Flaw.MOVES and planted.steps is not None:
            moved = {each.step for each in findings(planted.algorithm, 14) if each.flaw is Flaw.MOVES}
            assert moved <= set(planted.steps), planted.fit


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
    mistaken, right = (Toy(fits=fit, neighbours=neighbours) for fit in (SumsInFloat32, Fit))
    assert list(findings(mistaken)) == []
    for pair in large_pairs(neighbours, (13, 15)):
        assert replay(right, pair, 300.0).findings == ()
        assert Flaw.AFTER in {each.flaw for each in replay(mistaken, pair, 300.0).findings}
    (pair,) = large_pairs(neighbours, (17,))
    assert replay(mistaken, pair, 300.0).steps["descent"].of_sensitivity > 50


def test_low_bits_of_a_law_that_does_not_round() -> None:
    """A replay sees numbers that are off the grid. The low bits of a single sum tell an extreme value from the
    other."""
    mistaken, right = (Toy(fits=fit, neighbours=BOUNDED) for fit in (LowBitsLeft, OwnNoise))
    assert {(each.flaw, each.step) for each in findings(mistaken)} == {(Flaw.GRID, "user sums")}
    pair = next(each for each in tiny_pairs(BOUNDED, 7) if each.name.startswith("nothing else"))
    for algorithm, leaks in ((mistaken, True), (right, False)):
        (test,) = (each for each in low_bits(algorithm, pair, 0.1, 20_000) if each.step == "user sums")
        assert test.allowed == pytest.approx(0.02, rel=1e-3)
        assert test.epsilon > 1.5 if leaks else test.epsilon <= test.allowed


def test_too_light_a_law_is_not_for_a_replay() -> None:
    """A replay takes laws as they are declared: `test_distinguish` tests the tier that does not."""
    assert list(findings(Toy(fits=QuarterOfTheLaw, neighbours=BOUNDED))) == []


@pytest.mark.slow
def test_a_sample_that_is_not_drawn_anew_shows_over_many_pairs() -> None:
    """Either all rounds move, or none. On one pair that could be chance; on sixty it is not."""
    mistaken = Toy(fits=OneSampleForAll, neighbours=USER, gaussian=True)
    assert list(findings(mistaken)) == []
    (found,) = audit(Job(mistaken, Settings())).refuted
    assert found.flaw == Flaw.STEPS
    assert found.said.startswith("all draws have moved at once")


def test_a_draw_that_serves_two_steps_shows_over_many_pairs() -> None:
    """One has a single number, of the size of the other's first, and of its sign every other time: no chance."""
    (found,) = audit(Job(Toy(fits=OneStreamForTwo, neighbours=BOUNDED), Settings())).refuted
    assert (found.flaw, found.step) == (Flaw.STEPS, "user sums")
    assert found.said.startswith("has the noise of all ratings, on ")
    assert 25 < found.pairs < 65


# --- mistakes in dpmf's own code, found by what `make audit` runs ---


def half_of_the_sampled_steps(patch: pytest.MonkeyPatch) -> None:
    """Noise and charge are for half of the steps that are made."""
    patch.setattr(
        mechanisms, "SampledSteps", lambda noise, rate, times: SampledSteps(noise, rate, times // 2)
    )
    patch.setattr(
        dpam, "noise_multipliers", lambda *a, steps, **more: noise_multipliers(*a, steps=steps // 2, **more)
    )


def no_rounding(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        LaneNoise,
        "added_to",
        lambda self, clean: on_grid(_wide(clean, self), np.full_like(self.scale, FINEST)),
    )


def _wide(clean: Any, noise: LaneNoise) -> Numbers:
    values = np.asarray(clean, np.float64)
    values = values[..., None] if values.ndim == noise.unit.ndim else values
    return np.asarray(values + noise.unit[..., None] * noise.scale)


def weights_from_clean_counts(patch: pytest.MonkeyPatch) -> None:
    parts = ItemAlternation.parts
    patch.setattr(
        ItemAlternation,
        "parts",
        lambda self, train, kept, counts: parts(
            self, train, kept, np.maximum(kept.item_counts[:, None] + 0 * counts, 1)
        ),
    )


def kept_by_clean_counts(patch: pytest.MonkeyPatch) -> None:
    """Which ratings are kept of a user who has too many depends on clean counts."""
    patch.setattr(
        item_alternation,
        "at_most",
        lambda train, limit, draws: at_most(
            train, limit, (0.37 * train.item_counts[train.items] + draws) % 1
        ),
    )


def rate_from_the_clean_number_of_users(patch: pytest.MonkeyPatch) -> None:
    begin, rates, seen = DPAM.begin, DPAM.rates, [0]

    def noting(self: DPAM, train: Ratings, *more: Any) -> Any:
        seen[0] = max(int(np.count_nonzero(train.user_counts)), 1)
        return begin(self, train, *more)

    patch.setattr(DPAM, "begin", noting)
    patch.setattr(DPAM, "rates", lambda self, multiplier, _: rates(self, multiplier, seen[0]))


def no_clip_beyond_64_ratings(patch: pytest.MonkeyPatch) -> None:
    clipped = LearnedRatings.clipped
    patch.setattr(
        LearnedRatings,
        "clipped",
        lambda train, limits, norm: clipped(train, np.where(train.user_counts > 64, 1e9, limits), norm),
    )


def clean_counts_published(patch: pytest.MonkeyPatch) -> None:
    """No prediction needs them."""
    published: Any = vars(OwnFactors)["published"].fget
    more = property(lambda self: {**published(self), "counts": self.own.item_counts})
    patch.setattr(OwnFactors, "published", more)


def delta_times_100(patch: pytest.MonkeyPatch) -> None:
    for name in ("get_epsilon_gaussian", "get_sigma_gaussian"):
        patch.setattr(dp_accounting, name, _at_a_hundred_times(getattr(dp_accounting, name)))


def _at_a_hundred_times(of_gaussian: Callable[..., float]) -> Callable[..., float]:
    return lambda noise, delta, *more: of_gaussian(noise, 100 * delta, *more)


def delta_of_samples_times_100(patch: pytest.MonkeyPatch) -> None:
    get_epsilon = PLDAccountant.get_epsilon
    patch.setattr(PLDAccountant, "get_epsilon", lambda self, delta: get_epsilon(self, 100 * delta))


def amplification_to_first_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(mechanisms, "amplified", lambda epsilon, rate: rate * np.asarray(epsilon))
    patch.setattr(certified_descent, "before_sampling", lambda epsilon, rate: epsilon / rate)


LOW_BITS = "told apart by low bits"

FEW = Settings(pairs=1, larger=False, draws=20_000, epsilons=(1.0,))
LARGER = replace(FEW, larger=True)

BROKEN: Sequence[tuple[Callable[[pytest.MonkeyPatch], None], str, Collection[str], str, Settings]] = (
    (half_of_the_sampled_steps, "dpam, samples of 0.3, user, corrected", [Flaw.SPENDS], "gradients", FEW),
    (no_rounding, "mm_averages, laplace, user, corrected", [Flaw.GRID, LOW_BITS], "item sums", FEW),
    (
        weights_from_clean_counts,
        "dpals, user, corrected",
        [Flaw.MOVES],
        "right sides 1",
        replace(FEW, pairs=49),
    ),
    (kept_by_clean_counts, "dpam, user, corrected", [Flaw.MOVES], "item counts", replace(FEW, pairs=49)),
    (
        rate_from_the_clean_number_of_users,
        "dpam, user, corrected",
        [Flaw.AFTER],
        "predictions",
        replace(LARGER, epsilons=(300.0,)),
    ),
    (no_clip_beyond_64_ratings, "dpsgd_pnbm, gaussian, user, corrected", [Flaw.MOVES], "gradients", LARGER),
    (clean_counts_published, "dpals, user, corrected", [Flaw.AFTER], "published counts", FEW),
    (delta_times_100, "mm_averages, gaussian, user, corrected", [Flaw.SPENDS], "all steps", FEW),
    (delta_of_samples_times_100, "dpam, samples of 0.3, user, corrected", [Flaw.SPENDS], "gradients", FEW),
    (
        amplification_to_first_order,
        "dpsgd_pnbm, laplace, samples of 0.3, user, corrected",
        [Flaw.SPENDS],
        "gradient 1",
        FEW,
    ),
)
"""The mistake, the variant in which it shows, what is found of which step, and a part of what `make audit` replays that
is enough to find it."""


@pytest.mark.parametrize(("plant", "label", "flaws", "step", "settings"), BROKEN)
def test_the_audit_of_all_finds_a_mistake_in_dpmf(
    plant: Callable[[pytest.MonkeyPatch], None],
    label: str,
    flaws: Collection[str],
    step: str,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    uncached: None,
) -> None:
    (entry,) = (each for each in registered(label.partition(",")[0]) if each.label == label)
    job = Job(entry, settings)
    assert audit(job).refuted == ()
    for forgotten in ACCOUNTED:
        forgotten.cache_clear()
    plant(monkeypatch)
    assert {(flaw, step) for flaw in flaws} <= {(each.flaw, each.step) for each in audit(job).refuted}


ACCOUNTED = epsilon_of_mu, mu_of_epsilon, subsampling._composed_epsilon, subsampling._noise_multiplier


@pytest.fixture
def uncached() -> Iterator[None]:
    """No number of a wrong accountant is kept for other tests."""
    yield
    for each in ACCOUNTED:
        each.cache_clear()
