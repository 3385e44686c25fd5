"""A race: one of our algorithms and its peers take turns. The measure is CPU time for each model.

With two threads, ours fit twice as many models side by side, while a peer fits one model with both threads. Turns
continue until they took `ENOUGH` seconds. Each turn gives a ratio.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from threadpoolctl import threadpool_limits

from tests.benchmarks.contestants import Contestant, NotHereError, Ran

THREADS = (1, 2)
LEAST_TURNS, MOST_TURNS, ENOUGH = 3, 5, 8.0

Enter = Callable[[], Contestant]
"""Sets up a contestant. Raises NotHereError."""


@dataclass(frozen=True)
class Race:
    """One of ours, and its peers by name. factors: d, where there is one."""

    what: str
    factors: int | None
    ours: Enter
    peers: Mapping[str, Enter]


Times = dict[str, list[Ran]]
"""The runs of each contestant, ours first, turn by turn."""


@dataclass(frozen=True)
class Ratio:
    """How many times as fast ours is, by CPU time for a model: median, smallest and largest ratio."""

    middle: float
    least: float
    most: float

    def __str__(self) -> str:
        return f"{short(self.middle)} ({short(self.least)} to {short(self.most)})"


def ratio(ours: Sequence[Ran], peer: Sequence[Ran], models: tuple[float, float]) -> Ratio:
    """Turn by turn; models: of one run of ours, and of one of the peer."""
    each = [
        (theirs.seconds / models[1]) / (own.seconds / models[0])
        for own, theirs in zip(ours, peer, strict=True)
    ]
    return Ratio(median(each), min(each), max(each))


def interleaved(racing: Sequence[Contestant], threads: int) -> Times:
    """Turns, in each of which all contestants run once, ours first, until the turns took long enough."""
    times: Times = {each.name: [] for each in racing}
    for turn in range(MOST_TURNS):
        if turn >= LEAST_TURNS and sum(ran.seconds for runs in times.values() for ran in runs) > ENOUGH:
            break
        for each in racing:
            times[each.name].append(each.run(threads))
    return times


@dataclass(frozen=True)
class Outcome:
    """A race that was run. times: by number of threads; models: of one run of a contestant, likewise;
    absent: by peer, what installs it."""

    race: Race
    ours: str
    times: dict[int, Times]
    models: dict[int, dict[str, float]]
    absent: dict[str, str]

    def ratio(self, peer: str, threads: int) -> Ratio | None:
        """None where the peer has no threads."""
        times = self.times[threads]
        if peer not in times:
            return None
        models = self.models[threads]
        return ratio(times[self.ours], times[peer], (models[self.ours], models[peer]))


def run_race(race: Race, threads: Sequence[int] = THREADS) -> Outcome:
    """Runs all contestants that are installed."""
    ours = race.ours()
    what = f"{ours.name}, d = {race.factors}" if race.factors else ours.name
    begin = time.process_time()
    racing, absent = [ours], {}
    for name, enter in race.peers.items():
        try:
            racing.append(enter())
        except NotHereError as error:
            absent[name] = str(error)
    times: dict[int, Times] = {}
    models: dict[int, dict[str, float]] = {}
    for count in threads:
        able = [each for each in racing if count == 1 or each.threaded]
        if count > 1 and able == [ours] != racing:
            continue
        with threadpool_limits(1, user_api="blas"):
            times[count] = interleaved(able, count)
        models[count] = {each.name: each.models * (count if each is ours else 1) for each in able}
    print(f"{what}: {time.process_time() - begin:.1f} s of CPU", file=sys.stderr)
    return Outcome(race, ours.name, times, models, absent)


def short(number: float) -> str:
    """A ratio with two digits."""
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"
