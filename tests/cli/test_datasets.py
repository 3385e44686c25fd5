"""`dpmf datasets`: results on stdout, everything else on stderr, JSON on request."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from dpmf_cli.cli.main import app
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import catalog
from dpmf_cli.datasets.catalog import Content
from dpmf_cli.papers.printed import printed_statistics
from tests.datasets.building import U_DATA, Shelf, zipped

TINY = zipped({"u.data": U_DATA})


@pytest.fixture(autouse=True)
def folders(monkeypatch: pytest.MonkeyPatch, data: Path, cache: Path) -> None:
    monkeypatch.setenv("DPMF_DATA", str(data))
    monkeypatch.setenv("DPMF_CACHE", str(cache))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["datasets", *arguments])


def parsed(*arguments: str) -> Any:
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def error_of(*arguments: str) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, DpmfError), result.output
    return str(result.exception)


def test_list(shelf: Shelf) -> None:
    shelf.put("tiny.zip", TINY)
    rows = {row["key"]: row for row in parsed("list", "--json")}
    assert list(rows) == list(catalog.ENTRIES)
    assert rows["tiny"]["files"] == [str(shelf.data / "tiny.zip")]
    assert [row["key"] for row in rows.values() if row["present"]] == ["tiny"]
    lines = run("list").stdout.splitlines()
    assert lines[0].split() == ["key", "ratings", "present", "title", "where"]
    (line,) = [line for line in lines if line.startswith("tiny")]
    assert line.endswith(str(shelf.data / "tiny.zip"))


def test_info_without_data() -> None:
    result = run("info", "ml-10m")
    assert "–" in result.stdout
    assert "65,133" in result.stdout
    assert "doi:10.1145/2827872" in result.stdout
    assert "get it with `dpmf datasets fetch ml-10m`" in result.stderr
    content = parsed("info", "ml-10m", "--json")
    assert content["counted"] is None
    assert content["expected"]["items"] == 10_677
    assert content["printed"]["items"] == 65_133


def test_info_with_data(shelf: Shelf) -> None:
    shelf.put("tiny.zip", TINY)
    shelf.entry(Content("u.data", "u.data", frozenset({"sha256:0"})))
    assert "its checksum is" in error_of("info", "tiny")
    shelf.entry()
    content = parsed("info", "tiny", "--json")
    assert content["printed"] is None
    counts = {"users": 2, "items": 2, "ratings": 3, "per_user": 1.5, "per_item": 1.5}
    assert content["counted"] == pytest.approx({**counts, "density": 0.75, "mean": 4, "variance": 2 / 3})


def test_the_mirror_of_a_file_is_told(shelf: Shelf) -> None:
    shelf.put("tiny.zip", TINY)
    (shelf.data / "tiny.zip.source").write_text('{"mirror": "https://example.org/a\\nb", "digest": "md5:1"}')
    place, mirror = str(shelf.data / "tiny.zip"), "https://example.org/a\nb"
    (row,) = [row for row in parsed("list", "--json") if row["key"] == "tiny"]
    assert (row["files"], row["fetched_from"]) == ([place], [mirror])
    content = parsed("info", "tiny", "--json")
    assert (content["files"], content["fetched_from"]) == ([place], [mirror])
    shown = r"https://example.org/a\u000ab"
    assert f"{place} from {shown}" in run("list").stdout
    assert f"File: {place} from {shown}" in run("info", "tiny").stdout


@pytest.mark.parametrize("key", ["ml-100k", "ml-1m", "ml-10m", "netflix"])
def test_table_2_is_read_from_the_paper(key: str) -> None:
    printed = printed_statistics(key)
    assert printed is not None
    expected = catalog.entry(key).expected
    assert printed["ratings"] == expected.ratings
    assert printed["mean"] == pytest.approx(expected.mean, abs=1e-4)
    assert printed["variance"] == pytest.approx(expected.variance, abs=1e-4)


def test_fetch_from_file(tmp_path: Path, shelf: Shelf) -> None:
    (tmp_path / "mine.zip").write_bytes(TINY)
    result = run("fetch", "tiny", "--from-file", str(tmp_path / "mine.zip"))
    assert result.stdout == f"{shelf.data / 'tiny.zip'}\n"


def test_fetch_asks_nobody_in_a_script() -> None:
    assert "dpmf cannot ask here whether you accept these terms; add --yes to accept them" in error_of(
        "fetch", "ml-1m"
    )


def test_unknown_key() -> None:
    for command in ("info", "fetch"):
        assert 'did you mean "ml-100k"?' in error_of(command, "ml-10k0")
