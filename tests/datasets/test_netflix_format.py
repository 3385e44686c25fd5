"""The Netflix Prize's files: dates, blocks cut at any place, faults by file and line, probe and judging lists."""

from pathlib import Path

import numpy as np
import pytest

from dpmf_cli.datasets import Folders, load
from dpmf_cli.datasets.catalog import Content
from dpmf_cli.datasets.formats import netflix
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.errors import DpmfError
from tests.datasets.building import MakeEntry, tarred
from tests.datasets.tiny import NETFLIX, check_tiny, read


def test_netflix_dates_become_seconds(tmp_path: Path, cache: Path, make_entry: MakeEntry) -> None:
    make_entry(contents=(Content("c.txt", "netflix"),))
    (tmp_path / "c.txt").write_bytes(NETFLIX)
    times = read(tmp_path / "c.txt", cache).ratings.columns["timestamp"]
    days = [np.datetime64(int(time), "s").astype("datetime64[D]").astype(str) for time in times]
    assert days == ["2000-02-29", "2005-12-31", "1970-01-01"]


def test_stand_in_times_are_dropped(tmp_path: Path, real_data: Path, session_cache: Path) -> None:
    spec = CatalogSpec(name="netflix-sample")
    assert not load(spec, Folders(real_data, session_cache, tmp_path)).ratings.columns


@pytest.mark.parametrize("block", [1, 7, 16, 40, 1000])
def test_netflix_blocks_may_cut_anywhere(
    tmp_path: Path, cache: Path, make_entry: MakeEntry, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(netflix, "_BLOCK", block)
    make_entry(contents=(Content("mv_*.txt", "netflix"),))
    folder = tmp_path / "training_set"
    folder.mkdir()
    first, second = NETFLIX[: NETFLIX.index(b"4:")], NETFLIX[NETFLIX.index(b"4:") :]
    (folder / "mv_0000030.txt").write_bytes(first.replace(b"30:", b"30:", 1))
    (folder / "mv_0000004.txt").write_bytes(b"4:\n" + second.partition(b"\n")[2])
    check_tiny(read(folder, cache))
    for file in folder.iterdir():
        file.unlink()
    (folder / "mv_all.txt").write_bytes(NETFLIX)
    check_tiny(read(folder, cache))


@pytest.mark.parametrize("block", [1, 16, 1000])
def test_netflix_fault_has_its_own_line(
    tmp_path: Path, cache: Path, make_entry: MakeEntry, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(netflix, "_BLOCK", block)
    make_entry(contents=(Content("mv_*.txt", "netflix"),))
    (tmp_path / "mv_1.txt").write_bytes(b"1:\n5,3,2005-01-01\n")
    (tmp_path / "mv_2.txt").write_bytes(b"2:\n5,3,2005-01-01\n6,3,2005-01-01\n7,3;2005-01-01\n")
    with pytest.raises(DpmfError, match=r'mv_2.txt:4: "7,3;2005-01-01" is not customer,rating,date'):
        read(tmp_path, cache)


def test_probe_and_judging(tmp_path: Path) -> None:
    (tmp_path / "probe.txt").write_bytes(b"1:\n30878\n2647871\n10:\n5\n")
    movies, customers = netflix.read_probe(tmp_path / "probe.txt")
    assert movies.tolist() == [1, 1, 10]
    assert customers.tolist() == [30878, 2647871, 5]
    for text in (b"1:\n30878,4,2005-12-26\n10:\n5,1,2004-01-01\n", b"1:\n30878,4\n10:\n5,1\n"):
        (tmp_path / "a.tar.gz").write_bytes(tarred({"grand_prize/judging.txt": text}, "w:gz"))
        movies, customers, ratings = netflix.read_judging(tmp_path / "a.tar.gz")
        assert (movies.tolist(), customers.tolist(), ratings.tolist()) == ([1, 10], [30878, 5], [4, 1])
    (tmp_path / "probe.txt").write_bytes(b"1:\n3,4\n")
    with pytest.raises(DpmfError, match=r"probe.txt:2: .* is not customer"):
        netflix.read_probe(tmp_path / "probe.txt")
    with pytest.raises(DpmfError, match=r"holds no probe\.txt"):
        netflix.read_probe(tmp_path / "a.tar.gz")
