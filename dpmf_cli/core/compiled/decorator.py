"""The one decorator of compiled functions: numba's, with a cache whose entries are verified before they are used.

New machine code is compared with its plain twin on a few numbers, before it is used. A twin is the same source,
run by Python. It calls the twins of the compiled functions that its source calls. In place of an operation that
emits its own instructions, it calls the plain function that the operation was declared with.

The decorator relies on these parts of numba (0.60 or newer):

- A dispatcher's `_cache`. Numba calls its `load_overload` before it compiles a signature, and its `save_overload`
  with the compile result.
- `CompileResult._reduce` and `_rebuild`. Numba's own cache uses them to make a compile result picklable and to
  restore it.
- `_reset_overloads`, which makes a dispatcher forget what it has compiled.
"""

import functools
import pickle
import types
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from numba import njit
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.serialize import dumps
from numba.extending import intrinsic

from dpmf_cli.core.compiled import entries
from dpmf_cli.core.errors import DpmfError

_PLAIN: dict[Any, Callable[..., Any]] = {}


def operation(plain: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """Declares an `intrinsic` of numba. `plain` does the same on NumPy arrays."""

    def declare(definition: Callable[..., Any]) -> Any:
        entries.note_source(definition.__module__)
        declared = intrinsic(definition)
        _PLAIN[declared] = plain
        return declared

    return declare


@functools.cache
def twin(dispatcher: Any) -> Callable[..., Any]:
    """Returns the plain function that does the same as a compiled function."""
    function = dispatcher.py_func
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


Example = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Makes the arguments of a kernel: takes their numba types by name, and returns their values by name."""

TOLERANCES = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-9}
"""Relative to the largest number of an array: the twin sometimes rounds a fused multiply-add differently."""


def check(
    dispatcher: Any, entry_point: Callable[..., Any], signature: Sequence[Any], examples: Sequence[Example]
) -> None:
    """Raises DpmfError if machine code for arguments of these types does not compute what its source says."""
    names = dispatcher.py_func.__code__.co_varnames[: len(signature)]
    for example in examples:
        arguments = example(dict(zip(names, signature, strict=True)))
        found, expected = ([deepcopy(arguments[name]) for name in names] for _ in range(2))
        with np.errstate(all="ignore"):
            expected.append(twin(dispatcher)(*expected))  # first: the twin notices a short example
        found.append(entry_point(*found))
        if not all(map(_agree, found, expected)):
            name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"
            raise DpmfError(
                f"{name}: the machine code that numba made of this kernel is wrong on this machine (it differs from "
                "the same lines run by Python); install another version of numba and llvmlite, or test the memory"
            )


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


def compiled(*examples: Example, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Returns a decorator. Numba compiles the function at its first call. The function runs without Python's lock.

    examples  arguments on which new machine code is compared with its plain twin. A function that only other compiled
              functions call needs none: it is checked as a part of them
    options   options of numba, such as `inline`
    """

    def declare(function: Callable[..., Any]) -> Any:
        entries.note_source(function.__module__)
        dispatcher: Any = njit(nogil=True, **options)(function)
        dispatcher._cache = KernelCache(dispatcher, examples)
        return dispatcher

    return declare


class KernelCache(NullCache):
    """The cache of one compiled function. It checks new machine code before the code is kept or used."""

    def __init__(self, dispatcher: Any, examples: Sequence[Example]) -> None:
        self.dispatcher, self.examples = dispatcher, examples

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Returns the compiled signature from a verified entry, or None if there is no such entry."""
        target_context.refresh()
        path, key = self._entry(sig, target_context.codegen())
        payload = None if path is None else entries.read(path, key)
        if path is None or payload is None:
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(payload))
        except Exception as error:  # unpickling and LLVM may raise anything
            entries.discard(path, f"it cannot be loaded: {error!r}")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Checks new machine code, then keeps it. Raises DpmfError if the code is wrong."""
        try:
            check(self.dispatcher, data.entry_point, sig, self.examples)
        except BaseException:
            self.dispatcher._reset_overloads()
            raise
        path, key = self._entry(sig, data.codegen)
        if path is not None and not data.library.has_dynamic_globals:
            entries.write(path, key, dumps(data._reduce()))

    def _entry(self, signature: Any, codegen: Any) -> tuple[Path | None, bytes]:
        """Returns the path of a signature's entry (None if no entries are kept) and the entry's key."""
        key = entries.key_of(self.dispatcher, signature, codegen.magic_tuple())
        line, folder = entries.as_bytes(key), entries.folder()
        name = entries.file_of(key["kernel"], key["signature"], line)
        return (None if folder is None else folder / name), line
