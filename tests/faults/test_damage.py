"""Result files, tables, caches and data with bits or bytes changed or cut off: the same bytes or a refusal, never a
wrong figure. Changed data, two simultaneous runs, odd clocks."""

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import command
from tests.faults import clock
from tests.faults.arena import NAME, Arena, differing, files, ratings_csv
from tests.faults.tally import Tally, full, times
from tests.fuzz.mutations import flip, truncate

Change = Callable[[bytes, random.Random], bytes]
RunHere = Callable[..., tuple[int, str]]
CLOCK = Path(clock.__path__[0])


def corrupt(data: bytes, rng: random.Random) -> bytes:
    """Changes one byte, or a block of bytes."""
    at, length = rng.randrange(len(data)), rng.choice([1, 1, 1, 16, 512])
    block = bytes(byte ^ rng.randint(1, 255) for byte in data[at : at + length])
    return data[:at] + block + data[at + length :]


def damage(path: Path, change: Change, rng: random.Random) -> bytes:
    """Changes a file that other processes may have open, and returns the file's old bytes."""
    whole = path.read_bytes()
    path.unlink()  # a memory map of the old bytes may still be open
    path.write_bytes(change(whole, rng))
    return whole


@pytest.mark.parametrize(
    ("change", "fault"), [(corrupt, " corrupted"), (truncate, " truncated"), (flip, ", bit flipped")]
)
def test_damaged_result_files(
    arena: Arena, run_here: RunHere, tally: Tally, change: Change, fault: str
) -> None:
    rng, row = random.Random(change.__name__), tally.row(f"result file{fault}")
    run_here()
    names = sorted(name for name in arena.expected if name.startswith("tasks/"))
    while row.injected < times(150 if change is flip else 200, 5):
        for name in rng.sample(names, 5):
            damage(arena.results / name, change, rng)
            row.injected += 1
        code, said = run_here()
        assert (code, said.count(" (its content does not fit its checksum); set aside as ")) == (0, 5)
        arena.compare(row)
    assert row.differing == 0


OTHERS: tuple[tuple[Change, str, str, int], ...] = (
    (corrupt, "table, manifest or cache damaged", "any", 50),
    (truncate, "table, manifest or cache damaged", "any", 50),
    (flip, "cache, bit flipped", "cache", 60),
    (flip, "table or manifest, bit flipped", "table or manifest", 30),
)


@pytest.mark.parametrize(("change", "fault", "kind", "often"), OTHERS)
def test_damaged_tables_manifests_and_caches(
    arena: Arena, run_here: RunHere, tally: Tally, change: Change, fault: str, kind: str, often: int
) -> None:
    rng, row = random.Random(f"{kind} {change.__name__}"), tally.row(fault)
    run_here()
    manifest = arena.results / NAME / "manifest.json"
    for _ in range(times(often, 2)):
        cached = [path for of in ("ratings/*", "sources/*", "digests/*") for path in arena.cache.glob(of)]
        tables = list((arena.results / NAME).iterdir())
        path = rng.choice(sorted({"any": cached + tables, "cache": cached}.get(kind, tables)))
        whole = damage(path, change, rng)
        damaged = path.read_bytes()
        if path in cached:  # a run that is remembered reads no ratings
            shutil.rmtree(arena.cache / "remembered")
        row.injected += 1
        code, said = run_here()
        assert code == 0, said
        arena.compare(row)
        if path == manifest and change is not flip:
            assert "manifest.json: damaged" in said
            assert path.read_bytes() != damaged
        if path.parent.name == "ratings":
            row.differing += differing({"": path.read_bytes()}, {"": whole})
    assert row.differing == 0


def test_flips_in_the_data(arena: Arena, run_here: RunHere, tally: Tally) -> None:
    """If the ratings differ, or are no ratings, the run says so. If they are the same, so are the results."""
    rng, row, data = random.Random("data"), tally.row("data file, bit flipped"), arena.folder / "ratings.csv"
    run_here()
    for _ in range(times(30, 1)):
        whole = damage(data, flip, rng)
        row.injected += 1
        code, said = run_here()
        row.differing += differing(files(arena.results), arena.expected)
        data.write_bytes(whole)
        if code:
            assert code == 2
            assert "ratings.csv" in said or "the ratings of made changed" in said
            assert run_here()[0] == 0
        arena.compare(row)
    assert row.differing == 0


def test_changed_data_are_refused(arena: Arena, run_here: RunHere, tally: Tally) -> None:
    row, data = tally.row("data changed under a finished result"), arena.folder / "ratings.csv"
    run_here()
    for seed in range(2, 2 + times(20, 1)):
        data.write_text(ratings_csv(seed))
        code, said = run_here()
        assert code == 2
        assert "the ratings of made changed since these results were made" in said
        assert "--new-data" in said
        row.injected += 1
        row.differing += differing(files(arena.results), arena.expected)
        data.write_text(ratings_csv())
        code, said = run_here()
        assert code == 0
        assert "nothing to compute" in said
        arena.compare(row)
    assert row.differing == 0
    data.write_text(ratings_csv(0))
    code, said = run_here("--new-data")
    assert code == 0
    assert "its tables are replaced; finished tasks are kept" in said
    assert files(arena.results)[f"{NAME}/curves.csv"] != arena.expected[f"{NAME}/curves.csv"]
    assert run_here()[0] == 0
    data.write_text(ratings_csv())
    assert run_here()[0] == 2
    assert run_here("--new-data")[0] == 0
    assert arena.expected.items() <= files(arena.results).items()


@full
def test_two_at_once(arena: Arena, tally: Tally) -> None:
    row = tally.row("two runs at once")
    for _ in range(10):
        shutil.rmtree(arena.cache)
        for process in [arena.start(jobs=jobs) for jobs in (1, 2)]:
            command.ended(process)
        row.injected += 1
        arena.resume(row, warm=True)
    assert row.differing == 0


@full
def test_a_clock_that_jumps(arena: Arena, tally: Tally) -> None:
    row = tally.row("clock set back and forward")
    for number in range(6):
        if number % 2:
            shutil.rmtree(arena.cache)
        row.injected += 1
        said = arena.resume(row, jobs=1 + number % 2, path=CLOCK)
        assert "-" not in said.partition("elapsed")[0].rpartition(",")[2], said
    assert row.differing == 0


def test_the_odd_clock_is_odd() -> None:
    code = "import time; times = [time.time() for _ in range(50)]; print(max(times) - min(times), sorted(times) == times)"
    said = subprocess.check_output([sys.executable, "-c", code], env={"PYTHONPATH": str(CLOCK)}, text=True)
    jump, steady = said.split()
    assert float(jump) > 3000
    assert steady == "False"


def test_the_counts_count() -> None:
    """A suite that compared nothing would also count no difference."""
    assert differing({"a": b"123"}, {"a": b"124"}) == 1
    assert differing({"a": b"123"}, {"b": b"12"}) == 5
