"""The identity of the ratings that a result was computed from."""

from dataclasses import dataclass

from dpmf_cli.streams import OWN


@dataclass(frozen=True)
class DataIdentity:
    """The name of a data set and the content of its ratings.

    key             name in the paths of results
    title           name in tables and figures; no result depends on it
    checksum        of the canonical ratings, in hex; "" if they were never read
    test_checksum   of the ratings of a fixed test set, in hex; "" if folds are held out
    to_stars        whether algorithms see the ratings mapped onto 1 to 5 (`datasets.stars`); False if they see the
                    ratings as they are
    own             whether it is a user's own file
    """

    key: str
    title: str
    checksum: str
    test_checksum: str = ""
    to_stars: bool = False
    own: bool = False

    @property
    def stream(self) -> str:
        """The name in random streams: the same for all own files, so that no result depends on what one is called."""
        return OWN if self.own else self.key

    @property
    def checksums(self) -> tuple[str, ...]:
        """The checksums of all ratings that a fit needs."""
        return (self.checksum, self.test_checksum) if self.test_checksum else (self.checksum,)
