"""What a config leaves out of a user's own file, or makes binary: which rows remain, and what is said of the others."""

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Scale
from dpmf_cli.datasets import Dataset, load, look
from dpmf_cli.datasets.filters import core
from dpmf_cli.datasets.own_file import MISSING
from dpmf_cli.datasets.spec import FilesSplit
from tests.command import dpmf, run_config
from tests.datasets.building import OWN, Shelf, parquet
from tests.datasets.test_own_files import read, spec
from tests.datasets.test_sanity import made

HOLES = OWN + b"14,,a,y\n15,NaN,b,w\n16,2,,y\n17,null,a,w\n18,5,b, \n,3,c,w\n19,0,c,x\n"
"""The three ratings of `OWN`, then rows without a rating, an item, a user or a time, and a rating of 0."""
LINES = b"".join(
    json.dumps(dict(zip(("when", "stars", "sku", "customer"), row, strict=True))).encode() + b"\n"
    for row in (
        (11, 4, "b", "x"),
        (12, 5, "a", "x"),
        (13, 3, "b", "w"),
        (14, None, "a", "y"),
        (15, 2, None, "y"),
    )
)


def pairs(found: Dataset) -> list[tuple[Any, Any, float]]:
    ratings = found.ratings
    ids = found.user_ids[ratings.users].tolist(), found.item_ids[ratings.items].tolist()
    return list(zip(*ids, ratings.values.tolist(), strict=True))


def test_rows_that_lack_something_are_an_error_or_left_out_and_counted(shelf: Shelf) -> None:
    with pytest.raises(DpmfError, match=r"r\.csv:5: the rating is missing; .* \(6\) by `drop_missing: true`"):
        read(shelf, HOLES)
    found = read(shelf, HOLES, drop_missing=True, zero_is_missing=True)
    assert found.identity.checksum == read(shelf, OWN).identity.checksum
    assert (found.user_ids.tolist(), found.item_ids.tolist()) == (["w", "x"], ["a", "b"])
    again = read(shelf, HOLES, drop_missing=True, zero_is_missing=True)  # from the cache
    for each in (found, again):
        lines = look(spec(), each).lines
        assert "`drop_missing` leaves out 6 of the rows" in lines
        assert "`zero_is_missing` leaves out 1 of the rows" in lines


def test_the_same_in_json_and_parquet(shelf: Shelf) -> None:
    rows = [json.loads(line) for line in LINES.splitlines()]
    data = parquet({key: [row[key] for row in rows] for key in rows[0]})
    for text in (LINES, data):
        with pytest.raises(DpmfError, match=r"r\.csv: row 4: the rating is missing; .* \(2\)"):
            read(shelf, text)
        found = read(shelf, text, drop_missing=True)
        assert found.identity.checksum == read(shelf, OWN).identity.checksum
        assert found.left_out["drop_missing"] == 2


NO_IDS = [
    *(OWN + b"14,3,c,%s\n15,3,%s,w\n" % (word, word) for word in map(str.encode, MISSING)),
    b"".join(LINES.splitlines(True)[:3]) + 2 * b'{"when": 14, "stars": 3, "sku": NaN, "customer": NaN}\n',
    parquet({"when": range(11, 16), "stars": [4, 5, 3, 1, 1], "sku": list("babaa"), "customer": [8, 8, 7, math.nan, None]}),
]  # fmt: skip


@pytest.mark.parametrize("text", NO_IDS, ids=[*map(repr, MISSING), "JSON", "Parquet"])
def test_an_id_that_is_missing_is_no_user_or_item(shelf: Shelf, text: bytes) -> None:
    with pytest.raises(DpmfError, match=r"r\.csv(:5|: row 4): the (user|item) is missing; .* \(2\)"):
        read(shelf, text)
    found = read(shelf, text, drop_missing=True)
    assert (found.left_out["drop_missing"], found.ratings.n_users, found.ratings.n_items) == (2, 2, 2)


@pytest.mark.parametrize("text", [HOLES + b"20,9,a,w\n", LINES + LINES.splitlines()[0].replace(b"4", b"9")])
def test_a_fault_below_what_is_left_out_has_its_own_line(shelf: Shelf, text: bytes) -> None:
    place = r"r\.csv:12" if text.startswith(HOLES) else r"r\.csv: row 6"
    with pytest.raises(DpmfError, match=f"{place}: the rating 9 is off the scale"):
        read(shelf, text, drop_missing=True, zero_is_missing=True)


def test_zeros_off_the_scale_suggest_that_they_mean_no_rating(shelf: Shelf) -> None:
    with pytest.raises(
        DpmfError, match=r"the rating 0 is off .*, or `zero_is_missing: true` if 0 means that"
    ):
        read(shelf, HOLES, drop_missing=True)
    with pytest.raises(DpmfError, match=r"the rating 9 is off .* in steps of 1\)$"):
        read(shelf, OWN + b"20,9,a,w\n")


def slowly(triples: set[tuple[int, int]], user: int, item: int, rng: random.Random) -> set[tuple[int, int]]:
    """The definition: one user or item with too few ratings goes, in any order, until there is none."""
    left = set(triples)
    while True:
        few = [
            (side, each)
            for side, least in ((0, user), (1, item))
            for each in {pair[side] for pair in left}
            if sum(pair[side] == each for pair in left) < least
        ]
        if not few:
            return left
        side, gone = rng.choice(few)
        left = {pair for pair in left if pair[side] != gone}


def test_the_core_is_the_largest_part_with_enough_ratings() -> None:
    rng, sizes = random.Random(1), set()
    for _ in range(40):
        triples = {(rng.randrange(9), rng.randrange(8)) for _ in range(30)}
        ratings = made([(user, item, 1 + (user + item) % 5) for user, item in triples])
        whole = Dataset(ratings=ratings, user_ids=np.arange(9), item_ids=np.arange(8), identity=None)  # type: ignore[arg-type]
        user, item = rng.randrange(1, 5), rng.randrange(1, 5)
        found = core(whole, user, item)
        expected = slowly(triples, user, item, rng)
        assert [(u, i) for u, i, _ in pairs(found)] == sorted(expected)  # type: ignore[arg-type]
        assert [value for *_, value in pairs(found)] == [1 + (u + i) % 5 for u, i in sorted(expected)]  # type: ignore[arg-type]
        assert found.left_out["minimum_ratings"] == len(triples) - len(expected)
        sizes.add(len(expected))
    assert len(sizes) > 5  # some keep all, some nothing


CHAIN = (
    b"customer,sku,stars\n"
    + b"".join(b"u%d,i%d,%d\nu%d,i%d,4\n" % (n, n, 3 + n % 3, n, n + 1) for n in range(4))
    + b"u0,i4,5\n"
)
"""A ring u0 – i1 – u1 – … – i4 – u0, and i0, which only u0 has rated."""
THREE = {"columns": {"user": "customer", "item": "sku", "rating": "stars"}}


def test_a_ring_stays_and_falls_whole_with_one_rating_less(shelf: Shelf) -> None:
    """So one rating decides on all of them, which is why no ε of `unbounded` covers the choice."""
    two = {"minimum_ratings": {"user": 2, "item": 2}, **THREE}
    found = read(shelf, CHAIN, **two)
    assert (len(found.ratings), found.user_ids.tolist()) == (8, ["u0", "u1", "u2", "u3"])
    assert found.left_out == {
        "drop_missing": 0,
        "zero_is_missing": 0,
        "minimum_ratings": 1,
        "users": 0,
        "items": 1,
    }
    (line,) = (line for line in look(spec(**two), found).lines if "minimum" in line)
    left_out = "`minimum_ratings` leaves out 1 of the ratings, 0 of the users and 1 of the items"
    assert line == f"{left_out}, a choice that no ε of `unbounded` or `user` covers"
    assert found.identity.checksum != read(shelf, CHAIN, **THREE).identity.checksum
    with pytest.raises(DpmfError, match=r"r\.csv: `minimum_ratings` leaves no rating; lower its numbers"):
        read(shelf, CHAIN.removesuffix(b"u0,i4,5\n"), **two)


def test_counts_are_of_merged_ratings_and_missing_rows_of_both_files(shelf: Shelf) -> None:
    two = {"minimum_ratings": {"user": 2}, "duplicates": "last", **THREE}
    text = b"customer,sku,stars\nx,a,4\nx,a,5\ny,a,3\ny,b,3\nz,a,1\n"
    found = read(shelf, text, **two)
    assert pairs(found) == [("y", "a", 3), ("y", "b", 3)]
    shelf.put("r.csv", text + b"q,a,\n")
    shelf.put("test.csv", b"customer,sku,stars\nz,b,2\n,b,2\n")
    both = load(spec(drop_missing=True, **two), shelf.folders, FilesSplit(by="files", path="test.csv"))
    assert (both.left_out["drop_missing"], both.left_out["minimum_ratings"]) == (2, 2)
    assert pairs(both) == [("y", "a", 3), ("y", "b", 3), ("z", "b", 2)]


def test_test_ratings_do_not_decide_which_training_ratings_stay(shelf: Shelf) -> None:
    split = FilesSplit(by="files", path="test.csv")
    two = {"minimum_ratings": {"user": 2, "item": 2}, **THREE}
    alone = pairs(read(shelf, CHAIN, **two))
    for tested in (b"u1,i0,3\nnew,other,2\n", b"u9,i9,1\n"):
        shelf.put("test.csv", b"customer,sku,stars\n" + tested)
        found = load(spec(**two), shelf.folders, split)
        test = found.ratings.columns["test"] == 1
        assert [pair for pair, out in zip(pairs(found), test, strict=True) if not out] == alone
        assert test.sum() == tested.count(b"\n")
    shelf.put("r.csv", CHAIN.removesuffix(b"u0,i4,5\n"))
    shelf.put("test.csv", b"customer,sku,stars\nu0,i4,5\n")  # would close the ring
    with pytest.raises(DpmfError, match=r"`minimum_ratings` leaves no rating; lower its numbers"):
        load(spec(**two), shelf.folders, split)


def test_a_threshold_makes_ratings_binary_on_a_scale_from_0_to_1(shelf: Shelf) -> None:
    text = b"customer,sku,stars\nx,a,4.1\ny,a,4\nz,a,5\n"
    steps = {"scale": {"minimum": 1, "maximum": 5, "step": 0.1}, **THREE}
    found = read(shelf, text, threshold=4.1, **steps)  # 4.1 in single precision is less than 4.1
    assert pairs(found) == [("x", "a", 1), ("y", "a", 0), ("z", "a", 1)]
    assert found.ratings.scale == Scale(0, 1, 1)
    assert found.identity.to_stars
    lines = look(spec(threshold=4.1, **steps), found).lines
    assert "`threshold` turns 2 of the ratings into 1, and the others into 0" in lines


CONFIG = """\
dataset: {kind: csv, name: shop, path: r.csv, columns: {user: customer, item: sku, rating: stars},
  scale: {minimum: 1, maximum: 5, step: 1}, minimum_ratings: {user: 5, item: 2}, threshold: 4}
folds: 2
runs: 1
epsilons: [1]
refine: false
algorithms: [{algorithm: pge, neighbours: NEIGHBOURS, mode: corrected}]
"""


def shop(folder: Path, neighbours: str = "unbounded") -> None:
    rows = [f"u{u},i{i},{1 + (u * i) % 5}" for u in range(40) for i in range(20) if (u + i) % 3 or u < 20]
    (folder / "r.csv").write_text("\n".join(["customer,sku,stars", *rows, "late,i1,5"]) + "\n")
    (folder / "x.yaml").write_text(CONFIG.replace("NEIGHBOURS", neighbours))


@pytest.mark.parametrize(("neighbours", "noted"), [("unbounded", True), ("bounded", False)])
def test_the_ledger_notes_what_no_epsilon_covers(tmp_path: Path, neighbours: str, noted: bool) -> None:
    from dpmf_cli.cli.run import _tables

    shop(tmp_path, neighbours)
    text = _tables(run_config(tmp_path, "x"))
    note = "users and items with few ratings were left out (`minimum_ratings`): ε of unbounded and user is about the"
    assert (note in text) == noted


def test_a_release_is_refused_where_no_epsilon_covers_the_choice_and_says_so_otherwise(
    tmp_path: Path, session_cache: Path
) -> None:
    shop(tmp_path)
    asked = ("release", "x.yaml", "--method", "pge", "--epsilon", "1", "--ids-are-public", "--to", "out")
    said = dpmf(tmp_path, session_cache, *asked, expect=2).stderr
    assert (
        "no ε that covers which users and items `minimum_ratings` leaves out can be proved; take it from"
        in said
    )
    assert not (tmp_path / "out").exists()
    dpmf(tmp_path, session_cache, *asked, "--unprovable")
    card = json.loads((tmp_path / "out" / "model.json").read_text())
    assert card["privacy"]["provable"] is None
    assert "One rating can change which, and so move all ratings of others" in card["privacy"]["says"]
    assert card["dataset"]["filters"] == {"minimum_ratings": {"user": 5, "item": 2}, "threshold": 4}
    shop(tmp_path, "bounded")
    dpmf(tmp_path, session_cache, *asked[:-1], "public")
    card = json.loads((tmp_path / "public" / "model.json").read_text())
    assert (card["privacy"]["provable"], "minimum" in card["privacy"]["says"]) == (1, False)
    assert card["dataset"]["maximum"] == 1
