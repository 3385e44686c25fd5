"""How far the users' factors of a factorisation move between two moments of a fit."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.compiled.decorator import compiled
from dpmf_cli.kernels.examples import USERS, example, numbers
from dpmf_cli.kernels.factors import FactorLanes, FactorModel
from dpmf_cli.kernels.lanes import add, doubles, load, mul, store, sub, widen, zeros


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
        """(E,) ‖U − U′‖/‖U‖ of each model, where U′ is this copy."""
        return np.concatenate(
            [
                _relative_move(before, group)[: group.lanes]
                for before, group in zip(self.groups, model.groups, strict=True)
            ]
        )


def _relative_move(before: NDArray[np.float32], group: FactorLanes) -> NDArray[np.float64]:
    """(width,) ‖U − U′‖/‖U‖. Neither norm includes the averages, which do not move."""
    squares = np.zeros(2 * group.width)
    _squares(group.users, before, squares, group.factors_of, group.width_of)
    norms, distances = np.sqrt(squares).reshape(2, group.width)
    return np.asarray(distances / np.maximum(norms, 1e-30))


@compiled(
    example(
        now=lambda s: numbers(USERS * s.row),
        then=lambda s: numbers(USERS * s.row)[::-1],
        out=lambda s: np.zeros(2 * s.w),
    )
)
def _squares(now, then, out, factors_of, width_of):
    """Sets out ← Σ p², then Σ (p − p′)², over all rows and factors. Squares are float32, sums float64."""
    d, w = len(factors_of), len(width_of)
    row, like, norms, distances = (d + 1) * w, zeros(width_of), doubles(width_of), doubles(width_of)
    for first in range(0, len(now), row):
        for at in range(first, first + d * w, w):
            p = load(now, at, like)
            move = sub(p, load(then, at, like))
            norms = add(norms, widen(mul(p, p)))
            distances = add(distances, widen(mul(move, move)))
    store(out, 0, norms)
    store(out, w, distances)
