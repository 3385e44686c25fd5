"""Keys of machine code: everything that it depends on. Kernels with equal keys run the same machine code."""

import functools
import hashlib
import json
import platform
import sys
import types
from collections.abc import Iterator
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic

_NOT_OF_THE_CODE = (
    "CUDA",
    "NUMBA_NUM_THREADS",
    "NUMBA_DEFAULT_NUM_THREADS",
    "CACHE_",
    "COLOR_SCHEME",
    "RUNNING_UNDER_PROFILER",
)
"""Prefixes of numba's settings that change none of our machine code. All other settings are assumed to change it."""


@functools.cache
def note_source(module: str) -> str:
    """Returns the digest of a module's source, as it was at the first call, during the module's import.

    The file may change later. A digest taken then would not be that of the source that is compiled.
    """
    loaded = sys.modules[module]
    source = loaded.__spec__.loader.get_data(loaded.__file__)  # type: ignore[union-attr]
    return hashlib.sha256(source).hexdigest()


def key_of(dispatcher: Any, signature: tuple[Any, ...], target: tuple[Any, ...]) -> dict[str, Any]:
    """Returns everything that determines the machine code of a kernel for arguments of these types.

    target  the processor, as `codegen().magic_tuple()` describes it
    """
    return {
        "kernel": f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}",
        "signature": repr(signature),
        "depends": _depends(dispatcher),
        "options": {name: repr(value) for name, value in sorted(dispatcher.targetoptions.items())},
        "made with": _versions(),
        "processor": [str(part) for part in target],
        "settings": _settings(),
    }


def as_bytes(key: dict[str, Any]) -> bytes:
    """Returns a key as one line of JSON."""
    return json.dumps(key, sort_keys=True).encode()


@functools.cache
def _versions() -> dict[str, str]:
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        **{package.__name__: package.__version__ for package in (numba, llvmlite, np)},
    }


def _settings() -> dict[str, str]:
    """Returns numba's settings, from its environment variables and its file."""
    return {
        name: repr(value)
        for name, value in sorted(vars(config).items())
        if name.isupper()
        and not name.startswith(_NOT_OF_THE_CODE)
        and isinstance(value, str | int | float | None)
    }


@functools.cache
def _depends(dispatcher: Any) -> dict[str, str]:
    """Returns digests of the sources of a kernel and of all that it calls, and of the constants compiled into it."""
    found: dict[str, str] = {}
    _follow(dispatcher.py_func, found, set())
    return dict(sorted(found.items()))


def _follow(function: types.FunctionType, found: dict[str, str], seen: set[Any]) -> None:
    if function in seen:
        return
    seen.add(function)
    found[function.__module__] = note_source(function.__module__)
    for name in _names(function.__code__):
        if name not in function.__globals__:
            continue
        value = function.__globals__[name]
        if isinstance(value, Dispatcher):
            _follow(value.py_func, found, seen)
        elif isinstance(value, _Intrinsic):
            module = value._defn.__module__
            found[module] = note_source(module)
        elif not isinstance(value, types.ModuleType):
            content = value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()
            found[f"{function.__module__}:{name}"] = hashlib.sha256(content).hexdigest()


def _names(code: types.CodeType) -> Iterator[str]:
    """Yields the names that a function reads, those in nested functions included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
