"""Plain twins of compiled functions: the same source, run by Python.

What a compiled function calls is replaced in its twin: other compiled functions by their twins, and operations that
emit instructions of their own by the plain functions that they were declared with.
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
    """An `intrinsic` of numba that does what `plain` does to NumPy's arrays."""

    def declare(definition: Callable[..., Any]) -> Any:
        note_source(definition.__module__)
        declared = intrinsic(definition)
        _PLAIN[declared] = plain
        return declared

    return declare


@functools.cache
def twin(dispatcher: Any) -> Callable[..., Any]:
    """The plain function that does what a compiled one does."""
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
    except TypeError:  # what cannot be hashed is no operation
        return value
