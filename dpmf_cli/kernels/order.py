"""The order of visits."""

import numpy as np
from numba import njit
from numpy.typing import NDArray


@njit(cache=True, nogil=True)
def shuffle_within(starts: NDArray[np.int64], uniform: NDArray[np.float64]) -> NDArray[np.int64]:
    """A permutation of 0 … n−1 that keeps each block [starts[b], starts[b+1]) and shuffles inside it.

    Fisher-Yates; `uniform` (n,) holds one U[0, 1) draw per element.
    """
    order = np.arange(len(uniform))
    for block in range(len(starts) - 1):
        first = starts[block]
        for last in range(starts[block + 1] - 1, first, -1):
            other = first + np.int64(uniform[last] * (last - first + 1))
            order[last], order[other] = order[other], order[last]
    return order
