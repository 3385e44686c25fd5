"""The experiment without faults, made once, and the counts of the complete suite."""

from collections.abc import Callable

import pytest

from tests import command
from tests.faults.arena import NAME, Arena, ratings_csv
from tests.faults.tally import FULL, Tally, keep

COUNTS = pytest.StashKey[Tally]()


@pytest.fixture(scope="session")
def tally(request: pytest.FixtureRequest) -> Tally:
    return request.config.stash.setdefault(COUNTS, Tally())


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    for suite, rows in session.config.stash.get(COUNTS, Tally()).rows.items():
        print("", *(f"{name}: {row}" for name, row in rows.items()), sep="\n")
        if FULL and exitstatus == 0:
            keep(suite, {name: row.named() for name, row in rows.items()})


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
def run_here(
    arena: Arena, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Runs the arena's config in this process: exit code and output."""

    def run(*options: str) -> tuple[int, str]:
        words = ("run", f"{NAME}.yaml", "-j", "1", *options)
        code = command.here(monkeypatch, arena.folder, arena.cache, *words)
        said = capsys.readouterr().err
        assert "Traceback" not in said
        return code, said

    return run
