"""Gets a file from a mirror: an address, or a release on the package index.

Nothing that is downloaded is run: a release is only read, never built or installed.
"""

import html
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from dpmf_cli.datasets import archives, checksums, downloads
from dpmf_cli.datasets.archives import Wanted
from dpmf_cli.datasets.downloads import MirrorError
from dpmf_cli.datasets.entry import Download, IndexPackage

if TYPE_CHECKING:
    import requests

_MOST_OF_A_PAGE = 32 << 20
"""Most bytes of an index's page about a package."""


def download(mirror: Download | IndexPackage, folder: Path) -> Path:
    """Downloads a file with the right checksum into `folder`. Raises `MirrorError` if the mirror gives none."""
    if isinstance(mirror, IndexPackage):
        return _member(mirror, _release(mirror, folder), folder / "kept")
    place = folder / "file"
    downloads.download(downloads.session(), mirror.url, place, mirror.most_bytes, mirror.digest)
    return place


def _release(mirror: IndexPackage, folder: Path) -> Path:
    """Downloads the release's own file, from the first of the user's indexes that gives it.

    Raises MirrorError, with the reasons, if none does.
    """
    options = _pip_options()
    indexes = () if options.no_index else (options.index_url, *options.extra_index_urls)
    reasons = []
    for number, index in enumerate(indexes):
        if not index.startswith(("https://", "http://")):
            continue
        # The user's own index is asked as it is configured, even without https: the digest is checked.
        asked = downloads.session(also=index if index.startswith("http://") else "")
        asked.verify = options.cert or True
        asked.proxies = {"http": options.proxy, "https": options.proxy} if options.proxy else {}
        try:
            # One file for each index, since a download that was given up may still write to its file.
            place = folder / f"release{number}"
            url = _listed(mirror, index, asked, folder / f"page{number}")
            downloads.download(asked, url, place, mirror.most_bytes, mirror.release)
            return place
        except MirrorError as error:
            reasons.append(str(error))
    raise MirrorError("; ".join(dict.fromkeys(reasons)) or "pip is configured without a package index")


def _listed(mirror: IndexPackage, index: str, asked: "requests.Session", place: Path) -> str:
    """Returns the address of the release's file, from the index's page about the package (PEP 503)."""
    name = re.sub("[-_.]+", "-", mirror.requirement.partition("==")[0]).lower()
    page = downloads.download(asked, f"{index.rstrip('/')}/{name}/", place, _MOST_OF_A_PAGE, None)
    fragment = mirror.release.replace(":", "=")
    link = re.search(rf"""href=["']([^"'#]+)#{fragment}["']""", place.read_text("utf-8", errors="replace"))
    if link is None:
        raise MirrorError("the index lists no file of that release with the right checksum")
    return urljoin(page, html.unescape(link[1]))


def _pip_options() -> Any:
    """Returns the options that pip would use: `index_url`, `extra_index_urls`, `no_index`, `cert`, `proxy`.

    pip has no public interface for this; its own parser reads defaults, files and environment.
    """
    try:
        from pip._internal.commands import create_command

        return create_command("download").parse_args([])[0]
    except (Exception, SystemExit) as error:
        raise MirrorError(f"pip cannot be asked where the index is: {error}") from error


def _member(mirror: IndexPackage, release: Path, kept: Path) -> Path:
    """Copies the one wanted file out of a release, which is read as an archive, to `kept`.

    Raises MirrorError if the release has no such file with the right checksum.
    """
    for member in archives.members(release, Wanted((mirror.member,))):
        with kept.open("wb") as file:
            shutil.copyfileobj(member.stream, file)
        with kept.open("rb") as file:
            if checksums.digest(file, checksums.kinds([mirror.digest])[0]) == mirror.digest:
                return kept
    raise MirrorError(f"the release has no {mirror.member} with the right checksum")
