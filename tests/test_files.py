"""Files that appear completely or not at all: the order of calls to the disk, and which of its errors are ignored."""

import errno
import os
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import platformdirs
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import (
    cache_folder,
    make_folder,
    read_file,
    rename,
    state_folder,
    temporary_folder,
    write_whole,
)
from dpmf_cli.core.streams import Streams, named_generator
from dpmf_cli.testing import make_ratings
from tests.faults.recorder import recorded


def test_a_file_in_the_place_of_a_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    with pytest.raises(FileExistsError):
        make_folder(tmp_path / "a")
    with pytest.raises(NotADirectoryError):
        make_folder(tmp_path / "a" / "b")
    with pytest.raises(FileNotFoundError):
        make_folder(Path("/proc/none/folder"))
    (tmp_path / "link").symlink_to("gone")
    with pytest.raises(FileExistsError, match="link is a link to gone, where nothing is"):
        make_folder(tmp_path / "link" / "b")


def test_both_folders_of_a_rename_are_flushed(tmp_path: Path) -> None:
    make_folder(tmp_path / "to")
    with recorded(tmp_path) as disk, temporary_folder(tmp_path) as folder:
        (folder / "file").write_bytes(b"data")
        rename(folder / "file", tmp_path / "to" / "file")
    flushed = [call.path for call in disk.calls if call.kind == "flush folder"]
    assert sorted(flushed) == sorted([folder.name, "to"])


@pytest.mark.parametrize("answer", [errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EIO])
def test_a_file_system_that_flushes_no_folder_is_let_be_and_one_that_fails_to_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: int
) -> None:
    fsync = os.fsync

    def fsync_files(descriptor: int) -> None:
        if os.path.isdir(f"/proc/self/fd/{descriptor}"):
            raise OSError(answer, os.strerror(answer))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync_files)
    # First the flush of a new folder, then that after a rename.
    for path in (tmp_path / "new" / "a.json", tmp_path / "a.json"):
        fails = pytest.raises(OSError, match="Input/output error") if answer == errno.EIO else nullcontext()
        with fails:
            write_whole(path, b"a")
            assert path.read_bytes() == b"a"


def test_a_file_has_the_rights_that_the_user_gives_new_files(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_whole(tmp_path / "a.json", b"a")
    finally:
        os.umask(before)
    assert (tmp_path / "a.json").stat().st_mode & 0o777 == 0o640


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path):
        with pytest.raises(OSError, match="not a file"):
            read_file(path)
    (tmp_path / "file").write_bytes(b"a")
    assert read_file(tmp_path / "file") == b"a"


def test_no_home_for_a_cache_is_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless(name: str) -> Path:
        raise RuntimeError("could not determine the home directory")

    monkeypatch.delenv("DPMF_CACHE", raising=False)
    monkeypatch.setattr(platformdirs, "user_cache_path", homeless)
    message = r"no folder for caches: .*; set \$HOME, or name a folder in \$DPMF_CACHE"
    with pytest.raises(DpmfError, match=message):
        cache_folder()


def test_state_is_kept_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DPMF_STATE", str(tmp_path))
    assert state_folder() == tmp_path
    monkeypatch.delenv("DPMF_STATE")
    assert state_folder() == platformdirs.user_state_path("dpmf")


def draw(*name: str | int) -> int:
    return int(named_generator(*name).integers(2**62))


def test_a_stream_depends_on_every_part_of_its_name_and_on_nothing_else() -> None:
    names = [(1, "a", "b"), (2, "a", "b"), (1, "ab"), (1, "b", "a"), (1, "a", "b", "")]
    assert len({draw(*name) for name in names}) == len(names)
    assert draw(1, "a", "b") == draw(1, "a", "b")


def test_a_stream_is_the_same_on_every_machine() -> None:
    assert draw(2016, "ml-1m", "isgd", 3, 1, "residuals") == 794978210388990145


def test_each_purpose_of_each_task_has_its_own() -> None:
    tasks = [
        Streams(*key)
        for key in [(1, "d", "a", 0, 0), (1, "d", "a", 0, 1), (1, "d", "a", 1, 0), (1, "d", "b", 0, 0)]
    ]
    drawn = {task.generator(purpose).integers(2**62) for task in tasks for purpose in ("noise", "order")}
    assert len(drawn) == 8


def test_the_draws_of_ratings_come_in_sets_one_after_the_other() -> None:
    streams = Streams(1, "d", "a", 0, 0)
    whole = streams.generator("levels").random(10)
    ratings = make_ratings()
    ten, five = (ratings.select(np.arange(len(ratings)) < count) for count in (10, 5))
    assert streams.of_ratings("levels", ten).tolist() == whole.tolist()
    assert streams.of_ratings("levels", five, 2).ravel().tolist() == whole.tolist()
