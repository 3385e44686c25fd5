"""Black box: a lower bound on ε from many fits on two neighbours, by an event that happens more often on one of them.

Half of the fits choose the event, and the other half count it, so that the bound holds at its confidence, however
many events there were to choose from. The statistics are: a projection of released numbers that tells how far they
have moved, single predictions that privacy covers, and items' mean predictions. A bound is about one pair and these
statistics. The ceiling beside it is the largest bound that as many fits can show for any method.

*Projection.* A replay has seen the numbers y of a release move by m. For normal noise of covariance Σ the best
statistic is mᵀΣ⁻¹y (Fisher 1936). Numbers that do not move count too, if their noise is correlated with that of
numbers that move: of two numbers with the noise x and −x, the sum is clean. The fits that choose the event
estimate Σ too. Correlations that so few fits can show by chance are taken to be 0 (Bickel and Levina 2008,
"Covariance regularization by thresholding").

*Low bits.* Whether the low bits of released floats tell which numbers were added: for every step, the number that
moves most between two neighbours is released many times on either side, each time with fresh noise, by the code that
releases it in a fit. One half of the draws chooses an event, and the other half counts it: a set of low-bit patterns
(`bounds.bit_event`), or that a number is large or small (`bounds.best_threshold`). This tests the law of messages of
the local model. A replay checks that the compiled kernels round as this code does.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.audit import bounds
from dpmf_cli.audit.fits import PASSED_ON, Place, Seen, Side, both_sides, covered, fitted, predictions
from dpmf_cli.audit.pairs import Pair
from dpmf_cli.core.arrays import Doubles
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import named_generator
from dpmf_cli.privacy.accounting import epsilon_of_mu
from dpmf_cli.privacy.release import Numbers, Recorder, Release

PREDICTIONS, AVERAGED = 40, 500
"""The number of single predictions that are tried as statistics, and about how many users mean predictions are of."""

RELEASES, NUMBERS = 8, 200
"""The number of releases that are used, those that move most, and the number of numbers of each."""

LEAST_VARIANCE = 1e-7
"""What is left of variance 1 in a combination of numbers that is clean, apart from its rounding to the grid."""

NOT_A_NUMBER = 1e300
"""The number that stands for a prediction which is not a number: an event like any other."""


@dataclass(frozen=True)
class LowerBound:
    """A lower bound on ε that trials have shown by a statistic, with a confidence.

    trials    the number of fits on each of the two data sets; one half of them chose the event, unless they repeat an
              earlier finding
    gaussian  the bound that holds if the statistic is normal on both sides, as a sum of Gaussian noise is; nan for
              pure ε
    """

    statistic: str
    epsilon: float
    ceiling: float
    trials: int
    confidence: float
    gaussian: float = float("nan")
    gaussian_ceiling: float = float("nan")


@dataclass(frozen=True)
class _Watched:
    """Numbers of one release: (d,) their positions among the numbers of a place, and their moves."""

    place: Place
    positions: NDArray[np.intp]
    moves: Doubles

    def numbers(self, seen: Mapping[Place, Seen]) -> Doubles:
        """(d,) the published numbers; zeros if nothing was published there."""
        at = seen.get(self.place)
        if at is None or not at.release.leaves or self.positions.max() >= at.out.size:
            return 0 * self.moves
        return np.asarray(np.nan_to_num(at.out.ravel(), posinf=0, neginf=0)[self.positions])

    def weights(self, here: Doubles, there: Doubles) -> Doubles:
        """(d,) Σ⁻¹m, where training fits on each side, (n, d), estimate Σ."""
        apart = np.concatenate([here - here.mean(axis=0), there - there.mean(axis=0)])
        deviations = np.maximum(apart.std(axis=0), 1e-9 * np.abs(self.moves).max())
        unit = apart / deviations
        correlations = unit.T @ unit / len(unit)
        by_chance = 2 * math.sqrt(math.log(1 + len(self.moves)) / len(unit))
        correlations[np.abs(correlations) < by_chance] = 0
        np.fill_diagonal(correlations, 1)
        values, vectors = np.linalg.eigh(correlations)
        if values[0] < -LEAST_VARIANCE:  # zeros left no covariance: the nearest one by equal variances
            values = (values - 2 * values[0]) / (1 - 2 * values[0])
        along = vectors.T @ (self.moves / deviations)
        return np.asarray(vectors @ (along / np.maximum(values, LEAST_VARIANCE)) / deviations)


class _Trial(Side):
    """A recorder of what a fit publishes, which changes nothing."""

    solved = Recorder.solved

    def published(
        self, release: Release, lanes: slice, first: int, clean: Numbers, noisy: Doubles
    ) -> Doubles:
        self.seen[release.entry.step, release.draw, first] = Seen(release, clean, noisy)
        return noisy


def distinguish(
    algorithm: PrivateAlgorithm,
    pair: Pair,
    epsilon: float,
    trials: int,
    *,
    confidence: float = 0.95,
    allowed: float = math.inf,
    directions: Mapping[Place, Doubles] | None = None,
) -> LowerBound:
    """The lower bound that `trials` fits on each side give.

    allowed     a bound above this must show again: 2·`trials` fresh fits on each side then count the same event, and
                the bound is theirs, at the confidence `bounds.SURE`
    directions  the directions in which a replay has seen releases move; without them only predictions are used as
                statistics, and the compiled kernels run without their references
    """
    moved = [(place, moves) for place, moves in (directions or {}).items() if moves.any()]
    moved.sort(key=lambda each: -float(np.abs(each[1]).max()))
    watched = []
    for place, moves in moved[:RELEASES]:
        most = np.argsort(-np.abs(moves), kind="stable")[:NUMBERS]
        watched.append(_Watched(place, most, moves[most]))
    users, items = covered(algorithm, pair)
    own = [ratings.items[ratings.users == pair.changed] for ratings in (pair.here, pair.there)]
    last = np.lexsort((items, users, ~np.isin(items, np.concatenate(own)), users != pair.changed))
    spread = last[:: max(1, len(last) // PREDICTIONS)][: PREDICTIONS // 2]
    # Most are of the user who differs, and of the items.
    chosen = np.unique(np.append(last[: PREDICTIONS // 2], spread))
    users, items = users[chosen], items[chosen]
    averaged = np.arange(0, pair.here.n_users, max(1, pair.here.n_users // AVERAGED), dtype=np.int32)
    averaged = averaged[averaged != pair.changed]
    n_means = min(pair.here.n_items, 6)
    of_means = np.tile(averaged, n_means), np.repeat(np.arange(n_means, dtype=np.int32), len(averaged))
    names = ["all releases along their moves"] if watched else []
    names += [f"{each.place[0]}, draw {each.place[1] + 1}" for each in watched]
    names += [f"prediction of user {u}, item {i}" for u, i in zip(users, items, strict=True)]
    names += [f"mean prediction of item {i}" for i in range(n_means)]
    names += [f"the same, of item {i} less item 0" for i in range(1, n_means)]

    def fits(ratings: Ratings, runs: Iterable[int]) -> tuple[list[Doubles], Doubles]:
        """What fits show: (n, d) numbers of each watched release, and (n, s) all other statistics."""
        released: list[list[Doubles]] = [[] for _ in watched]
        others = []
        for run in runs:
            side = _Trial(0.0)
            try:
                model, _ = fitted(algorithm, ratings, epsilon, run=run, recorder=side if watched else None)
                means = np.zeros(n_means)
                with np.errstate(all="ignore"):
                    if len(averaged):
                        of_items = predictions(model, *of_means).reshape(n_means, -1)
                        means = of_items.mean(axis=1, dtype=np.float64)
                    seen = np.concatenate([predictions(model, users, items), means, means[1:] - means[0]])
            except PASSED_ON:
                raise
            except Exception:
                seen = np.full(len(names) - len(watched) - bool(watched), NOT_A_NUMBER)
            others.append(np.nan_to_num(seen, nan=NOT_A_NUMBER, posinf=1e299, neginf=-1e299))
            for numbers, each in zip(released, watched, strict=True):
                numbers.append(each.numbers(side.seen))
        return [np.array(numbers) for numbers in released], np.array(others, np.float64)

    def both(first: int, after: int) -> list[tuple[list[Doubles], Doubles]]:
        """The same on either side, of fits that have noise of their own."""
        sides = (1, pair.here), (2, pair.there)
        return [fits(ratings, range(side + 2 * first, side + 2 * after, 2)) for side, ratings in sides]

    half, delta = trials // 2, algorithm.spends_delta
    here, there = both(0, trials)
    of_each = zip(watched, here[0], there[0], strict=True)
    weights = [each.weights(ours[:half], theirs[:half]) for each, ours, theirs in of_each]

    def statistics(released: list[Doubles], others: Doubles) -> Doubles:
        """(n, len(names))."""
        along = [numbers @ weight for numbers, weight in zip(released, weights, strict=True)]
        return np.column_stack([np.sum(along, axis=0), *along, others]) if along else others

    def tested(ours: Doubles, theirs: Doubles, trials: int, confidence: float) -> LowerBound:
        """The bound that values of the best statistic give on both sides."""
        counts, most = event.counts(ours, theirs), bounds.always_against_never(len(ours), len(theirs))
        lower, ceiling = (bounds.epsilon_of_event(each, delta, confidence) for each in (counts, most))
        found = LowerBound(names[best], lower, ceiling, trials, confidence)
        if not delta:
            return found
        normal = event_for_mu.counts(ours, theirs), most
        lower, ceiling = (bounds.gaussian_epsilon_of_event(each, delta, confidence) for each in normal)
        return replace(found, gaussian=lower, gaussian_ceiling=ceiling)

    ours, theirs = statistics(*here), statistics(*there)
    columns = list(zip(ours[:half].T, theirs[:half].T, strict=True))
    events = [bounds.best_threshold(*column, delta) for column in columns]
    scores = [each.training_score(*column, delta) for each, column in zip(events, columns, strict=True)]
    best = max(range(len(names)), key=lambda column: (scores[column], column))
    event, event_for_mu = events[best], bounds.best_threshold_for_mu(*columns[best])
    found = tested(ours[half:, best], theirs[half:, best], trials, confidence)
    if found.epsilon <= allowed:
        return found
    one, other = (statistics(*side)[:, best] for side in both(trials, 3 * trials))
    return tested(one, other, 2 * trials, bounds.SURE)


SIZES = 2000
"""The number of draws that choose a threshold."""


@dataclass(frozen=True)
class BitTest:
    """The lower bound on ε that the low bits of one step's releases give, at a `confidence`.

    allowed  the ε that the move of the tested number costs, according to the step's claim
    ceiling  the largest bound that this many draws can show
    """

    step: str
    epsilon: float
    allowed: float
    ceiling: float
    draws: int
    confidence: float
    event: str


def low_bits(
    algorithm: PrivateAlgorithm, pair: Pair, epsilon: float, draws: int, confidence: float = 0.95
) -> Iterator[BitTest]:
    """Yields a test for each step of a fit whose noisy numbers are published and move between neighbours."""
    delta = algorithm.spends_delta
    for release, clean in _widest_moves(*both_sides(algorithm, pair, epsilon)):
        step, allowed = release.entry.step, _allowed(release, abs(clean[1] - clean[0]), delta)
        # This is one of many tests, so a finding must show again, more surely.
        for time, count, sure in (("", draws, confidence), ("again", 2 * draws, bounds.SURE)):
            half, rng = count // 2, named_generator("audit", "bits", step, time)
            ours, theirs = (release.again(number, count, rng) for number in clean)
            events: tuple[bounds.Event, ...] = (
                bounds.bit_event(ours[:half:2], theirs[:half:2], delta),
                bounds.best_threshold(ours[: 2 * SIZES : 2], theirs[: 2 * SIZES : 2], delta),
            )
            scores = [each.training_score(ours[1:half:2], theirs[1:half:2], delta) for each in events]
            event = events[int(np.argmax(scores))]
            counts = event.counts(ours[half:], theirs[half:])
            most = bounds.always_against_never(count - half, count - half)
            found, ceiling = (bounds.epsilon_of_event(each, delta, sure) for each in (counts, most))
            if found <= allowed:
                break
        yield BitTest(step, found, allowed, ceiling, count, sure, str(event))


def _widest_moves(here: Side, there: Side) -> Iterator[tuple[Release, tuple[float, float]]]:
    """Yields, for each step, the number that moves most, as it is on both sides."""
    widest: dict[str, tuple[float, Release, tuple[float, float]]] = {}
    for place in sorted(here.seen.keys() & there.seen.keys()):
        one, other = here.seen[place], there.seen[place]
        if one.clean.shape != other.clean.shape or not one.clean.size:
            continue
        ours, theirs = one.clean.ravel(), other.clean.ravel()
        moved = np.nan_to_num(np.abs(theirs - ours))
        at = int(moved.argmax())
        if moved[at] > widest.get(place[0], (0.0,))[0]:
            widest[place[0]] = float(moved[at]), one.release, (float(ours[at]), float(theirs[at]))
    for step in sorted(widest):
        _, release, clean = widest[step]
        if release.leaves:
            yield release, clean


def _allowed(release: Release, moved: float, delta: float) -> float:
    """The ε that one number's move costs, given the noise that its step declares."""
    if release.told is not None:
        return float(release.told[0])
    entry, scale = release.entry, float(release.scale[0])
    if scale == 0:
        return math.inf
    if entry.mu is not None or entry.sampled is not None:
        return epsilon_of_mu(moved / scale, delta)
    if not entry.by_rows and not entry.mechanism.startswith("Laplace"):
        return math.inf  # the law of this noise bounds no ε by itself: Langevin dynamics
    return moved / scale
