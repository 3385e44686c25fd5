"""Curators for tests of single mechanisms."""

from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.release import Witness


def curator_of(ledger: Ledger, seed: int = 0, witness: Witness | None = None) -> Curator:
    """A curator with this ledger, whose noise follows from the seed."""
    return Curator(ledger, Streams(seed, "data", "test", 0, 0), witness)
