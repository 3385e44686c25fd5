"""Downloads files. This is the only way in for bytes from elsewhere: over https, as a stream, within limits of size
and time, checked by digest."""

import hashlib
import re
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dpmf_cli.terminal import unguarded

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
    """Says in a few words why a mirror failed; the next mirror is tried."""


def session(also: str = "") -> "requests.Session":
    """Returns a session that asks only https addresses, and the host of `also`, an address that the user named."""
    import requests
    from requests.adapters import HTTPAdapter

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
        raise MirrorError(_short(error)) from error


def _short(error: Exception) -> str:
    """Returns the innermost reason of a network error, without the errors around it."""
    inner = error.args[0] if error.args else error
    return re.split("[>)]: ", str(getattr(inner, "reason", inner)))[-1][:200] or type(error).__name__
