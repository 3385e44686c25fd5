"""Machine code of kernels: the one decorator of compiled functions, its checks, and files that keep what it made.

New machine code is compared with its Python reference on a few numbers before it is used. A reference is the same
source, run by Python: it calls the references of the compiled functions that its source calls, and in place of an
operation that emits its own instructions, the plain function that the operation was declared with. While one process
compiles an entry, others wait for it. A file of machine code holds

    magic line                       the format
    SHA-256 of the rest, in hex      compared before anything else is read
    the key                          JSON, one line: everything that the code depends on
    the payload                      up to the end of the file

Because unpickling a payload may run any code, dpmf reads a file only if this user wrote it, in a folder that no one
else can write to, and unpickles the payload only after it has compared the checksum and the key.

The decorator relies on parts of numba (0.60 or newer) that it does not document: a dispatcher's `_cache` and
`_reset_overloads`, and `CompileResult._reduce` and `_rebuild`, which make a result picklable and restore it.
"""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import pickle
import platform
import stat
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.extending import _Intrinsic
from numba.core.serialize import dumps

from dpmf_cli.core import children, files
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import cache_folder, is_ours, make_folder, remove, sha256, sweep, write_whole
from dpmf_cli.core.terminal import say

_PLAIN: dict[Any, Callable[..., Any]] = {}


def operation(plain: Callable[..., Any]) -> Callable[[Callable[..., Any]], Any]:
    """A decorator that declares an `intrinsic` of numba; `plain` does the same on NumPy arrays."""

    def declare(definition: Callable[..., Any]) -> Any:
        note_source(definition.__module__)
        declared = numba.extending.intrinsic(definition)
        _PLAIN[declared] = plain
        return declared

    return declare


@functools.cache
def reference(dispatcher: Any) -> Callable[..., Any]:
    """The plain function that does the same as a compiled function."""
    function = dispatcher.py_func
    names = {name: _replaced(value) for name, value in function.__globals__.items()}
    return types.FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )


def _replaced(value: Any) -> Any:
    if isinstance(value, Dispatcher):
        return lambda *arguments: reference(value)(*arguments)
    try:
        return _PLAIN.get(value, value)
    except TypeError:  # an unhashable value is no operation
        return value


Example = Callable[[Mapping[str, Any]], dict[str, Any]]
"""Makes the arguments of a kernel: takes their numba types by name, and returns their values by name."""

TOLERANCES = {np.dtype(np.float32): 1e-5, np.dtype(np.float64): 1e-9}
"""Relative to the largest number of an array: the reference sometimes rounds a fused multiply-add differently."""


def check(
    dispatcher: Any, entry_point: Callable[..., Any], signature: Sequence[Any], examples: Sequence[Example]
) -> None:
    """Raises DpmfError if machine code for arguments of these types does not compute what its source says."""
    names = dispatcher.py_func.__code__.co_varnames[: len(signature)]
    for example in examples:
        arguments = example(dict(zip(names, signature, strict=True)))
        found, expected = ([deepcopy(arguments[name]) for name in names] for _ in range(2))
        with np.errstate(all="ignore"):
            expected.append(reference(dispatcher)(*expected))  # first: the reference notices a short example
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
    """A decorator for a function that numba compiles at its first call, and that runs without Python's lock.

    examples  arguments on which new machine code is compared with its Python reference. A function that only other
              compiled functions call needs none, because it is checked as a part of them
    options   options of numba, such as `inline`
    """

    def declare(function: Callable[..., Any]) -> Any:
        note_source(function.__module__)
        dispatcher: Any = numba.njit(nogil=True, **options)(function)
        dispatcher._cache = KernelCache(dispatcher, examples)
        return dispatcher

    return declare


class KernelCache(NullCache):
    """The cache of one compiled function, which checks new machine code before the code is kept or used."""

    def __init__(self, dispatcher: Any, examples: Sequence[Example]) -> None:
        self.dispatcher, self.examples = dispatcher, examples

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled signature from a verified entry; None if this process shall compile it."""
        target_context.refresh()
        path, key = self._entry(sig, target_context.codegen())
        if path is None:
            return None
        payload = read(path, key)
        if payload is None:
            lock_or_wait(path)
            payload = read(path, key)
            if payload is None:
                return None  # `save_overload` unlocks
            _lock(path, fcntl.LOCK_UN)
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(payload))
        except Exception as error:  # unpickling and LLVM may raise anything
            discard(path, f"it cannot be loaded: {error!r}")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Checks new machine code, then keeps it. Raises DpmfError if the code is wrong."""
        path, key = self._entry(sig, data.codegen)
        try:
            check(self.dispatcher, data.entry_point, sig, self.examples)
            if path is not None and not data.library.has_dynamic_globals:
                write(path, key, dumps(data._reduce()))
        except BaseException:
            self.dispatcher._reset_overloads()
            raise
        finally:
            if path is not None:
                _lock(path, fcntl.LOCK_UN)

    def _entry(self, signature: Any, codegen: Any) -> tuple[Path | None, bytes]:
        """The path of a signature's entry (None if no entries are kept) and the entry's key."""
        key = key_of(self.dispatcher, signature, codegen.magic_tuple())
        line, kept = as_bytes(key), folder()
        name = file_of(key["kernel"], key["signature"], line)
        return (None if kept is None else kept / name), line


_THREADS = "NUMBA_NUM_THREADS", "NUMBA_DEFAULT_NUM_THREADS"
_NOT_OF_THE_CODE = ("CUDA", *_THREADS, "CACHE_", "COLOR_SCHEME", "RUNNING_UNDER_PROFILER")
"""Prefixes of numba's settings that change none of our machine code. All other settings are assumed to change it."""


@functools.cache
def note_source(module: str) -> str:
    """The digest of a module's source, as it was at the first call, during the module's import.

    A digest taken later, when the file may have changed, would not be that of the source that is compiled.
    """
    loaded = sys.modules[module]
    source = loaded.__spec__.loader.get_data(loaded.__file__)  # type: ignore[union-attr]
    return hashlib.sha256(source).hexdigest()


def key_of(dispatcher: Any, signature: tuple[Any, ...], target: tuple[Any, ...]) -> dict[str, Any]:
    """Everything that determines the machine code of a kernel for arguments of these types.

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
    return json.dumps(key, sort_keys=True).encode()


@functools.cache
def _versions() -> dict[str, str]:
    return {
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        **{package.__name__: package.__version__ for package in (numba, llvmlite, np)},
    }


def _settings() -> dict[str, str]:
    """Numba's settings, from its environment variables and its file."""
    plain = {name: each for name, each in vars(config).items() if isinstance(each, str | int | float | None)}
    names = sorted(name for name in plain if name.isupper() and not name.startswith(_NOT_OF_THE_CODE))
    return {name: repr(plain[name]) for name in names}


@functools.cache
def _depends(dispatcher: Any) -> dict[str, str]:
    """Digests of the sources of a kernel and of all that it calls, and of the constants compiled into it."""
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


MAGIC = b"dpmf kernel 1\n"
SUFFIX = ".kernel"
KEPT = 4
"""How many entries of one kernel and signature are kept: the newest, whatever their sources, versions, processors."""

NOT_PRIVATE = f"{files.NOT_PRIVATE}; run `chmod 700` on it, or name another folder in $DPMF_KERNELS"


class Damaged(Exception):
    """The content of an entry differs from what was written."""


def place() -> Path:
    """The folder of this user's entries, existing or not: $DPMF_KERNELS, else in the folder for caches."""
    named = os.environ.get("DPMF_KERNELS")
    return Path(named) if named else cache_folder() / f"kernels-{os.getuid()}"


def folder() -> Path | None:
    """The folder of entries. None if it is unusable or not private, which is said once."""
    return _private(place())


@functools.cache
def _private(path: Path) -> Path | None:
    try:
        make_folder(path.parent, 0o755)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        if not is_private():
            _say(f"{path}: compiled kernels are not kept there: {NOT_PRIVATE}")
            return None
    except OSError as error:
        _not_kept(path, error)
        return None
    return path


def is_private() -> bool:
    """Whether only this user may write to the folder of entries, or the folder does not exist."""
    return files.is_private(place())


def file_of(kernel: str, signature: str, key: bytes) -> str:
    """The file name of an entry. The names of one kernel and signature have the same beginning."""
    return f"{kernel}-{sha256(signature.encode())[:16]}-{sha256(key)[:32]}{SUFFIX}"


def read(path: Path, key: bytes) -> bytes | None:
    """The payload of an entry, or None if there is none. Removes a damaged entry and says so."""
    try:
        found, payload = content(path)
        if found != key:
            raise Damaged("its key belongs to another entry")
    except FileNotFoundError:
        return None
    except (Damaged, OSError) as error:
        discard(path, str(error))
        return None
    return payload


LONGEST_WAIT = 60.0
"""Seconds. A process that could not compile a kernel keeps its lock until it ends."""


def lock_or_wait(path: Path) -> None:
    """Locks an entry. While another process compiles it, waits, at most `LONGEST_WAIT`."""
    begin = time.monotonic()
    while not _lock(path, fcntl.LOCK_EX | fcntl.LOCK_NB) and time.monotonic() < begin + LONGEST_WAIT:
        time.sleep(0.02)


def _lock(path: Path, operation: int) -> bool:
    """Locks or unlocks the byte of an entry in the file of locks; False if another process holds it."""
    with contextlib.suppress(OSError):  # a folder of another user
        return files.lock_name(_locks(path.parent), path.name.encode(), operation)
    return True


@functools.cache
def _locks(place: Path) -> int:
    return files.open_for_locks(place / "locks", 0o600)


def discard(path: Path, why: str) -> None:
    """Removes an unusable entry and says so."""
    say(f"{path}: damaged ({why}); the kernel is compiled anew")
    remove(path)


def content(path: Path) -> tuple[bytes, bytes]:
    """The key and the payload of an entry. Raises Damaged or OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not is_ours(os.fstat(descriptor), stat.S_IFREG):
            raise Damaged("others may write to it")
        whole = file.read()
    head = len(MAGIC) + hashlib.sha256().digest_size * 2 + 1
    if whole[:head] != MAGIC + sha256(whole[head:]).encode() + b"\n":
        raise Damaged("its content does not fit its checksum")
    key, _, payload = whole[head:].partition(b"\n")
    return key, payload


def write(path: Path, key: bytes, payload: bytes) -> None:
    """Writes an entry, and removes all but the newest of its kind. If it cannot write, says so once."""
    body = key + b"\n" + payload
    try:
        sweep(path.parent)
        write_whole(path, MAGIC + sha256(body).encode() + b"\n" + body, mode=0o600)
    except OSError as error:
        _not_kept(path.parent, error)
        return
    times = {}
    for each in path.parent.glob(f"{path.name.rpartition('-')[0]}-*{SUFFIX}"):
        with contextlib.suppress(OSError):
            times[each] = each.stat().st_mtime_ns
    for old in sorted(times, key=times.__getitem__, reverse=True)[KEPT:]:
        remove(old)


def entries() -> Iterator[Path]:
    return iter(sorted(place().glob(f"*{SUFFIX}")))


def _not_kept(path: Path, error: OSError) -> None:
    why = error.strerror or error
    _say(f"{path}: compiled kernels are not kept there ({why}); name another folder in $DPMF_KERNELS")


@functools.cache
def _say(text: str) -> None:
    if not children.started:  # the command itself has said it, when it asked for the `folder`
        say(text)


def inspected() -> Iterator[tuple[Path, int, bool]]:
    """Yields the path and the size in bytes of every entry, and whether it is sound, verified as before its use."""
    for path in entries():
        try:
            size = path.stat().st_size
            content(path)
            yield path, size, True
        except FileNotFoundError:
            continue  # another process has just removed it
        except (Damaged, OSError):
            yield path, size, False
