"""The operations of `lanes` on NumPy arrays: a vector is an array (lanes,) of float32 or float64.

Twins of compiled functions run these. All are the same IEEE operations as in `lanes`, except the fused multiply-adds.
"""

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.floating]

add, sub, mul, div = operator.add, operator.sub, operator.mul, operator.truediv
sqrt, rint, magnitude = np.sqrt, np.rint, np.abs


def zeros(width_of: tuple[int, ...]) -> Vector:
    return np.zeros(len(width_of), np.float32)


def doubles(width_of: tuple[int, ...]) -> Vector:
    return np.zeros(len(width_of))


def zeros_like(array: Vector, width_of: tuple[int, ...]) -> Vector:
    return np.zeros(len(width_of), array.dtype)


def splat(number: float, like: Vector) -> Vector:
    return np.full_like(like, number)


def load(array: Vector, at: int, like: Vector) -> Vector:
    return array[at : at + len(like)].copy()


def store(array: Vector, at: int, vector: Vector) -> None:
    array[at : at + len(vector)] = vector


def prefetch(array: NDArray[Any], at: int) -> None:
    pass


def fma(a: Vector, b: Vector, c: Vector) -> Vector:
    """a·b + c in every lane. For float64 it is computed in extended precision, if the machine has it."""
    if a.dtype == np.float32:
        return plain_fma(a, b, c)
    return np.asarray((a.astype(np.longdouble) * b + c).astype(np.float64))


def plain_fma(a: Vector, b: Vector, c: Vector) -> NDArray[np.float32]:
    """`fma` of float32. The product is exact in float64, and one sum in 2²⁹ is rounded twice."""
    return np.asarray((a.astype(np.float64) * b + c).astype(np.float32))


def plain_dot(p: Vector, q: Vector) -> NDArray[np.float32]:
    """(lanes,) Σ p·q over the rows of p and q (d, lanes), by one `fma` after the other, as kernels do, to the bit."""
    dot = np.zeros(p.shape[1:], np.float32)
    for each, other in zip(p, q, strict=True):
        dot = plain_fma(each, other, dot)
    return dot


def less_product(a: Vector, b: Vector, c: Vector) -> Vector:
    return c - a * b if a.dtype == np.float32 else fma(-a, b, c)


def pivot_of(square: Vector) -> Vector:
    return np.sqrt(square) if square.dtype == np.float32 else 1 / np.sqrt(square)


def over_pivot(a: Vector, pivot: Vector) -> Vector:
    return a / pivot if a.dtype == np.float32 else a * pivot


def widen(a: Vector) -> Vector:
    return a.astype(np.float64)


def narrow(a: Vector) -> Vector:
    return a.astype(np.float32)


def cast(a: Vector, like: Vector) -> Vector:
    return a.astype(like.dtype)


def total(a: Vector) -> float:
    return float(sum(a.astype(np.float64)))


def clamp(a: Vector, low: Vector, high: Vector) -> Vector:
    return below(high, a, high, below(a, low, low, a))


def times_power(a: Vector, n: Vector) -> Vector:
    return (a.view(np.int32) + (n.view(np.int32) << 23)).view(np.float32)


def below(a: Vector, b: Vector, x: Vector, y: Vector) -> Vector:
    return np.where(a < b, x, y)


def any_below(a: Vector, b: Vector) -> bool:
    return bool((a < b).any())


def lanes_where(bits: int, like: Vector) -> Vector:
    return (int(bits) >> np.arange(len(like)) & 1).astype(like.dtype)
