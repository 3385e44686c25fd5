"""The experiment without faults, made once, and the counts of the whole suite."""

import sys
from collections.abc import Iterator

import pytest

from tests.faults import tally as counting
from tests.faults.arena import NAME, Arena, ratings_csv
from tests.faults.tally import Tally


@pytest.fixture(scope="session")
def tally(request: pytest.FixtureRequest) -> Iterator[Tally]:
    counts = Tally()
    yield counts
    total = counts.total
    print(
        f"\nfaults injected {total.injected}, runs resumed {total.resumed}, bytes differing {total.differing}"
    )
    if counting.FULL and not (request.session.testsfailed or request.config.option.keyword):
        counting.keep(counts)


@pytest.fixture(scope="session")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Arena:
    arena = Arena(tmp_path_factory.mktemp("arena"))
    arena.measure()
    return arena


@pytest.fixture
def arena(measured: Arena) -> Arena:
    """Without results, but with what a first run leaves in the cache."""
    measured.clear()
    (measured.folder / "ratings.csv").write_text(ratings_csv())
    return measured


@pytest.fixture
def here(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> Arena:
    """The command is run in this process, which has imported all it needs."""
    monkeypatch.chdir(arena.folder)
    monkeypatch.setenv("DPMF_CACHE", str(arena.cache))
    monkeypatch.setattr(sys, "argv", ["dpmf", "run", f"{NAME}.yaml", "-j", "1"])
    return arena
