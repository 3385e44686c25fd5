"""Plain twins of compiled functions: the same source, run by Python.

A twin calls the twins of the compiled functions that its source calls. In place of an operation that emits its own
instructions, it calls the plain function that the operation was declared with.
"""

import functools
import types
from collections.abc import Callable
from typing import Any

from numba.core.dispatcher import Dispatcher
from numba.extending import intrinsic

from dpmf_cli.compiled.identity import note_source

_PLAIN: dict[Any, Callable[..., Any]] = {}


def operation(plain: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Declares an `intrinsic` of numba. `plain` does the same on NumPy arrays."""

    def declare(definition: Callable[..., Any]) -> Any:
        note_source(definition.__module__)
        declared = intrinsic(definition)
        _PLAIN[declared] = plain
        return declared

    return declare


@functools.cache
def twin(dispatcher: Any) -> Callable[..., Any]:
    """Returns the plain function that does the same as a compiled function."""
    return _with_twins(dispatcher.py_func)


def _with_twins(function: types.FunctionType) -> Callable[..., Any]:
    names = {name: _replaced(value) for name, value in function.__globals__.items()}
    return types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )


def _replaced(value: Any) -> Any:
    if isinstance(value, Dispatcher):
        return lambda *arguments: twin(value)(*arguments)
    try:
        return _PLAIN.get(value, value)
    except TypeError:  # an unhashable value is no operation
        return value
