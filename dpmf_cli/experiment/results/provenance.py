"""Provenance: the code, packages and processor that a result was made with, as far as this machine can tell."""

import hashlib
import platform
import subprocess
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import dpmf_cli
from dpmf_cli import __version__

PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "pandas", "pydantic")


def versions() -> dict[str, str]:
    """The versions of dpmf, of Python and of the packages that can change a number."""
    return {
        "dpmf": __version__,
        "python": platform.python_version(),
        **{package: metadata.version(package) for package in PACKAGES},
    }


@lru_cache(maxsize=1)
def code_digest() -> str:
    """A digest (hex) of dpmf's own modules. It tells two commits of one version apart."""
    root = Path(dpmf_cli.__file__).resolve().parent
    state = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        content = path.read_bytes()
        state.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
    return state.hexdigest()


@lru_cache(maxsize=1)
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
    """The commit that dpmf runs from, and whether the checkout differs from that commit; None outside a checkout."""
    folder = Path(dpmf_cli.__file__).resolve().parent
    if not (folder.parent / ".git").exists():
        return None  # git would ask a repository around an environment, which may name programs for it to run

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(folder), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # else the checkout is another project's
        return {"commit": git("rev-parse", "HEAD"), "modified": bool(git("status", "--porcelain", "--", "."))}
    except (OSError, subprocess.SubprocessError):
        return None
