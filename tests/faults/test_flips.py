"""One bit flipped in a kernel, which is most of what a run reads back.

A process loads a kernel once. So most flips are followed only by a load, in a cache that has loaded nothing yet. The
others are followed by a run that starts from nothing.
"""

import json
import random
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dpmf_cli.core.compiled import machine_code
from dpmf_cli.core.compiled.machine_code import KernelCache
from tests.faults.arena import Arena
from tests.faults.tally import Tally, times
from tests.faults.test_damage import damage
from tests.fuzz.mutations import flip


def flipped(path: Path, rng: random.Random) -> bytes:
    whole = damage(path, flip, rng)
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
    run_here: Callable[..., tuple[int, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> list[Kept]:
    """Entries of kernels that this process has called, copied to a place where a test may damage them."""
    assert run_here()[0] == 0
    place = shutil.copytree(machine_code.place(), tmp_path / "kernels")
    monkeypatch.setenv("DPMF_KERNELS", str(place))
    found = []
    for path in machine_code.entries():
        module, _, name = json.loads(machine_code.content(path)[0])["kernel"].rpartition(".")
        dispatcher: Any = getattr(sys.modules.get(module), name, None)
        if not getattr(getattr(dispatcher, "_cache", None), "examples", None):
            continue  # of another version, or a compiled function that the entry of a kernel includes
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
