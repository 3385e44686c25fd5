"""The data sets that dpmf knows by name, as catalog.yaml describes them, and the words of that file.

A digest is written `sha256:…` or `md5:…` (md5 only if the publisher prints no better digest).
"""

from dataclasses import field
from pathlib import Path

import yaml
from pydantic import ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.ratings import Scale

_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True, config=_STRICT)
class Counts:
    """Counts of a complete copy: the publisher's figures, or ours if the publisher prints none."""

    users: int
    items: int
    ratings: int
    mean: float
    variance: float


@dataclass(frozen=True, config=_STRICT)
class Content:
    """A rating file as it stands inside an archive or a folder.

    pattern   shell pattern of its base name (`u.data`, `mv_*.txt`)
    format    key in `publishers.PARSERS`
    digests   of the file, in every known form; empty if none is published: then only counts verify the file
    """

    pattern: str
    format: str
    digests: frozenset[str] = frozenset()


@dataclass(frozen=True, config=_STRICT)
class Mirror:
    """Where a file is: at an address, or in a release on the Python package index, for users who reach nothing else.

    filename, digest   of the file, as it is kept
    most_bytes         a larger download is broken off
    requirement        the release; `release` is the digest of its own file (wheel or source archive), checked before
                       that file is opened
    """

    filename: str
    digest: str
    most_bytes: int
    url: str = ""
    requirement: str = ""
    release: str = ""

    def __str__(self) -> str:
        return self.url or f"the package index, {self.requirement}"


@dataclass(frozen=True, config=_STRICT)
class SourcePart:
    """One file (or folder) that a data set needs. Most data sets need one, Jester needs three.

    names      accepted names in the data folder, preferred first
    contents   rating files to look for inside it
    nested     patterns of archives within the archive that may hold the rating file
    digests    of the publisher's archive
    mirrors    where to get the part, tried in turn
    """

    names: tuple[str, ...]
    contents: tuple[Content, ...]
    nested: tuple[str, ...] = ()
    digests: frozenset[str] = frozenset()
    mirrors: tuple[Mirror, ...] = ()


@dataclass(frozen=True, config=_STRICT)
class Licence:
    summary: str
    url: str


@dataclass(frozen=True, config=_STRICT)
class SyntheticShape:
    """How a synthetic copy spreads its ratings and where their variance comes from.

    user_spread, item_spread   σ of the lognormal activity of users and popularity of items
    least_per_user             the publisher's lower bound on ratings per user
    item_share, user_share, taste_share   fractions of the variance due to the item's effect, the user's
                               effect and the low-rank structure; the rest is noise
    """

    user_spread: float = 1.0
    item_spread: float = 1.3
    least_per_user: int = 1
    item_share: float = 0.20
    user_share: float = 0.16
    taste_share: float = 0.18


@dataclass(frozen=True, config=_STRICT)
class CatalogEntry:
    """A data set of the catalog.

    film_list    the list of films with their genres and years that is beside the ratings
    timestamps   False if the file has no time stamps, or only stand-ins, which are not kept
    stars        whether the ratings are stars, the unit of the papers' parameters; others are mapped onto 1 to 5
    """

    key: str
    title: str
    scale: Scale
    parts: tuple[SourcePart, ...]
    expected: Counts
    licence: Licence
    citation: str
    homepage: str
    shape: SyntheticShape = field(default_factory=SyntheticShape)
    film_list: Content | None = None
    timestamps: bool = True
    stars: bool = True

    @property
    def byte_limit(self) -> int:
        """A limit for the bytes of rating files that no honest copy reaches: 64 per rating plus 64 MiB."""
        return 64 * self.expected.ratings + (64 << 20)


def read(path: Path) -> dict[str, CatalogEntry]:
    """The entries of a YAML catalog, by key. Raises an error for a word that no class here defines."""
    described = yaml.safe_load(path.read_text())
    for key, words in described.items():
        words["key"] = key
        for part in words["parts"]:
            whole = {"filename": part["names"][0], "most_bytes": part.pop("most_bytes", 0)}
            part["mirrors"] = [
                {**whole, "url": each, "digest": part["digests"][0]} if isinstance(each, str) else each
                for each in part.get("mirrors", ())
            ]
    return TypeAdapter(dict[str, CatalogEntry]).validate_python(described)


ENTRIES = read(Path(__file__).with_name("catalog.yaml"))


def entry(key: str) -> CatalogEntry:
    """The catalog's entry of that key. Raises `DpmfError` with the nearest key if there is none."""
    try:
        return ENTRIES[key]
    except KeyError:
        hint = did_you_mean(key, ENTRIES, {each.title: name for name, each in ENTRIES.items()})
        if Path(key).suffix:
            hint = f"; if it is a file of your own, `dpmf init {key}` writes what belongs here"
        raise DpmfError(f'no data set "{key}" in the catalog{hint}') from None
