"""What machine code depends on. Two kernels with one key have the same machine code, and are computed alike."""

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
"""How those of numba's settings begin that change no machine code of ours. Each other one is taken to change it."""


@functools.cache
def note_source(module: str) -> str:
    """The digest of a module's source, as it was when this was first asked: while the module was imported.

    Later the file may have been changed, and what is compiled would be kept under a source that it is not of.
    """
    loaded = sys.modules[module]
    source = loaded.__spec__.loader.get_data(loaded.__file__)  # type: ignore[union-attr]
    return hashlib.sha256(source).hexdigest()


def key_of(dispatcher: Any, signature: tuple[Any, ...], target: tuple[Any, ...]) -> dict[str, Any]:
    """All that decides about the machine code of a kernel for arguments of these types.

    target  what `codegen().magic_tuple()` says of the processor
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
    """A key as one line."""
    return json.dumps(key, sort_keys=True).encode()


@functools.cache
def _versions() -> dict[str, str]:
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        **{package.__name__: package.__version__ for package in (numba, llvmlite, np)},
    }


def _settings() -> dict[str, str]:
    """Numba's settings, from its environment variables and its file."""
    return {
        name: repr(value)
        for name, value in sorted(vars(config).items())
        if name.isupper()
        and not name.startswith(_NOT_OF_THE_CODE)
        and isinstance(value, str | int | float | None)
    }


@functools.cache
def _depends(dispatcher: Any) -> dict[str, str]:
    """Digests of the sources of a kernel and of all that it calls, and of the constants that are compiled into it."""
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
    """The names that a function reads, also in the functions within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
