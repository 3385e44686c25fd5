"""The one decorator of compiled functions: numba's, with a cache whose entries are verified before they are used.

It relies on these parts of numba (0.60 or newer):

- A dispatcher's `_cache`. Numba calls its `load_overload` before it compiles a signature, and its `save_overload`
  with the compile result.
- `CompileResult._reduce` and `_rebuild`. Numba's own cache uses them to make a compile result picklable and to
  restore it.
- `_reset_overloads`, which makes a dispatcher forget what it has compiled.
"""

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from dpmf_cli.compiled import entries, identity
from dpmf_cli.compiled.selfcheck import Example, check


def compiled(*examples: Example, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Returns a decorator. Numba compiles the function at its first call. The function runs without Python's lock.

    examples  arguments on which new machine code is compared with its plain twin. A function that only other compiled
              functions call needs none: it is checked as a part of them
    options   options of numba, such as `inline`
    """

    def declare(function: Callable[..., Any]) -> Any:
        identity.note_source(function.__module__)
        dispatcher: Any = njit(nogil=True, **options)(function)
        dispatcher._cache = KernelCache(dispatcher, examples)
        return dispatcher

    return declare


class KernelCache(NullCache):
    """The cache of one compiled function. It checks new machine code before the code is kept or used."""

    def __init__(self, dispatcher: Any, examples: Sequence[Example]) -> None:
        self.dispatcher, self.examples = dispatcher, examples

    @property
    def cache_path(self) -> str | None:
        folder = entries.folder()
        return None if folder is None else str(folder)

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
        key = identity.key_of(self.dispatcher, signature, codegen.magic_tuple())
        line, folder = identity.as_bytes(key), entries.folder()
        name = entries.file_of(key["kernel"], key["signature"], line)
        return (None if folder is None else folder / name), line
