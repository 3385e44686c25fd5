"""The publishers' file formats: one parser for each, chosen by the format that a catalog entry names."""

from collections.abc import Callable
from functools import partial

from dpmf_cli.datasets.formats import delimited, jester, netflix
from dpmf_cli.datasets.formats.source import Raw, Source

_RECBOLE = b"user_id:token\titem_id:token\trating:float\ttimestamp:float"

PARSERS: dict[str, Callable[[Source], Raw]] = {
    "u.data": partial(delimited.parse, separator=b"\t"),
    "dat": partial(delimited.parse, separator=b"::"),
    "ratings.csv": partial(delimited.parse, separator=b",", header=b"userId,movieId,rating,timestamp"),
    "inter": partial(delimited.parse, separator=b"\t", header=_RECBOLE),
    "jester": jester.parse,
    "netflix": netflix.parse,
}
