"""Models of ratings scaled to [0, 1] by their public scale. Neera et al. 2020, equation 1."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.model import Model
from dpmf_cli.ratings import Scale


@dataclass(frozen=True)
class UnitModel:
    """Maps the predictions of `unit` on [0, 1] to the rating scale.

    known_users (n_users,), known_items (n_items,)  whether a user, or an item, has training ratings
    fallback  (E,) the prediction on [0, 1] if one of them has none
    """

    unit: Model
    scale: Scale
    known_users: NDArray[np.bool_]
    known_items: NDArray[np.bool_]
    fallback: NDArray[np.float64]

    def predict(self, users: NDArray[np.int32], items: NDArray[np.int32]) -> NDArray[np.floating]:
        known = (self.known_users[users] & self.known_items[items])[:, None]
        unit = np.where(known, self.unit.predict(users, items), self.fallback)
        return np.asarray(self.scale.minimum + self.scale.width * unit)
