"""Provenance: what a result was made with, as far as this machine can tell."""

import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

from dpmf_cli import __version__

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "pandas", "pydantic")


def versions() -> dict[str, str]:
    """dpmf, Python and the packages that can change a number."""
    return {
        "dpmf": __version__,
        "python": platform.python_version(),
        **{package: metadata.version(package) for package in PACKAGES},
    }


def cpu() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def git_state() -> dict[str, Any] | None:
    """The commit that dpmf runs from and whether the checkout differs from it; None outside a checkout."""
    folder = Path(__file__).resolve().parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", Path(__file__).name)  # else the checkout is another project's
        return {"commit": git("rev-parse", "HEAD"), "modified": bool(git("status", "--porcelain", "--", "."))}
    except (OSError, subprocess.SubprocessError):
        return None
