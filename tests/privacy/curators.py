"""Curators for tests of single mechanisms."""

from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.release import Recorder


def curator_of(ledger: Ledger, seed: int = 0, recorder: Recorder | None = None) -> Curator:
    """A curator with this ledger, whose noise follows from the seed."""
    return Curator(ledger, Streams(seed, "data", "test", 0, 0), recorder)
