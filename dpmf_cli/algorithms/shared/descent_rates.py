"""Learning rates of a descent that are lowered as its noise grows."""

import numpy as np
from numpy.typing import NDArray


def rates_under(noise: NDArray[np.float64], learning_rate: float, spread: float) -> NDArray[np.float64]:
    """(E,) η, or less if the noise of all steps would move a coordinate by more than `spread`.

    noise  (E,) the standard deviation of the noise of all steps at η = 1
    """
    return learning_rate * spread / np.maximum(spread, learning_rate * noise)
