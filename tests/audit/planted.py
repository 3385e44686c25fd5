"""A small, correct private algorithm with hooks in which tests plant mistakes.

`Fit` is one fit of the algorithm: an average of all ratings, offsets of users, and biases of items by a short noisy
descent through a kernel with a reference. A mistake is a subclass of `Fit` that overrides a hook. `Toy` is the algorithm.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.averages import EffectsModel
from dpmf_cli.algorithms.shared.base import Model, PrivateAlgorithm, Variants, by_mode
from dpmf_cli.audit.judge import Finding, replay
from dpmf_cli.audit.pairs import tiny_pairs
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.accounting import mu_of_epsilon
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.grid import FINEST, MARGIN, on_grid
from dpmf_cli.privacy.ledger import Epsilons
from dpmf_cli.privacy.mechanisms import gaussian, laplace, repeated_laplace
from dpmf_cli.privacy.neighbours import Mode, Neighbours
from dpmf_cli.privacy.noise import LaneNoise, Law, unit_laplace
from dpmf_cli.privacy.release import NoisyKernel, Publish, Release, noisy_kernel
from dpmf_cli.privacy.sensitivity import Sensitivity

Numbers = NDArray[np.float64]
Shape = tuple[int, ...]

ROUNDS = 3
"""Passes of the descent."""

TAU = 2
"""Number of a user's ratings that are used, if neighbours differ in a user."""

DELTA = 1e-5
"""The δ of Gaussian noise."""


@dataclass
class Biases:
    """Biases of items, (n_items, lanes): the one group of models that the kernel changes in place."""

    values: Numbers

    @property
    def part(self) -> slice:
        return slice(0, self.values.shape[1])

    @property
    def groups(self) -> tuple["Biases"]:
        return (self,)


def in_float64(ratings: Ratings, errors: Numbers) -> Numbers:
    """(n_items, lanes) sums of errors (n, lanes) by item."""
    return np.stack(
        [np.bincount(ratings.items, column, ratings.n_items) for column in errors.T], axis=-1
    ).astype(np.float64)


def on_the_grid(clean: Numbers, noise: LaneNoise) -> Numbers:
    """What a kernel releases of its measurements."""
    return on_grid(clean + noise.unit[:, None] * noise.scale, noise.grid)


def kernel_that(
    sums: Callable[[Ratings, Numbers], Numbers] = in_float64,
    releases: Callable[[Numbers, LaneNoise], Numbers] = on_the_grid,
) -> NoisyKernel:
    """One step of the descent. A mistake may be in its sums or in its noise. The reference has no mistake."""

    def errors(group: Biases, ratings: Ratings, average: Numbers, bound: float) -> Numbers:
        clean = ratings.values.astype(np.float64)[:, None] - average - group.values[ratings.items]
        return np.clip(clean, -bound, bound)

    def reference(
        group: Biases, publish: Publish, ratings: Ratings, average: Numbers, bound: float, steps: Numbers
    ) -> None:
        group.values += steps * publish(in_float64(ratings, errors(group, ratings, average, bound)))

    @noisy_kernel(reference)
    def run(
        group: Biases, noise: LaneNoise, ratings: Ratings, average: Numbers, bound: float, steps: Numbers
    ) -> None:
        group.values += steps * releases(sums(ratings, errors(group, ratings, average, bound)), noise)

    return run


@dataclass
class Fit:
    """One fit: r̂_ui = A + u_u + b_i.

    All private data of a user are in `ratings`. With bounded neighbours, who rated what is public, and so are the
    counts; otherwise counts are released. If neighbours differ in a user, `TAU` ratings of each user are used.
    """

    toy: "Toy"
    train: Ratings
    epsilons: Epsilons
    streams: Streams
    curator: Curator

    descends_by: ClassVar[NoisyKernel] = kernel_that()
    repetitions: ClassVar[int] = ROUNDS

    def model(self) -> Model:
        average = self.average()
        users = self.users(average)
        items = self.items(average, self.counts())
        return EffectsModel(average + self.smoothed(items), users)

    # --- what is measured ---

    @cached_property
    def ratings(self) -> Ratings:
        """The ratings that are used."""
        if self.neighbours is not Neighbours.USER:
            return self.train
        draws = self.streams.of_ratings("which are looked at", self.train)
        order = np.lexsort((draws, self.train.users))
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order)) - self.train.user_starts[self.train.users[order]]
        return self.train.select(place < TAU)

    def average(self) -> Numbers:
        """(E,) the average of all ratings, within the scale."""
        total = self.released("all ratings", [self.total()], self.moves(self.half_of_the_scale), 0.1)[0]
        count: Any = len(self.ratings)
        if self.private_counts:
            count = self.released("number of ratings", [len(self.ratings)], self.moves(1.0), 0.1)[0]
        scale = self.train.scale
        average = scale.middle + total / np.maximum(count, 1)
        return np.asarray(np.clip(average, scale.minimum, scale.maximum))

    def total(self) -> float:
        """The sum of all ratings, measured from the middle of the scale."""
        return float((self.ratings.values - np.float64(self.train.scale.middle)).sum())

    def counts(self) -> Numbers:
        """(n_items, E) the number of raters of each item."""
        counts = self.ratings.item_counts
        if not self.private_counts:
            return np.repeat(counts[:, None], len(self.epsilons), 1).astype(np.float64)
        return self.released("item counts", counts, self.moves(1.0), 0.2)

    def users(self, average: Numbers) -> Numbers:
        """(n_users, E) offsets of users."""
        return self.released("user sums", self.user_sums(average), self.moves(self.scale_width), 0.2) / 8

    def user_sums(self, average: Numbers) -> Numbers:
        return self.sums_of(self.ratings, average)

    def sums_of(self, ratings: Ratings, average: Numbers) -> Numbers:
        residuals = ratings.values.astype(np.float64)[:, None] - average
        return np.stack([np.bincount(ratings.users, column, ratings.n_users) for column in residuals.T], -1)

    def items(self, average: Numbers, counts: Numbers) -> Numbers:
        """(n_items, E) biases of items."""
        biases = Biases(np.zeros((self.train.n_items, len(self.epsilons))))
        steps = 0.5 / np.maximum(counts, 4)
        for release in self.rounds():
            release.inside(self.descends_by, biases, self.ratings, average, self.bound, steps)
        return biases.values

    @property
    def bound(self) -> float:
        """The bound to which errors are clipped."""
        return 0.45 * self.scale_width

    def smoothed(self, biases: Numbers) -> Numbers:
        """Post-processes released biases: a pass over the items that makes each a little like the one before."""
        biases = biases.copy()
        for before, item in pairwise(range(self.train.n_items)):
            biases[item] += 0.1 * biases[before]
        return biases

    # --- how it is released ---

    @property
    def neighbours(self) -> Neighbours:
        return self.toy.neighbours

    @property
    def private_counts(self) -> bool:
        return self.neighbours is not Neighbours.BOUNDED

    @property
    def scale_width(self) -> float:
        return self.train.scale.width

    @property
    def half_of_the_scale(self) -> float:
        """How far one rating moves the sum of all, measured from the middle of the scale."""
        return self.scale_width * (1.0 if self.neighbours is Neighbours.BOUNDED else 0.5)

    def moves(self, each: float) -> Sensitivity:
        """The sensitivity of numbers of which one rating moves one by `each`; all ratings of a user may move
        the same number."""
        many = TAU if self.neighbours is Neighbours.USER else 1
        return Sensitivity(many * each, 2 if self.toy.gaussian else 1, self.neighbours, "a toy")

    def released(self, step: str, clean: Any, sensitivity: Sensitivity, share: float) -> Numbers:
        """(…, E) numbers with the noise that a share of ε buys."""
        return self.release(step, np.shape(clean)[:1], sensitivity, share).added_to(np.asarray(clean))

    def release(self, step: str, shape: tuple[int, ...], sensitivity: Sensitivity, share: float) -> Release:
        if not self.toy.gaussian:
            return laplace(
                step, shape, sensitivity=sensitivity, epsilon=share * self.epsilons, curator=self.curator
            )
        together = mu_of_epsilon(0.6 * float(self.epsilons[0]), DELTA)  # of four steps at most
        theta = np.full(len(self.epsilons), together / 2)
        return gaussian(step, shape, sensitivity=sensitivity, theta=theta, curator=self.curator)

    def rounds(self) -> Iterable[Release]:
        """The noise draws of the descent, charged together."""
        many = {Neighbours.BOUNDED: 2, Neighbours.USER: TAU}.get(self.neighbours, 1)
        return repeated_laplace(
            "descent",
            (self.train.n_items,),
            repetitions=self.repetitions,
            sensitivity=Sensitivity(many * self.bound, 1, self.neighbours, "clipped errors"),
            epsilon=0.4 * self.epsilons,
            curator=self.curator,
        )


def fit_with(base: type[Fit] = Fit, **hooks: Any) -> type[Fit]:
    """A fit with these hooks in the place of its own: with these mistakes."""
    return type("Mistaken", (base,), hooks)


def of_user_sums(release: Callable[..., Release]) -> Callable[..., Release]:
    """A hook `release` for the users' sums alone."""

    def hook(self: Fit, step: str, shape: Shape, sensitivity: Sensitivity, share: float) -> Release:
        return (release if step == "user sums" else Fit.release)(self, step, shape, sensitivity, share)

    return hook


def own_noise(noise: Callable[[Fit, Shape, Numbers], LaneNoise]) -> Callable[..., Release]:
    """A hook `release`: the users' sums get noise of the plugin's own class or law, as a function of its shape and of
    the scale that the ledger charges."""

    def release(self: Fit, step: str, shape: Shape, sensitivity: Sensitivity, share: float) -> Release:
        epsilon, ledger = share * self.epsilons, self.curator.ledger
        if self.toy.gaussian:
            entry = ledger.spend(step, "Gaussian", sensitivity, theta=epsilon)
        else:
            entry = ledger.spend(step, "Laplace", sensitivity, epsilon)
        return self.curator.release(entry, noise(self, shape, sensitivity.value / epsilon * (1 + MARGIN)))

    return of_user_sums(release)


def drawn(fit: Fit, shape: Shape, scale: Numbers, law: Law = unit_laplace) -> LaneNoise:
    return LaneNoise(law(shape, fit.curator.noise("user sums")), scale, law)


class NotOnAGrid(LaneNoise):
    """Noise whose sums are not rounded."""

    @property
    def grid(self) -> Numbers:
        return np.full_like(self.scale, FINEST)


class Toy(PrivateAlgorithm):
    """The algorithm around a `Fit`."""

    title: ClassVar[str] = "Toy"
    variants: ClassVar[Variants] = by_mode(
        Neighbours.BOUNDED, Neighbours.UNBOUNDED, Neighbours.USER, corrected=None
    )

    algorithm: Literal["toy"] = "toy"
    mode: Mode = Mode.CORRECTED
    fits: type[Fit] = Fit
    gaussian: bool = False

    @property
    def spends_delta(self) -> float:
        return DELTA if self.gaussian else 0.0

    def fit(self, train: Ratings, epsilons: Epsilons, *, streams: Streams, curator: Curator) -> Model:
        return self.fits(self, train, epsilons, streams, curator).model()


class Joint(Toy):
    """The toy as a joint method."""

    joint = True


def findings(algorithm: PrivateAlgorithm, pairs: int = 60, epsilon: float = 1.0) -> Iterator[Finding]:
    """The findings of a replay of many tiny pairs."""
    for pair in tiny_pairs(algorithm.neighbours, pairs):
        yield from replay(algorithm, pair, epsilon).findings
