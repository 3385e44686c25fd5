"""The experiment without faults, made once, and the counts of the complete suite."""

import sys

import pytest

from tests.faults.arena import NAME, Arena, ratings_csv
from tests.faults.tally import FULL, Tally, keep

COUNTS = pytest.StashKey[Tally]()


@pytest.fixture(scope="session")
def tally(request: pytest.FixtureRequest) -> Tally:
    return request.config.stash.setdefault(COUNTS, Tally())


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    counts = session.config.stash.get(COUNTS, Tally())
    for section, found in (("faults", counts.rows), ("interrupts", counts.interrupts)):
        print("", *(f"{name}: {row}" for name, row in found.items()), sep="\n")
        if FULL and found and exitstatus == 0:
            keep(section, {name: row.named() for name, row in found.items()})


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Arena:
    arena = Arena(tmp_path_factory.mktemp("arena"))
    arena.measure()
    return arena


@pytest.fixture
def arena(measured: Arena) -> Arena:
    """A folder without results, but with the cache that a first run leaves."""
    measured.clear()
    (measured.folder / "ratings.csv").write_text(ratings_csv())
    return measured


@pytest.fixture
def here(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> Arena:
    """The arena for commands that run in this process, which has imported everything that they need."""
    monkeypatch.chdir(arena.folder)
    monkeypatch.setenv("DPMF_CACHE", str(arena.cache))
    monkeypatch.setattr(sys, "argv", ["dpmf", "run", f"{NAME}.yaml", "-j", "1"])
    return arena
