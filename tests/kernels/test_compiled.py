"""What holds for all compiled loops."""

import importlib
import pkgutil

from numba.core.dispatcher import Dispatcher

from dpmf_cli import kernels


def test_kernels_release_the_interpreter() -> None:
    """A worker of a cluster has to answer its scheduler while a kernel runs for minutes, or is taken for dead."""
    modules = [
        importlib.import_module(f"{kernels.__name__}.{each.name}")
        for each in pkgutil.iter_modules(kernels.__path__)
    ]
    compiled = {
        f"{module.__name__}.{name}": found
        for module in modules
        for name, found in vars(module).items()
        if isinstance(found, Dispatcher) and found.py_func.__module__ == module.__name__
    }
    assert len(compiled) > 30
    assert [name for name, found in compiled.items() if not found.targetoptions.get("nogil")] == []
