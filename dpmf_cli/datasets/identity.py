"""Which ratings a result was computed from."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DataIdentity:
    """The name of a data set and the content of its ratings.

    key             as in the paths of results and in the names of random streams
    title           as tables and figures call it; no result depends on it
    checksum        of the canonical ratings, in hex; "" where they were never read
    test_checksum   of the ratings of a fixed test set, in hex; "" where folds are held out
    to_stars        whether algorithms see the ratings mapped onto 1 to 5 (`datasets.stars`); False where they are
                    seen as they stand
    """

    key: str
    title: str
    checksum: str
    test_checksum: str = ""
    to_stars: bool = False

    @property
    def checksums(self) -> tuple[str, ...]:
        """Those of all ratings that a fit needs."""
        return (self.checksum, self.test_checksum) if self.test_checksum else (self.checksum,)
