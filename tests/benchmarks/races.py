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
        """Turn by turn; None where the peer was not run with so many threads."""
        times, models = self.times.get(threads, {}), self.models.get(threads, {})
        if peer not in times:
            return None
        each = [
            (theirs.seconds / models[peer]) / (own.seconds / models[self.ours])
            for own, theirs in zip(times[self.ours], times[peer], strict=True)
        ]
        return Ratio(median(each), min(each), max(each))


def run_race(race: Race, threads: Sequence[int] = THREADS) -> Outcome:
    """Runs all contestants that are installed."""
    ours, begin = race.ours(), time.process_time()
    found = Outcome(race, ours.name, {}, {}, {})
    racing = [ours]
    for name, enter in race.peers.items():
        try:
            racing.append(enter())
        except NotHereError as error:
            found.absent[name] = str(error)
    for count in threads:
        able = [each for each in racing if count == 1 or each.threaded]
        if count > 1 and able == [ours] != racing:
            continue
        with threadpool_limits(1, user_api="blas"):
            found.times[count] = interleaved(able, count)
        found.models[count] = {each.name: each.models * (count if each is ours else 1) for each in able}
    what = f"{ours.name}, d = {race.factors}" if race.factors else ours.name
    print(f"{what}: {time.process_time() - begin:.1f} s of CPU", file=sys.stderr)
    return found


def short(number: float) -> str:
    """A ratio with two digits."""
    return f"{number:.0f}" if number >= 10 else f"{number:.1f}"
