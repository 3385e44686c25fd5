"""The publishers' file formats: one parser for each, chosen by the format that a catalog entry names."""

from collections.abc import Callable

from dpmf_cli.datasets.formats import delimited, jester, netflix
from dpmf_cli.datasets.formats.source import Raw, Source

PARSERS: dict[str, Callable[[Source], Raw]] = {
    "u.data": delimited.parse_u_data,
    "dat": delimited.parse_dat,
    "ratings.csv": delimited.parse_ratings_csv,
    "inter": delimited.parse_inter,
    "jester": jester.parse,
    "netflix": netflix.parse,
}
