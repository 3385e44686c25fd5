"""How far a factorisation's users move from one look to the next."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.kernels.factors import FactorLanes, FactorModel


@dataclass(frozen=True)
class UserFactors:
    """A copy of the users' factors, to tell how far they move.

    groups  flat float32 arrays, as `FactorLanes.users`
    """

    groups: tuple[NDArray[np.float32], ...]

    @classmethod
    def of(cls, model: FactorModel) -> Self:
        return cls(tuple(group.users.copy() for group in model.groups))

    def moved(self, model: FactorModel) -> NDArray[np.float64]:
        """(E,) ‖U − U′‖/‖U‖ of each model, U′ being this copy."""
        return np.concatenate(
            [
                _relative_move(before, group)[: group.lanes]
                for before, group in zip(self.groups, model.groups, strict=True)
            ]
        )


def _relative_move(before: NDArray[np.float32], group: FactorLanes) -> NDArray[np.float64]:
    """(width,) ‖U − U′‖/‖U‖; the averages, which do not move, count in neither."""
    rows = (-1, group.factors + 1, group.width)
    now, then = (users.reshape(rows)[:, :-1] for users in (group.users, before))
    norms, distances = (
        np.sqrt(np.square(each).sum(axis=(0, 1), dtype=np.float64)) for each in (now, now - then)
    )
    return np.asarray(distances / np.maximum(norms, 1e-30))
