"""The machine's lower bounds on the time of a visit of SGD or ALS, from small kernels measured in the same run.

A visit is the update of sixteen models of d factors by one rating. In SGD it handles one vector of 64 bytes for each
factor of its two rows, and takes at least

    arithmetic   5·d vector operations: d fused for p·q, and for each of p and q d products and d fused; 7·d where
                 norms are summed too
    writes       2·d vectors written to the nearest cache, of p and of q, each after it was read
    items        d + 1 vectors of the item, read from the level of memory that holds all items, unless the order of
                 visits leaves them nearer
    a chain      d + 4 dependent operations: p·q is summed in one order, and the next visit of a user waits for the
                 p of this one

In ALS with noise it adds d·(d + 1)/2 products of factors and d of targets to sums of float64, of which a vector holds
eight: d·(d + 3) vector operations.

A bound is the amount that a visit needs of one of these, divided by the rate of a kernel that does nothing else. The
largest bound is the limit.
"""

import time
import timeit
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from numba import njit
from numpy.typing import NDArray

from dpmf_cli.core.compiled.lane_groups import aligned
from dpmf_cli.kernels.lane_math import fma
from dpmf_cli.kernels.lanes import load, prefetch, splat, store, zeros

LANES, LINE = 16, 64
REPETITIONS, LINES = 5, 1 << 21
NEAR_LINES = 256
CHAINS = 12
"""Independent chains of operations: more than a core can have in flight."""
WIDTH = (0,) * LANES


Bounds = Mapping[str, float]
"""The least seconds for a visit, by what bounds it."""


def bounds_of(
    factors: int, level: str, *, operations: float, dependent: float, near: float, far: float
) -> dict[str, Bounds]:
    """The bounds of a visit by sixteen models, by the title of a method, from the rates of one core in a second.

    operations, dependent  vector operations; those that wait for each other
    near, far              vectors read and written in the nearest cache; those of items, in a cache of this `level`
    """
    sgd = {
        "arithmetic": 5 * factors / operations,
        "writes": 2 * factors / near,
        f"items in {level}": (factors + 1) / far,
        "chain": (factors + 4) / dependent,
    }
    als = {"arithmetic": factors * (factors + 3) / operations}
    return {"dpmf ISGD": sgd, "dpmf PSGD": sgd | {"arithmetic": 7 * factors / operations}, "dpmf PALS": als}


def binding(bounds: Bounds) -> str:
    """The name of the bound that is the limit."""
    return max(bounds, key=lambda name: bounds[name])


def measured(items: NDArray[np.int32], n_items: int, factors: int) -> dict[str, Bounds]:
    """`bounds_of` this machine, at this moment, of visits to `items` in this order."""
    steps, rows = LINES // CHAINS, NEAR_LINES // (factors + 1)
    near = np.arange(LINES // (factors + 1), dtype=np.int32) % rows
    return bounds_of(
        factors,
        level_of(LINE * n_items * (factors + 1)),
        operations=CHAINS * steps / _best(lambda: _operations(steps, WIDTH)),
        dependent=LINES / _best(lambda: _dependent(LINES, WIDTH)),
        near=_lines(near, rows, factors),
        far=_lines(items[: len(near)], n_items, factors),
    )


def level_of(size: int, folder: Path = Path("/sys/devices/system/cpu/cpu0/cache")) -> str:
    """The first cache that holds that many bytes, or memory; `cache or memory` where this system does not tell."""
    caches = {}
    for index in sorted(folder.glob("index*")):
        kind, level, room = ((index / name).read_text().strip() for name in ("type", "level", "size"))
        if kind != "Instruction":
            caches[f"L{level}"] = int(room.rstrip("K")) << 10
    if not caches:
        return "cache or memory"
    return next((name for name, room in caches.items() if size <= room), "memory")


def _lines(items: NDArray[np.int32], n_items: int, factors: int) -> float:
    """Vectors in a second, if the rows of `items` are read, changed and written one after the other."""
    table = aligned((n_items * (factors + 1) * LANES,))
    table[:] = 1
    row_of = (0,) * (factors + 1)
    return len(items) * len(row_of) / _best(lambda: _rewrite(table, items, row_of, WIDTH))


def _best(call: Callable[[], object]) -> float:
    """CPU seconds of the shortest of several calls, because other work on the machine can only make a call longer."""
    call()
    return min(timeit.repeat(call, timer=time.thread_time, repeat=REPETITIONS, number=1))


@njit(nogil=True)
def _rewrite(table, items, row_of, width_of):  # type: ignore[no-untyped-def]
    w, d, like, last = len(width_of), len(row_of), zeros(width_of), len(items) - 1
    keep = splat(np.float32(0.5), like)
    for x in range(len(items)):
        here, ahead = np.int64(items[x]) * d * w, np.int64(items[min(x + 2, last)]) * d * w
        for f in range(d):
            prefetch(table, ahead + f * w)
        for f in range(d):
            store(table, here + f * w, fma(load(table, here + f * w, like), keep, keep))


@njit(nogil=True)
def _dependent(steps, width_of):  # type: ignore[no-untyped-def]
    like = zeros(width_of)
    keep, value = splat(np.float32(0.5), like), like
    for _ in range(steps):
        value = fma(value, keep, keep)
    out = np.empty(16, np.float32)
    store(out, 0, value)
    return out[0]


@njit(nogil=True)
def _operations(steps, width_of):  # type: ignore[no-untyped-def]
    like = zeros(width_of)
    keep = splat(np.float32(0.5), like)
    a = b = c = d = e = f = g = h = i = j = k = m = like
    for _ in range(steps):
        a, b, c = fma(a, keep, keep), fma(b, keep, keep), fma(c, keep, keep)
        d, e, f = fma(d, keep, keep), fma(e, keep, keep), fma(f, keep, keep)
        g, h, i = fma(g, keep, keep), fma(h, keep, keep), fma(i, keep, keep)
        j, k, m = fma(j, keep, keep), fma(k, keep, keep), fma(m, keep, keep)
    out = np.empty(16, np.float32)
    store(out, 0, a + b + c + d + e + f + g + h + i + j + k + m)
    return out[0]
