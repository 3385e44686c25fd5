"""Tasks on the workers of a Dask cluster: `executor.py` and `session.py` on this side, `worker.py` on theirs.

Everything here needs the extra `dpmf[cluster]`, which is imported only once a scheduler is named.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from dpmf_cli.errors import DpmfError

if TYPE_CHECKING:
    from dpmf_cli.cluster.executor import ClusterExecutor


def cluster_executor(address: str, wait: float, say: Callable[[str], None]) -> "ClusterExecutor":
    """The executor for a scheduler's address; a `DpmfError` where the extra is not installed."""
    try:
        from dpmf_cli.cluster.executor import ClusterExecutor
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("dask", "distributed"):
            raise
        raise DpmfError(f'--scheduler: {error}; install it with: pip install "dpmf[cluster]"') from None
    return ClusterExecutor(address, wait, say)
