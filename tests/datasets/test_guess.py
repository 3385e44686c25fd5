"""What is guessed about a file of ratings: layout, columns and scale, in keys of a config and in words."""

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.datasets import Folders, load
from dpmf_cli.datasets.formats.guess import Told, guess_format
from dpmf_cli.datasets.formats.own_columns import scale_of
from dpmf_cli.datasets.spec import CsvSpec
from tests.datasets.building import parquet, sheet, zipped
from tests.datasets.test_own_files import ROWS

RNG = random.Random(3)
PAIRS = sorted({(RNG.randrange(1, 60), RNG.randrange(100, 140)) for _ in range(500)})
DRAWN = [(u, i, RNG.randrange(1, 10) / 2, 978_300_760 + 1000 * n) for n, (u, i) in enumerate(PAIRS)]


def written(separator: str, header: str = "", form: str = "{u}{s}{i}{s}{r}{s}{t}") -> bytes:
    lines = [form.format(u=u, i=i, r=r, t=t, s=separator, n=n) for n, (u, i, r, t) in enumerate(DRAWN)]
    return ("\n".join([*([header] if header else []), *lines]) + "\n").encode()


FOUR = {"user": 0, "item": 1, "rating": 2, "timestamp": 3}
LAYOUTS: dict[str, tuple[bytes, dict[str, Any]]] = {
    "MovieLens 100K": (written("\t"), {"columns": FOUR, "separator": "\t", "header": False}),
    "MovieLens 1M": (
        written("::"),
        {"columns": {"user": 0, "item": 2, "rating": 4, "timestamp": 6}, "separator": ":", "header": False},
    ),
    "MovieLens latest": (
        written(",", "userId,movieId,rating,timestamp"),
        {"columns": {"user": "userId", "item": "movieId", "rating": "rating", "timestamp": "timestamp"}},
    ),
    "FilmTrust": (
        written(" ", form="{u}{s}{i}{s}{r}"),
        {"columns": {"user": 0, "item": 1, "rating": 2}, "separator": " ", "header": False},
    ),
    "Amazon": (
        written(",", form="A{u}X{s}B{i}{s}{r}{s}{t}"),
        {"columns": FOUR, "header": False},
    ),
    "Book-Crossing": (
        written(";", '"User-ID";"ISBN";"Book-Rating"', form='"{u}";"{i}";"{r}"'),
        {"columns": {"user": "User-ID", "item": "ISBN", "rating": "Book-Rating"}, "separator": ";"},
    ),
    "RecBole": (
        written("\t", "user_id:token\titem_id:token\trating:float\ttimestamp:float"),
        {
            "columns": {
                "user": "user_id:token",
                "item": "item_id:token",
                "rating": "rating:float",
                "timestamp": "timestamp:float",
            },
            "separator": "\t",
        },
    ),
    "with an index, unnamed": (
        written(",", form="{n}{s}{u}{s}{i}{s}{r}"),
        {"columns": {"user": 1, "item": 2, "rating": 3}, "header": False},
    ),
    "names that say nothing": (
        written(";", "a;b;c;d", form="{t}{s}{u}{s}{i}{s}{r}"),
        {"columns": {"user": "b", "item": "c", "rating": "d", "timestamp": "a"}, "separator": ";"},
    ),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_layouts(name: str, tmp_path: Path) -> None:
    data, expected = LAYOUTS[name]
    (tmp_path / "r").write_bytes(data)
    found = guess_format(tmp_path / "r")
    scale = {"minimum": 0.5, "maximum": 4.5, "step": 0.5}
    assert found.keys == {**expected, "scale": scale}
    ratings = load(
        CsvSpec.model_validate({"kind": "csv", "name": "r", "path": "r", **found.keys}),
        Folders(tmp_path, tmp_path / "cache", tmp_path),
    ).ratings
    assert sorted(ratings.values.tolist()) == sorted(rating for _, _, rating, _ in DRAWN)
    assert (ratings.n_users, ratings.n_items) == (len({u for u, _ in PAIRS}), len({i for _, i in PAIRS}))


def test_words(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(
        zipped({"r.csv": b"who;what;stars;day\nx;a;4,5;2015-03-09\nx;b;3;2015-03-10\n"})
    )
    found = guess_format(tmp_path / "r")
    assert found.decimal == ","
    assert found.words == (
        "semicolon-separated, a header line, decimal commas",
        'user: column "who", by its content',
        'item: column "what", by its content',
        'rating: column "stars", by its name',
        'timestamp: column "day", by its content',
        "3 to 4.5 occur in steps of 1.5",
    )


def test_a_column_that_is_told_is_nothing_else_even_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(written(",", "user,item,rating", form="{u}{s}{i}{s}{r}"))
    found = guess_format(tmp_path / "r", Told(columns={"user": "item"}))
    assert found.columns == {"user": "item", "item": "user", "rating": "rating"}


def test_what_cannot_be_told_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(b"a,b,c\nx,y,z\nx,z,y\n")
    found = guess_format(tmp_path / "r")
    assert (found.columns, found.scale) == ({"user": 0, "item": 1}, None)
    assert "no column looks like the rating" in found.words


@pytest.mark.parametrize("data", [b"#user,item,rating\n1,2,3\n", b"#1,a,3\n#2,b,4\n"])
def test_a_header_or_an_id_with_a_hash_is_no_comment(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "r").write_bytes(data)
    assert len(guess_format(tmp_path / "r").columns) == 3


def test_many_columns_are_no_matrix_if_users_and_items_are_known(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(MATRIX)
    told = {"user": "0", "item": "1", "rating": "2"}
    assert guess_format(tmp_path / "r", Told(columns=told)).columns == {"user": 0, "item": 1, "rating": 2}


def test_parquet(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(parquet(ROWS))
    found = guess_format(tmp_path / "r")
    assert found.columns == {"user": "customer", "item": "sku", "rating": "stars", "timestamp": "when"}
    assert found.scale == (3, 5, 1)
    assert found.words[0] == "Parquet"


MATRIX = b"\n".join(b"%d" % (user % 100) + b",7.5,99" * 50 for user in range(300))
"""As Jester's sheets: how many items the user rated, then a rating of each, where 99 means none."""


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"x\ny\n", "cannot be cut into three columns by tab, semicolon"),
        (
            MATRIX,
            r"r: its 101 columns look like a matrix, with a row for each user .*; write a line for each rating",
        ),
        (b"user" + b",joke 7" * 100 + b"\n" + MATRIX, "r: its 101 columns look like a matrix"),
        (MATRIX.replace(b"99", b""), "r: its 101 columns look like a matrix"),
        (
            b"a,b,c,d,e,f,g,h,i,j\n" * 3,
            "r: its 10 columns are too many to guess .*; name the columns with --user",
        ),
        (
            b"# of 2024\nuser,item,rating\n1,2,3\n",
            "r:1: looks like a comment; remove the lines .* begin with #",
        ),
        (b"# of May, 7, 2024\nuser,item,rating\n1,2,3\n", "r:1: looks like a comment"),
        (b"%%MatrixMarket matrix coordinate\n9 9 1\n1 2 3\n", "r:1: looks like a comment; .* begin with %"),
        (b'{"user": 1, "item": 2, "rating": 3}\n' * 3, "r:1: looks like JSON; write the ratings as CSV"),
        (b'\xef\xbb\xbf{"user": 1, "item": 2, "rating": 3}\n' * 3, "r:1: looks like JSON"),
        (b'[\n{"user": 1, "item": 2, "rating": 3}]\n', "r:1: looks like JSON"),
        (sheet([[1, 2, 3]]), "r: is a spreadsheet; save the sheet of ratings as CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "r: is a spreadsheet"),
    ],
)
def test_what_is_no_table(tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "r").write_bytes(data)
    with pytest.raises(DpmfError, match=message):
        guess_format(tmp_path / "r")


def test_a_number_that_is_too_large_is_none(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(b"user,item,rating\n1,1,2\n1,2,4\n2,1,%s\n" % (b"9" * 400))
    assert guess_format(tmp_path / "r").scale == (2, 4, 2)


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([1, 2, 5], (1, 5, 1)),
        ([0.5, 4, 2.5], (0.5, 4, 0.5)),
        ([10, 80, 30], (10, 80, 10)),
        ([1, 2, 3.1], (1, 3.1, 0.1)),
        ([3], (3, 3, 0)),
        ([-9.95, 10, 0.02], (-9.95, 10, 0)),
        ([1, 1e300], (1, 1e300, 0)),
        ([1, 2 / 3, np.pi, np.nan], (2 / 3, np.pi, 0)),
    ],
)
def test_scales(values: list[float], scale: tuple[float, float, float]) -> None:
    assert scale_of(np.array(values)) == pytest.approx(scale)


def test_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "r.csv")
    with pytest.raises(DpmfError, match=r"r\.csv: cannot be read \(not a file\); name a file of ratings"):
        guess_format(tmp_path / "r.csv")
