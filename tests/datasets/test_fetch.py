"""Fetching: from a local server that misbehaves, and from a file."""

import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import fetch, located
from dpmf_cli.datasets.catalog import CatalogEntry, Content, Download, SourcePart
from tests.datasets.building import MakeEntry, zipped
from tests.datasets.server import cut, serving

U_DATA = b"100\t30\t4\t11\n7\t30\t5\t12\n7\t4\t3\t13\n"
GOOD = zipped({"u.data": U_DATA})


def digest(data: bytes, kind: str = "sha256") -> str:
    return f"{kind}:{hashlib.new(kind, data).hexdigest()}"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A server's address; addresses of this machine are treated as if they used https."""
    monkeypatch.setattr(fetch, "SCHEMES", ("http://127.0.0.1:",))
    with serving({"/good": GOOD, "/corrupted": GOOD[:-1] + b"x", "/cut": cut(GOOD)}) as address:
        yield address


def served(make_entry: MakeEntry, server: str, *paths: str, kind: str = "sha256") -> CatalogEntry:
    urls = [path if path.startswith("http") else f"{server}/{path}" for path in paths]
    return make_entry(
        digests=frozenset({digest(GOOD, kind)}),
        mirrors=tuple(Download(url, "tiny.zip", digest(GOOD, kind), len(GOOD)) for url in urls),
    )


def run(entry: CatalogEntry, data: Path, cache: Path, *, accept: bool = True) -> tuple[list[Path], str]:
    out = io.StringIO()
    asked: list[str] = []

    def confirm(question: str) -> bool:
        asked.append(question)
        return accept

    places = fetch.fetch(entry, data, cache, confirm=confirm, out=out)
    assert len(asked) <= 1
    return places, out.getvalue()


@pytest.mark.parametrize("kind", ["sha256", "md5"])
def test_good(server: str, data: Path, cache: Path, make_entry: MakeEntry, kind: str) -> None:
    places, said = run(served(make_entry, server, "good", kind=kind), data, cache)
    assert places == [data / "tiny.zip"]
    assert (data / "tiny.zip").read_bytes() == GOOD
    assert said.index("free for tests") < said.index("fetching tiny.zip from http")
    assert sorted(os.listdir(data)) == ["tiny.zip", "tiny.zip.source"]
    assert located.origin(data / "tiny.zip") == f"{server}/good"


def test_what_is_there_and_sound_is_left_alone(data: Path, cache: Path, make_entry: MakeEntry) -> None:
    entry = served(make_entry, "http://127.0.0.1:1", "good")
    (data / "tiny.zip").write_bytes(GOOD)
    assert run(entry, data, cache) == ([data / "tiny.zip"], f"{data / 'tiny.zip'}: already there\n")


def test_what_is_there_and_broken_is_replaced(
    server: str, data: Path, cache: Path, make_entry: MakeEntry
) -> None:
    (data / "tiny.zip").write_bytes(GOOD[:30])
    run(served(make_entry, server, "good"), data, cache)
    assert (data / "tiny.zip").read_bytes() == GOOD


@pytest.mark.parametrize("bad", ["corrupted", "cut", "gone", "http://127.0.0.1:1/dead"])
def test_a_bad_mirror_leaves_nothing_and_the_next_is_tried(
    server: str, data: Path, cache: Path, make_entry: MakeEntry, bad: str
) -> None:
    with pytest.raises(DpmfError) as error:
        run(served(make_entry, server, bad), data, cache)
    message = str(error.value)
    assert "none of its mirrors gave tiny.zip" in message
    assert (bad if bad.startswith("http") else f"{server}/{bad}") in message
    assert "dpmf datasets fetch tiny --from-file tiny.zip" in message
    assert os.listdir(data) == []
    places, said = run(served(make_entry, server, bad, "good"), data, cache)
    assert places[0].read_bytes() == GOOD
    assert said.count("failed: ") == 1
    assert located.origin(places[0]) == f"{server}/good"


def test_terms_not_accepted(server: str, data: Path, cache: Path, make_entry: MakeEntry) -> None:
    with pytest.raises(DpmfError, match="not accepted, nothing was downloaded"):
        run(served(make_entry, server, "good"), data, cache, accept=False)
    assert os.listdir(data) == []


def test_no_mirrors(data: Path, cache: Path, make_entry: MakeEntry) -> None:
    with pytest.raises(DpmfError, match=r"there is no download of it; .*--from-file PATH"):
        run(make_entry(), data, cache)


def test_data_folder_that_cannot_be(server: str, tmp_path: Path, cache: Path, make_entry: MakeEntry) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DpmfError, match=r"cannot be written.*\$DPMF_DATA"):
        run(served(make_entry, server, "good"), tmp_path / "file", cache)


@pytest.mark.parametrize("text", ["", "[]", "{}", "\udcff"])
def test_a_note_of_origin_that_is_broken_says_nothing(data: Path, text: str) -> None:
    located.note_of_origin(data / "a").write_bytes(text.encode(errors="surrogateescape"))
    assert located.origin(data / "a") is None


@pytest.mark.parametrize(
    ("name", "kept_as"), [("tiny.zip", "tiny.zip"), ("download (1).zip", "tiny.zip"), ("a.tgz", "tiny.zip")]
)
def test_from_file(
    tmp_path: Path, data: Path, cache: Path, make_entry: MakeEntry, name: str, kept_as: str
) -> None:
    entry = make_entry(digests=frozenset({digest(GOOD)}))
    (tmp_path / name).write_bytes(GOOD)
    assert fetch.take(entry, tmp_path / name, data, cache) == data / kept_as
    assert (data / kept_as).read_bytes() == GOOD
    assert (tmp_path / name).exists()
    assert os.listdir(data) == [kept_as]


@pytest.mark.parametrize("relative", [True, False])
def test_from_file_through_a_symbolic_link(
    tmp_path: Path, data: Path, cache: Path, make_entry: MakeEntry, relative: bool
) -> None:
    (tmp_path / "held.zip").write_bytes(GOOD)
    (tmp_path / "tiny.zip").symlink_to("held.zip" if relative else tmp_path / "held.zip")
    place = fetch.take(make_entry(digests=frozenset({digest(GOOD)})), tmp_path / "tiny.zip", data, cache)
    assert not place.is_symlink()
    assert place.read_bytes() == GOOD


def test_a_file_of_the_users_is_no_longer_said_to_be_a_mirrors(
    server: str, tmp_path: Path, data: Path, cache: Path, make_entry: MakeEntry
) -> None:
    entry = served(make_entry, server, "good")
    place = run(entry, data, cache)[0][0]
    (tmp_path / "tiny.zip").write_bytes(GOOD)
    assert fetch.take(entry, tmp_path / "tiny.zip", data, cache) == place
    assert located.origin(place) is None


def test_from_file_zipped_again_is_known_by_its_content(
    tmp_path: Path, data: Path, cache: Path, make_entry: MakeEntry
) -> None:
    entry = make_entry(contents=(Content("u.data", "u.data", frozenset({digest(U_DATA)})),))
    (tmp_path / "mine.zip").write_bytes(zipped({"mine/u.data": U_DATA}))
    assert fetch.take(entry, tmp_path / "mine.zip", data, cache) == data / "tiny.zip"


def test_from_file_without_a_digest_is_known_by_its_counts(
    tmp_path: Path, data: Path, cache: Path, make_entry: MakeEntry
) -> None:
    (tmp_path / "u.data").write_bytes(U_DATA)
    said = io.StringIO()
    assert fetch.take(make_entry(), tmp_path / "u.data", data, cache, out=said) == data / "u.data"
    assert said.getvalue() == (
        f"{tmp_path / 'u.data'}: its checksum is not published; counted 3 ratings by 2 users of 2 items, mean 4.00000, "
        "variance 0.66667, as in Tiny set\n"
    )
    for ratings, name in (((3, 5, 3), "mean"), ((4, 4, 4), "variance")):
        (tmp_path / "u.data").write_bytes(b"100\t30\t%d\t11\n7\t30\t%d\t12\n7\t4\t%d\t13\n" % ratings)
        with pytest.raises(
            DpmfError, match=f"the {name} of its ratings is .*, but Tiny set has .*another version"
        ):
            fetch.take(make_entry(), tmp_path / "u.data", data, cache)
    (tmp_path / "u.data").write_bytes(U_DATA[:12])
    with pytest.raises(DpmfError, match="but Tiny set has 3 ratings"):
        fetch.take(make_entry(), tmp_path / "u.data", data, cache)


def test_what_is_there_without_a_checksum_is_counted_and_replaced_if_it_is_another(
    server: str, data: Path, cache: Path, make_entry: MakeEntry
) -> None:
    entry = served(make_entry, server, "good")
    (data / "u.data").write_bytes(U_DATA)
    places, said = run(entry, data, cache)
    assert places == [data / "u.data"]
    assert "counted 3 ratings by 2 users of 2 items" in said
    (data / "u.data").write_bytes(U_DATA.replace(b"4\t11", b"3\t11"))
    places, said = run(entry, data, cache)
    assert places == [data / "tiny.zip"]
    assert "the mean of its ratings is 3.66667, but Tiny set has 4.00000" in said


def test_one_whose_checksum_is_known_is_not_counted_aloud(
    tmp_path: Path, data: Path, cache: Path, make_entry: MakeEntry
) -> None:
    entry = make_entry(contents=(Content("u.data", "u.data", frozenset({digest(U_DATA)})),))
    (tmp_path / "u.data").write_bytes(U_DATA)
    said = io.StringIO()
    fetch.take(entry, tmp_path / "u.data", data, cache, out=said)
    assert said.getvalue() == ""


def test_from_file_that_is_something_else(
    tmp_path: Path, data: Path, cache: Path, make_entry: MakeEntry
) -> None:
    entry = make_entry(contents=(Content("u.data", "u.data", frozenset({digest(U_DATA)})),))
    (tmp_path / "a.zip").write_bytes(zipped({"photo.jpg": b"x"}))
    (tmp_path / "b.zip").write_bytes(zipped({"u.data": U_DATA + b"1\t1\t1\t1\n"}))
    (tmp_path / "c.zip").write_bytes(GOOD[:40])
    for name, message in (
        ("a.zip", "holds no u.data: it is not"),
        ("b.zip", "its checksum is"),
        ("c.zip", "damaged or cut off"),
        ("d.zip", "not a file"),
        ("", "a folder can be used where it is"),
    ):
        with pytest.raises(DpmfError, match=message):
            fetch.take(entry, tmp_path / name, data, cache)
    assert os.listdir(data) == []


def test_from_file_finds_its_part(tmp_path: Path, data: Path, cache: Path, make_entry: MakeEntry) -> None:
    archives = [zipped({f"{n}.data": U_DATA}) for n in (1, 2)]
    entry = make_entry(
        parts=tuple(
            SourcePart((f"part{n}.zip",), (Content(f"{n}.data", "u.data", frozenset({digest(U_DATA)})),))
            for n in (1, 2)
        )
    )
    (tmp_path / "x.zip").write_bytes(archives[1])
    assert fetch.take(entry, tmp_path / "x.zip", data, cache) == data / "part2.zip"
