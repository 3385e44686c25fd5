"""The counts of the complete suite."""

from collections.abc import Iterator

import pytest

from tests.faults.tally import FULL, keep
from tests.fuzz.guard import Counts, guarded

COUNTS = pytest.StashKey[dict[str, Counts]]()


@pytest.fixture(scope="module")
def counts(request: pytest.FixtureRequest) -> Iterator[dict[str, Counts]]:
    with guarded():
        yield request.config.stash.setdefault(COUNTS, {})


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    found = session.config.stash.get(COUNTS, {})
    for name, row in found.items():
        print(f"\n{name}: {row.named()}, memory {row.peak:.0%} of what is allowed")
    if FULL and found and exitstatus == 0:
        keep("fuzz", {name: row.named() for name, row in found.items()})
