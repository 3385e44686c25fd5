"""One bit flipped in a file that a run reads back: leads to the same bytes or a refusal, never to a wrong figure.

Most of what a run reads back are kernels. A process loads a kernel once. So most flips in kernels are followed only
by a load, in a cache that has loaded nothing yet. The others are followed by a run that starts from nothing.
"""

import importlib
import json
import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.compiled import entries
from dpmf_cli.compiled.decorator import KernelCache
from tests.faults.arena import NAME, Arena, differing, files, run_here
from tests.faults.tally import Row, Tally, times

RUNS = times(30, 1)
FLIPPED_AT_ONCE = 5


def flipped(path: Path, rng: random.Random) -> bytes:
    """Flips a bit of a file that other processes may have open, and returns the file's old bytes."""
    whole = path.read_bytes()
    at = rng.randrange(8 * len(whole))
    path.unlink()
    path.write_bytes(b"%b%c%b" % (whole[: at // 8], whole[at // 8] ^ (1 << at % 8), whole[at // 8 + 1 :]))
    if entries.place() in path.parents:
        path.chmod(0o600)
    return whole


@dataclass(frozen=True)
class Kept:
    """An entry that a run reads back, from a cache that has loaded nothing yet."""

    cache: KernelCache
    signature: Any
    path: Path

    def load(self) -> Any:
        return self.cache.load_overload(self.signature, self.cache.dispatcher.targetctx)


@pytest.fixture
def kernels(
    here: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[Kept]:
    """Entries of kernels that this process has called, copied to a place where a test may damage them."""
    assert run_here(capsys)[0] == 0
    place = shutil.copytree(entries.place(), tmp_path / "kernels")
    monkeypatch.setenv("DPMF_KERNELS", str(place))
    found = []
    for path in entries.entries():
        module, _, name = json.loads(entries.content(path)[0])["kernel"].rpartition(".")
        dispatcher = getattr(importlib.import_module(module), name, None)
        if dispatcher is None or not dispatcher._cache.examples:
            continue  # the entry of a kernel includes the compiled functions that it calls
        kept = (Kept(KernelCache(dispatcher, ()), signature, path) for signature in dispatcher.overloads)
        found += [
            each
            for each in kept
            if each.cache._entry(each.signature, dispatcher.targetctx.codegen())[0] == path
        ]
    assert len(found) > 3
    return found


def test_a_flipped_kernel_is_never_loaded(
    kernels: list[Kept], tally: Tally, capsys: pytest.CaptureFixture[str]
) -> None:
    rng, row = random.Random("kernels"), tally.row("kernel, bit flipped")
    for _ in range(times(700, 12)):
        kept = rng.choice(kernels)
        whole = flipped(kept.path, rng)
        row.injected += 1
        assert kept.load() is None
        assert f"{kept.path}: damaged" in capsys.readouterr().err
        assert not kept.path.exists()
        kept.path.write_bytes(whole)
        kept.path.chmod(0o600)
        assert kept.load() is not None


def test_runs_from_nothing_with_flipped_kernels(arena: Arena, kernels: list[Kept], tally: Tally) -> None:
    rng, row = random.Random("runs"), tally.row("kernel, bit flipped")
    for _ in range(times(10, 1)):
        arena.clear()
        for kept in kernels:
            flipped(kept.path, rng)
        row.injected += (found := arena.resume(row).count(": damaged ("))
        assert found > 0
    assert row.differing == 0


def run_again(here: Arena, row: Row, capsys: pytest.CaptureFixture[str]) -> str:
    code, said = run_here(capsys)
    assert code == 0, said
    row.resumed += 1
    row.differing += differing(files(here.results), here.expected)
    return said


def test_flips_in_results(here: Arena, tally: Tally, capsys: pytest.CaptureFixture[str]) -> None:
    rng, row = random.Random("results"), tally.row("result file, bit flipped")
    run_here(capsys)
    names = sorted(name for name in here.expected if name.startswith("tasks/"))
    for _ in range(RUNS):
        for name in rng.sample(names, FLIPPED_AT_ONCE):
            flipped(here.results / name, rng)
            row.injected += 1
        said = run_again(here, row, capsys)
        assert said.count("set aside as") == FLIPPED_AT_ONCE
    assert row.differing == 0


@pytest.mark.parametrize("kind", ["cache", "table or manifest"])
def test_flips_in_caches_and_tables(
    here: Arena, tally: Tally, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    rng, row = random.Random(kind), tally.row(f"{kind}, bit flipped")
    run_here(capsys)
    for _ in range(2 * RUNS if kind == "cache" else RUNS):
        kept = [
            *here.cache.glob("ratings/*/*"),
            *here.cache.glob("sources/*/*"),
            *here.cache.glob("digests/*"),
        ]
        path = rng.choice(sorted(kept if kind == "cache" else (here.results / NAME).iterdir()))
        flipped(path, rng)
        row.injected += 1
        run_again(here, row, capsys)
    assert row.differing == 0


def test_flips_in_the_data(here: Arena, tally: Tally, capsys: pytest.CaptureFixture[str]) -> None:
    """If the ratings differ, or are no ratings, the run says so. If they are the same, so are the results."""
    rng, row, data = random.Random("data"), tally.row("data file, bit flipped"), here.folder / "ratings.csv"
    run_here(capsys)
    for _ in range(RUNS):
        whole = flipped(data, rng)
        row.injected += 1
        code, said = run_here(capsys)
        row.differing += differing(files(here.results), here.expected)
        if code:
            assert code == 2
            assert "ratings.csv" in said or "the ratings of made changed" in said
            data.write_bytes(whole)
            run_again(here, row, capsys)
        else:
            row.resumed += 1
            data.write_bytes(whole)
    assert row.differing == 0
