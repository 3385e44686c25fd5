"""dpmf: experiments on differentially private recommenders, from a YAML config to a crossing table.

`fit`, `load_model` and `own_ratings` are the interface for programs (docs/guides/releasing.md). Each is imported on
first use. Nothing else is imported here: `__main__` must come first, to take the working directory off the path.
"""

from dpmf_cli.core import __version__ as __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["fit", "load_model", "own_ratings"]


def __getattr__(name: str) -> "Any":
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module("dpmf_cli.releasing.publishing"), name)
