"""Compares machine code with its plain twin on a few numbers, before the code is used."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dpmf_cli.compiled.twins import twin
from dpmf_cli.errors import DpmfError

Example = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Makes the arguments of a kernel: takes their numba types by name, and returns their values by name."""

TOLERANCES = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-9}
"""Relative to the largest number of an array: the twin sometimes rounds a fused multiply-add differently."""


def check(
    dispatcher: Any,
    entry_point: Callable[..., Any],
    signature: Sequence[Any],
    examples: Sequence[Example],
) -> None:
    """Raises DpmfError if machine code for arguments of these types does not compute what its source says."""
    names = dispatcher.py_func.__code__.co_varnames[: len(signature)]
    for example in examples:
        arguments = example(dict(zip(names, signature, strict=True)))
        found, expected = ([_copy(arguments[name]) for name in names] for _ in range(2))
        with np.errstate(all="ignore"):
            expected.append(twin(dispatcher)(*expected))  # first: the twin notices a short example
        found.append(entry_point(*found))
        if not all(map(_agree, found, expected)):
            name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"
            raise DpmfError(
                f"{name}: the machine code that numba made of this kernel is wrong on this machine (it differs from "
                "the same lines run by Python); install another version of numba and llvmlite, or test the memory"
            )


def _copy(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _agree(found: Any, expected: Any) -> bool:
    """Whether two arguments, or two returned values, are equal up to rounding."""
    if isinstance(expected, tuple):
        return all(map(_agree, found, expected))
    if expected is None:
        return found is None
    one, other = np.asarray(found), np.asarray(expected)
    tolerance = TOLERANCES.get(one.dtype, 0.0)
    finite = np.abs(other[np.isfinite(other)])
    most = tolerance * float(finite.max(initial=0))
    return one.shape == other.shape and np.allclose(one, other, rtol=tolerance, atol=most, equal_nan=True)
