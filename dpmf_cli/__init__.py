"""dpmf: experiments on differentially private recommenders, from a YAML config to a crossing table.

`__all__` is the interface for programs (docs/python.md). Each name is imported on first use, and nothing else here,
because `__main__` must come first, to take the working directory off the path.
"""

from dpmf_cli.core import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MODULES = {
    "DpmfError": "core.errors",
    **dict.fromkeys(("fit", "load_model", "own_ratings"), "releasing.publishing"),
    **dict.fromkeys(("advise", "run"), "studies.session"),
}
__all__ = list(_MODULES)


def __getattr__(name: str) -> "Any":
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"dpmf_cli.{_MODULES[name]}"), name)
