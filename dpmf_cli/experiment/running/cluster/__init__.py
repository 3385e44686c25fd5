"""Runs tasks on the workers of a Dask cluster: `executor.py` and `session.py` here, `worker.py` on the workers.

Everything here needs the extra `dpmf[cluster]`, which is imported only when a scheduler is named.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dpmf_cli.core.errors import DpmfError, without_extra

if TYPE_CHECKING:
    from dpmf_cli.experiment.running.cluster.executor import ClusterExecutor


def cluster_executor(address: str, wait: float, say: Callable[[str], None]) -> "ClusterExecutor":
    """The executor for a scheduler's address. Raises DpmfError if it is not an address, or without the extra."""
    if not _is_address(address):
        raise DpmfError(
            f'--scheduler: "{address}" is not the address of a scheduler; name it as tcp://host:8786'
        )
    try:
        from dpmf_cli.experiment.running.cluster.executor import ClusterExecutor
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("dask", "distributed"):
            raise
        raise without_extra(f"--scheduler: {error}", "cluster") from None
    return ClusterExecutor(address, wait, say)


def _is_address(text: str) -> bool:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        return False
    return bool(parts.scheme in ("tcp", "tls") and host and port and text.partition("://")[2] == parts.netloc)
