"""Every loader with broken files: an answer or the one allowed error, quickly, in memory that fits the file."""

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

from dpmf_cli.datasets.guess import guess_format
from dpmf_cli.experiment.config import load_config
from tests.datasets.building import parquet
from tests.faults.tally import FULL
from tests.fuzz.corpus import (
    CONFIGS,
    CSV_SPECS,
    EXTENDING,
    PARQUET_OPTIONS,
    PARQUET_ROWS,
    READERS,
    SHIPPED,
    TEXTS,
    load_catalog,
    load_csv,
    packed,
    wrapped,
)
from tests.fuzz.guard import Counts, check
from tests.fuzz.mutations import mutated

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
Made = tuple[str, bytes, Callable[[Path], object]]
"""A file's name, its bytes, and what loads it."""


@dataclass(frozen=True)
class Family:
    """How files of a kind are broken and loaded, and how many in the full form and in the short one."""

    full: int
    short: int
    make: Callable[[random.Random], Made]


def _catalog(name: str, file: str, data: bytes) -> Made:
    return file, data, lambda path: load_catalog(path, name, path.parent / "cache")


def _published(rng: random.Random) -> Made:
    name = rng.choice(list(TEXTS))
    return _catalog(name, name, mutated(TEXTS[name], rng))


def _archive(rng: random.Random) -> Made:
    name = rng.choice(list(TEXTS))
    text = mutated(TEXTS[name], rng) if rng.random() < 0.3 else TEXTS[name]
    data = wrapped(name, text, rng)
    return _catalog(name, "archive", mutated(data, rng) if rng.random() < 0.7 else data)


def _own(rng: random.Random, pack: Callable[[bytes, random.Random], bytes]) -> Made:
    text, options = rng.choice(CSV_SPECS)
    return "made.csv", pack(text, rng), lambda path: load_csv(path, options)


def _parquet(rng: random.Random) -> Made:
    return "made.parquet", mutated(parquet(PARQUET_ROWS), rng), lambda path: load_csv(path, PARQUET_OPTIONS)


def _guessed(rng: random.Random) -> Made:
    text, _ = rng.choice(CSV_SPECS)
    whole = parquet(PARQUET_ROWS)
    data = packed(text, rng) if rng.random() < 0.4 else mutated(rng.choice([text, text, whole]), rng)
    return "made.csv", data, guess_format


def _prize(rng: random.Random) -> Made:
    text = rng.choice(list(READERS))
    return "list.txt", mutated(text, rng), READERS[text]


def _config(rng: random.Random) -> Made:
    return "config.yaml", mutated(rng.choice(CONFIGS), rng), load_config


def _extended(rng: random.Random) -> Made:
    data = mutated(rng.choice(CONFIGS), rng)
    whole = b"extends: broken.yaml\n" if rng.random() < 0.5 else EXTENDING.replace(b"base.", b"broken.")

    def load(path: Path) -> object:
        path.with_name("broken.yaml").write_bytes(data)
        return load_config(path)

    return "config.yaml", whole, load


FAMILIES = {
    "publishers' formats": Family(40_000, 400, _published),
    "archives": Family(30_000, 250, _archive),
    "CSV with columns": Family(25_000, 200, lambda rng: _own(rng, mutated)),
    "packed CSV": Family(15_000, 150, lambda rng: _own(rng, packed)),
    "Parquet": Family(15_000, 150, _parquet),
    "guessed layouts": Family(15_000, 150, _guessed),
    "probe.txt and judging.txt": Family(10_000, 100, _prize),
    "configs": Family(3_000, 40, _config),
    "what configs extend": Family(2_000, 30, _extended),
}


@pytest.mark.parametrize("name", FAMILIES)
def test_broken_files(name: str, counts: dict[str, Counts], tmp_path: Path) -> None:
    """The inputs are the same each time; $DPMF_FUZZ_SEED gives others."""
    family, row = FAMILIES[name], counts.setdefault(name, Counts())
    for shipped, text in {**SHIPPED, "base.yaml": SHIPPED["ml100k_bounded.yaml"]}.items():
        (tmp_path / shipped).write_bytes(text)  # configs that others extend

    @seed(int(os.environ.get("DPMF_FUZZ_SEED", "8")))
    @settings(
        max_examples=family.full if FULL else family.short,
        database=None,
        suppress_health_check=[HealthCheck.too_slow],
        phases=[Phase.explicit, Phase.generate],
    )
    @given(number=st.integers(0, 2**62))
    def broken(number: int) -> None:
        file, data, load = family.make(random.Random(number))
        (tmp_path / file).write_bytes(data)
        check(lambda: load(tmp_path / file), len(data), row)

    broken()
