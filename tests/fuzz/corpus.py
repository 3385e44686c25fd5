"""Sound files from which broken ones are made, and how each is loaded."""

import gzip
import io
import random
import tarfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from dpmf_cli.datasets import Folders, loading, located, publishers
from dpmf_cli.datasets.catalog import Content
from dpmf_cli.datasets.spec import CsvSpec
from tests import configs
from tests.datasets.building import tarred, tiny, zipped, zstandard
from tests.fuzz.mutations import mutated

ROWS = [(7, 30, 5, 12), (7, 4, 3, 13), (100, 30, 4, 11), (100, 4, 1, 900_000_000), (12, 5, 2, 7)]
LINES = "".join(f"{u}\t{i}\t{r}\t{t}\n" for u, i, r, t in ROWS).encode()
TEXTS = {
    "u.data": LINES,
    "ratings.dat": LINES.replace(b"\t", b"::"),
    "ratings.csv": b"userId,movieId,rating,timestamp\n" + "".join(f"{u},{i},{r}.0,{t}\n" for u, i, r, t in ROWS).encode(),
    "tiny.inter": b"user_id:token\titem_id:token\trating:float\ttimestamp:float\n" + LINES,
    "mv_1.txt": b"30:\n100,4,1970-01-01\n7,5,2005-12-31\n4:\n7,3,2000-02-29\n100,1,2004-01-01\n5:\n12,2,2001-01-01\n",
}  # fmt: skip
"""The publishers' formats, by the names of their files."""
FORMATS = dict(zip(TEXTS, ("u.data", "dat", "ratings.csv", "inter", "netflix"), strict=True))

PROBE = b"30:\n100\n7\n4:\n7\n"
JUDGING = b"30:\n100,4,2005-12-31\n7,5,2005-12-31\n4:\n7,3,2000-02-29\n"

CSV = b'who,what,stars,when,budget\n007,a b,5,12,0.5\n7,"c,d",3,13.5,1\nx,e,4,11,2\n7,e,1,9,0.1\n'
CSV_PLAIN = b"1;10;5\n2;10;3\n2;11;4\n"
JSON_LINES = b"".join(
    b'{"who": %d, "what": "%d", "stars": %d.5, "when": null}\n' % (n % 3, n % 4, 1 + n % 4) for n in range(9)
)
FILTERED: dict[str, Any] = {
    "columns": {"user": "who", "item": "what", "rating": "stars"},
    "drop_missing": True,
    "zero_is_missing": True,
    "duplicates": "mean",
    "threshold": 3,
    "minimum_ratings": {"user": 2, "item": 2},
}
CSV_SPECS: list[tuple[bytes, dict[str, Any]]] = [
    (CSV, {"columns": {"user": "who", "item": "what", "rating": "stars"}}),
    (
        CSV,
        {"columns": {"user": "who", "item": "what", "rating": "stars", "timestamp": "when", "epsilon": "budget"},
            "duplicates": "mean"},
    ),
    (CSV, {"columns": {"user": 0, "item": "what", "rating": 2}, "duplicates": "last"}),
    (CSV_PLAIN, {"columns": {"user": 0, "item": 1, "rating": 2}, "separator": ";", "header": False}),
    (CSV_PLAIN.replace(b";", b"\t"), {"columns": {"user": 1, "item": 0, "rating": 2}, "separator": "\t", "header": False}),
    (CSV_PLAIN.replace(b"\n", b",5;2015-03-09 18:22:11Z\n"), {"columns": {"user": 0, "item": 1, "rating": 2, "timestamp": 3}, "separator": ";", "header": False, "decimal": ","}),
    (CSV.replace(b",", "→".encode()), {"columns": {"user": "who", "item": "what", "rating": "stars"}, "separator": "→"}),
    (JSON_LINES, FILTERED),
    (b"[" + JSON_LINES.strip().replace(b"\n", b",\n") + b"]", FILTERED),
    (b"# of May\n\n" + CSV + b",e,0,nan,\n", FILTERED),
]  # fmt: skip

SHIPPED = {path.name: path.read_bytes() for path in configs.SHIPPED}
EXTENDING = Path(__file__).with_name("extending.yaml").read_bytes()
CONFIGS = [*SHIPPED.values(), *[EXTENDING] * 10]


NESTED = ("*.zip", "*.tar", "*.tar.gz")
ENTRIES = {name: tiny(Content(name, kind), counts=(3, 3, 5), nested=NESTED) for name, kind in FORMATS.items()}
"""Data sets whose file is checked only by its counts, so that broken files reach the parser."""


def wrapped(name: str, text: bytes, rng: random.Random) -> bytes:
    """A text in an archive of some kind, perhaps with forbidden names, links or members."""
    odd = ["../x", "/etc/x", "a/" + name, name, "C:\\x", "n" * 300, "\udcff", ".", "./x", "a\0b", "ä"]
    files = {name: text}
    if rng.random() < 0.3:
        try:
            files[rng.choice(odd)] = text
            if rng.random() < 0.5:
                files = dict(reversed(files.items()))
            zipped(files)
        except (UnicodeEncodeError, ValueError):
            files = {name: text}
    kind = rng.randrange(7)
    if kind == 6:
        return _with_a_special(name, text, rng)
    if kind in (3, 4):  # the archive within may be broken too
        inner = zipped(files) if kind == 3 else tarred(files)
        inner = mutated(inner, rng) if rng.random() < 0.5 else inner
        return tarred({"in.zip": inner}, "w:gz") if kind == 3 else zipped({"in.tar": inner})
    packs: list[Callable[[], bytes]] = [
        lambda: zipped(files),
        lambda: tarred(files),
        lambda: tarred(files, "w:gz"),
        lambda: zipped({"in.zip": zipped({"in.tar.gz": tarred(files, "w:gz")})}),
    ]
    return packs[min(kind, 3)]()


def _with_a_special(name: str, text: bytes, rng: random.Random) -> bytes:
    """A tar with a link, a device, a sparse or oversized member, or extended headers."""
    held = io.BytesIO()
    form = rng.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
    with tarfile.open(fileobj=held, mode="w", format=form) as archive:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        if rng.random() < 0.7:
            info.type = rng.choice(b"123456780SgxLKXVMD").to_bytes(1, "big")
            info.linkname = rng.choice(["/etc/passwd", name, "../x", "n" * 90])
        if form == tarfile.PAX_FORMAT:
            info.pax_headers = {rng.choice(["size", "path", "GNU.sparse.map", "GNU.sparse.size", "x"]): rng.choice(["9" * 30, "-1", "../x", "1,2", ""])}  # fmt: skip
        archive.addfile(info, io.BytesIO(text))
    data = bytearray(held.getvalue())
    if rng.random() < 0.5:  # a size, with the checksum of the header made to fit
        data[124:136] = rng.choice([b"77777777777\0", b"\x80" + b"\xff" * 11, b"\xff" * 12, b"00000000000\0"])
        data[148:156] = b" " * 8
        data[148:156] = b"%06o\0 " % sum(data[:512])
    return bytes(data)


def load_catalog(path: Path, name: str, cache: Path) -> object:
    found = located.locate(ENTRIES[name], path.parent, path)
    located.content_digest(found, cache)
    return loading.read_catalog(found, cache)


PARQUET_ROWS: dict[str, Any] = {
    "who": ["7", "x", "7", "y"],
    "what": [1, 2, 3, 1],
    "stars": [5.0, 3.0, 4.0, 1.0],
    "when": [12, 13, 11, 9],
}
PARQUET_OPTIONS: dict[str, Any] = {
    "columns": {"user": "who", "item": "what", "rating": "stars", "timestamp": "when"}
}


def packed(text: bytes, rng: random.Random) -> bytes:
    """A user's own ratings in a package that may be broken."""
    packs: list[Callable[[bytes], bytes]] = [
        gzip.compress,
        zstandard,
        lambda data: zipped({"r.csv": data}),
        lambda data: tarred({"r.csv": data}),
    ]
    pack = rng.choice(packs)
    data = pack(mutated(text, rng) if rng.random() < 0.5 else text)
    return mutated(data, rng) if rng.random() < 0.7 else data


def load_csv(path: Path, options: dict[str, Any]) -> object:
    spec = CsvSpec(kind="csv", name="made", path=path.name, scale={"minimum": 1, "maximum": 5}, **options)
    return loading.parsed(spec, Folders(path.parent, path.parent, path.parent))


READERS: dict[bytes, Callable[[Path], object]] = {
    PROBE: partial(publishers.read_list, which="probe"),
    JUDGING: partial(publishers.read_list, which="judging"),
}
