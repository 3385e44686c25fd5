"""Three ratings in every format, and the result of reading them."""

from pathlib import Path

import numpy as np

from dpmf_cli.datasets import Dataset, Folders, load
from dpmf_cli.datasets.spec import CatalogSpec

# User 7 gave item 30 a 5 and item 4 a 3; user 100 gave item 30 a 4. Numbers sort as numbers: 7 < 100, 4 < 30.
U_DATA = b"100\t30\t4\t11\n7\t30\t5\t12\n7\t4\t3\t13\n"
DAT = b"100::30::4::11\n7::30::5::12\n7::4::3::13\n"
CSV = b"userId,movieId,rating,timestamp\n100,30,4.0,11\n7,30,5.0,12\n7,4,3.0,13\n"
INTER_HEADER = b"user_id:token\titem_id:token\trating:float\ttimestamp:float\n"
INTER = INTER_HEADER + U_DATA
NETFLIX = b"30:\n100,4,1970-01-01\n7,5,2005-12-31\n4:\n7,3,2000-02-29\n"


def read(path: Path, cache: Path) -> Dataset:
    return load(CatalogSpec(name="tiny", path=str(path)), Folders(path.parent, cache, path.parent))


def check_tiny(found: Dataset) -> None:
    ratings = found.ratings
    assert ratings.users.tolist() == [0, 0, 1]
    assert ratings.items.tolist() == [0, 1, 1]
    assert ratings.values.tolist() == [3, 5, 4]
    assert found.user_ids.tolist() == [7, 100]
    assert found.item_ids.tolist() == [4, 30]
    assert [a.dtype for a in (ratings.users, ratings.items, ratings.values)] == [
        np.int32,
        np.int32,
        np.float32,
    ]
