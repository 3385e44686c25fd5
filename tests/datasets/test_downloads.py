"""The downloader: https only, bounded in size and time, verified by hash; every refusal is reported."""

import hashlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from dpmf_cli.datasets import fetch
from dpmf_cli.datasets.fetch import MirrorError
from tests.datasets.server import Answer, cut, redirect, send, serving, without_length

BODY = bytes(range(256)) * 1000
DIGEST = f"sha256:{hashlib.sha256(BODY).hexdigest()}"


@pytest.fixture
def answers() -> dict[str, Answer]:
    return {"/good": BODY}


@pytest.fixture
def server(answers: dict[str, Answer]) -> Iterator[str]:
    with serving(answers) as address:
        yield address


@pytest.fixture
def allowed(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The server's address, treated as if it used https."""
    monkeypatch.setattr(fetch, "SCHEMES", ("https://", f"{server}/"))
    return server


def got(url: str, place: Path, *, most: int = len(BODY), digest: str | None = DIGEST) -> str:
    return fetch.download(fetch.session(), url, place / "file", most, digest)


def test_a_file_of_the_right_size_and_hash(allowed: str, tmp_path: Path) -> None:
    assert got(f"{allowed}/good", tmp_path) == f"{allowed}/good"
    assert (tmp_path / "file").read_bytes() == BODY


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/good", "ftp://127.0.0.1/good", "file:///etc/passwd"])
def test_an_address_without_https_is_refused_unasked(url: str, tmp_path: Path) -> None:
    with pytest.raises(MirrorError, match="an address without https; refused"):
        got(url, tmp_path)


def test_the_shipped_session_knows_https_alone() -> None:
    assert fetch.SCHEMES == ("https://",)


def test_a_redirect_to_an_address_without_https_is_refused(
    allowed: str, answers: dict[str, Answer], tmp_path: Path
) -> None:
    answers["/away"] = redirect(f"{allowed.replace('127.0.0.1', 'localhost')}/good")
    answers["/on"] = redirect("/good")
    with pytest.raises(MirrorError, match="an address without https; refused"):
        got(f"{allowed}/away", tmp_path)
    assert got(f"{allowed}/on", tmp_path) == f"{allowed}/good"


def test_a_host_that_the_user_named_is_asked_without_https_and_no_other(
    server: str, answers: dict[str, Answer], tmp_path: Path
) -> None:
    answers["/away"] = redirect(f"{server.replace('127.0.0.1', 'localhost')}/good")
    for also in (server, server.replace("//", "//user:word@")):
        asked = fetch.session(also)
        fetch.download(asked, f"{server}/good", tmp_path / "file", len(BODY), DIGEST)
        with pytest.raises(MirrorError, match="an address without https; refused"):
            fetch.download(asked, f"{server}/away", tmp_path / "file", len(BODY), DIGEST)
    for other in ("127.0.0.1", f"{server}0"):
        with pytest.raises(MirrorError, match="an address without https; refused"):
            fetch.download(fetch.session(other), f"{server}/good", tmp_path / "file", 1, None)


@pytest.mark.parametrize("claimed", [True, False])
def test_more_bytes_than_expected_are_not_written(
    allowed: str, answers: dict[str, Answer], tmp_path: Path, claimed: bool
) -> None:
    answers["/large"] = BODY * 100 if claimed else without_length(BODY * 100)
    with pytest.raises(MirrorError, match="gives more than 256,000 bytes; refused"):
        got(f"{allowed}/large", tmp_path)
    assert (tmp_path / "file").stat().st_size <= len(BODY)


@pytest.mark.parametrize(("part", "slow"), [(1.01, True), (0.99, False)])
def test_a_file_that_comes_too_slowly_is_given_up(
    allowed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: float, slow: bool
) -> None:
    """At a rate just below the minimum and just above it, with a clock that the test sets."""
    body = [("", BODY[:100]), ("", BODY[100:])]
    limits = [fetch.PATIENCE + size / fetch.LEAST_RATE for size in (100, len(BODY))]
    looks = iter([0.0, 0.99 * limits[0], part * limits[1]])
    monkeypatch.setattr(fetch, "_blocks", lambda asked, url: iter(body))
    monkeypatch.setattr(fetch, "monotonic", lambda: next(looks))
    if slow:
        with pytest.raises(MirrorError, match="less than 20 kB a second; given up"):
            got(f"{allowed}/good", tmp_path)
    else:
        got(f"{allowed}/good", tmp_path)


def test_a_server_that_never_ends_its_headers_is_given_up(
    allowed: str, answers: dict[str, Answer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def trickle(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.0 200 OK\r\nX: ")
        ended.wait(60)

    answers["/never"] = trickle
    monkeypatch.setattr(fetch, "PATIENCE", 0.1)
    with pytest.raises(MirrorError, match="gave no complete file in 0 s; given up"):
        got(f"{allowed}/never", tmp_path, most=0)
    ended.set()


def test_a_wrong_hash_is_refused(allowed: str, answers: dict[str, Answer], tmp_path: Path) -> None:
    answers["/changed"] = BODY[:-1] + b"x"
    with pytest.raises(MirrorError, match="wrong checksum"):
        got(f"{allowed}/changed", tmp_path)
    md5 = f"md5:{hashlib.md5(BODY).hexdigest()}"
    got(f"{allowed}/good", tmp_path, digest=md5)


def test_what_was_cut_off_is_refused_and_comes_whole_the_next_time(
    allowed: str, answers: dict[str, Answer], tmp_path: Path
) -> None:
    answers["/file"] = cut(BODY)
    with pytest.raises(
        MirrorError, match=r"Connection broken: IncompleteRead\(50 bytes read, 255950 more expected\)$"
    ):
        got(f"{allowed}/file", tmp_path)
    answers["/file"] = without_length(BODY[:50])
    with pytest.raises(MirrorError, match="wrong checksum, or was cut off"):
        got(f"{allowed}/file", tmp_path)
    answers["/file"] = lambda handler: send(handler, BODY, len(BODY))
    got(f"{allowed}/file", tmp_path)
    assert (tmp_path / "file").read_bytes() == BODY


def test_reasons_are_told_in_short(allowed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MirrorError, match="404"):
        got(f"{allowed}/gone", tmp_path)
    monkeypatch.setattr(fetch, "SCHEMES", ("http://127.0.0.1:",))
    with pytest.raises(MirrorError, match="Connection refused") as error:
        got("http://127.0.0.1:1/dead", tmp_path)
    assert len(str(error.value)) < 100


def test_a_disk_that_cannot_be_written_is_no_fault_of_the_mirror(allowed: str, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        got(f"{allowed}/good", tmp_path / "gone")
