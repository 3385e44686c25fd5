"""A wall clock that goes back by an hour, or forward by a day, every few calls. Must be first on the path."""

import itertools
import random
import time

_real, _calls, _rng = time.time_ns, itertools.count(1), random.Random(8)
_offset = 0


def _time_ns() -> int:
    global _offset
    if next(_calls) % 5 == 0:
        _offset = _rng.choice([-3600, 24 * 3600, 0]) * 10**9
    return _real() + _offset


time.time_ns = _time_ns
time.time = lambda: _time_ns() / 1e9
