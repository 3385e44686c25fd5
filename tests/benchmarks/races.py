"""A race: one of our algorithms and its peers take turns. The measure is CPU time for each model.

With two threads, ours fit twice as many models side by side, while a peer fits one model with both threads. A ratio is
of the least times of `TURNS` turns, because other work on the machine can only make a run longer.
"""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from threadpoolctl import threadpool_limits

from tests.benchmarks.contestants import Contestant, NotHereError, Ran

THREADS = (1, 2)
TURNS = 5

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


def interleaved(racing: Sequence[Contestant], threads: int) -> Times:
    """Turns, in each of which all contestants run once, ours first."""
    times: Times = {each.name: [] for each in racing}
    for _ in range(TURNS):
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

    def seconds(self, name: str, threads: int) -> float:
        """The least CPU time of a contestant for a model."""
        return min(ran.seconds for ran in self.times[threads][name]) / self.models[threads][name]

    def ratio(self, peer: str, threads: int) -> float | None:
        """How many times as fast ours is; None where the peer was not run with so many threads."""
        if peer not in self.times.get(threads, {}):
            return None
        return self.seconds(peer, threads) / self.seconds(self.ours, threads)


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
    """A ratio with three digits."""
    return f"{number:.3g}"
