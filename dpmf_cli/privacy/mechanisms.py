"""Mechanisms: the only places where noise is drawn, each entered in the ledger as it is drawn.

Noise is drawn once per fit in its *unit* form and scaled for every ε of the grid: if X ~ Laplace(1) then
b·X ~ Laplace(b), so each ε has exactly its own distribution. The ε's of one fit share the unit draw, which
makes a curve over ε smooth; every ε is a statement about its own marginal, and only one of a grid's models
would ever be released.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.sensitivity import Sensitivity

Precision = type[np.float32] | type[np.float64]


@dataclass(frozen=True)
class LaneNoise:
    """Noise for a whole ε grid: element k of ε e is unit[k]·scale[e].

    unit   (...) float, one draw of the unit distribution per measured number
    scale  (E,) float64, the scale for each ε, in units of the measurement; 0 where ε = inf
    """

    unit: NDArray[np.floating]
    scale: NDArray[np.float64]

    def added_to(self, values: ArrayLike) -> NDArray[np.float64]:
        """`values` plus the noise: (..., E), from values (...) common to all ε or (..., E) of their own."""
        values = np.asarray(values, dtype=np.float64)
        if values.ndim == self.unit.ndim:
            values = values[..., None]
        return np.asarray(values + np.asarray(self.unit, dtype=np.float64)[..., None] * self.scale)


def laplace(
    step: str,
    shape: tuple[int, ...],
    *,
    sensitivity: Sensitivity,
    epsilon: NDArray[np.float64],
    rng: np.random.Generator,
    ledger: Ledger,
    dtype: Precision = np.float64,
) -> LaneNoise:
    """The Laplace mechanism: Laplace(Δ/ε) noise for `shape` numbers whose joint L1 sensitivity is Δ.

    Dwork et al. 2006; Friedman et al. 2016, theorem 1 and equation 5. ε-DP, pure.

    epsilon  (E,) what this step spends for each ε of the grid; inf adds no noise
    raises   OverspentError (a bug) where the ledger refuses
    """
    if sensitivity.norm != 1:
        raise ValueError(f"{step}: the Laplace mechanism needs an L1 sensitivity, not L{sensitivity.norm}")
    ledger.spend(step, "Laplace", sensitivity, epsilon)
    return LaneNoise(
        unit_laplace(shape, rng, dtype), sensitivity.value / np.asarray(epsilon, dtype=np.float64)
    )


def unit_laplace(
    shape: tuple[int, ...], rng: np.random.Generator, dtype: Precision = np.float64
) -> NDArray[np.floating]:
    """Laplace(1) draws, as exponentials with a random sign.

    Inverting the CDF in float32 returns an infinity about once in 2²⁴ draws; the exponential sampler
    (a ziggurat) has no such point.
    """
    count = int(np.prod(shape))
    exponential: NDArray[np.floating] = rng.standard_exponential(count, dtype=dtype)
    bits = np.unpackbits(np.frombuffer(rng.bytes(-(-count // 8)), dtype=np.uint8), count=count)
    np.negative(exponential, out=exponential, where=bits.view(np.bool_))
    return exponential.reshape(shape)
