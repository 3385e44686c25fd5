"""Every loader with broken files: an answer or the one allowed error, quickly, in memory that fits the file."""

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.datasets.building import parquet, zipped
from tests.fuzz.corpus import (
    CONFIGS,
    CSV_SPECS,
    EXTENDING,
    PARQUET_OPTIONS,
    PARQUET_ROWS,
    READERS,
    SHIPPED,
    TEXTS,
    broken_sheet,
    load_catalog,
    load_config,
    load_csv,
    load_guess,
    load_sheet,
    packed,
    wrapped,
)
from tests.fuzz.guard import FULL, Counts, check
from tests.fuzz.mutations import mutated

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
NUMBERS = st.integers(0, 2**62)


def volume(full: int, short: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Number of inputs in the full form, or in the short one. They are the same each time; $DPMF_FUZZ_SEED
    gives others."""

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        checks = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
        phases = [Phase.explicit, Phase.generate]
        options = settings(
            max_examples=full if FULL else short, deadline=None, database=None, suppress_health_check=checks,
            phases=phases,
        )  # fmt: skip
        return seed(int(os.environ.get("DPMF_FUZZ_SEED", "8")))(options(given(number=NUMBERS)(test)))

    return decorate


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def put(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@volume(40_000, 400)
def test_publishers_formats(counts: dict[str, Counts], folder: Path, number: int) -> None:
    rng = random.Random(number)
    name = rng.choice(list(TEXTS))
    data = mutated(TEXTS[name], rng)
    row = counts.setdefault("publishers' formats", Counts())
    path = put(folder / name, data)
    check(lambda: load_catalog(path, name, folder / "cache"), len(data), row)


@volume(30_000, 250)
def test_archives(counts: dict[str, Counts], folder: Path, number: int) -> None:
    rng = random.Random(number)
    name = rng.choice(list(TEXTS))
    text = mutated(TEXTS[name], rng) if rng.random() < 0.3 else TEXTS[name]
    data = wrapped(name, text, rng)
    if rng.random() < 0.7:
        data = mutated(data, rng)
    row = counts.setdefault("archives", Counts())
    path = put(folder / "archive", data)
    check(lambda: load_catalog(path, name, folder / "cache"), len(data), row)


@volume(25_000, 200)
def test_csv(counts: dict[str, Counts], folder: Path, number: int) -> None:
    rng = random.Random(number)
    text, options = rng.choice(CSV_SPECS)
    data = mutated(text, rng)
    row = counts.setdefault("CSV with columns", Counts())
    path = put(folder / "made.csv", data)
    check(lambda: load_csv(path, options), len(data), row)


@volume(15_000, 150)
def test_packed_csv(counts: dict[str, Counts], folder: Path, number: int) -> None:
    rng = random.Random(number)
    text, options = rng.choice(CSV_SPECS)
    data = packed(text, rng)
    row = counts.setdefault("packed CSV", Counts())
    path = put(folder / "made.csv.gz", data)
    check(lambda: load_csv(path, options), len(data), row)


@pytest.fixture(scope="module")
def whole_parquet() -> bytes:
    return parquet(PARQUET_ROWS)


@volume(15_000, 150)
def test_parquet(counts: dict[str, Counts], folder: Path, whole_parquet: bytes, number: int) -> None:
    rng = random.Random(number)
    data = mutated(whole_parquet, rng)
    row = counts.setdefault("Parquet", Counts())
    path = put(folder / "made.parquet", data)
    check(lambda: load_csv(path, PARQUET_OPTIONS), len(data), row)


@volume(15_000, 150)
def test_guesses(counts: dict[str, Counts], folder: Path, whole_parquet: bytes, number: int) -> None:
    rng = random.Random(number)
    text, _ = rng.choice(CSV_SPECS)
    data = packed(text, rng) if rng.random() < 0.4 else mutated(rng.choice([text, text, whole_parquet]), rng)
    row = counts.setdefault("guessed layouts", Counts())
    path = put(folder / "made.csv", data)
    check(lambda: load_guess(path), len(data), row)


@volume(10_000, 100)
def test_lists_of_the_netflix_prize(counts: dict[str, Counts], folder: Path, number: int) -> None:
    rng = random.Random(number)
    text = rng.choice(list(READERS))
    data = mutated(text, rng)
    row = counts.setdefault("probe.txt and judging.txt", Counts())
    path = put(folder / "list.txt", data)
    check(lambda: READERS[text](path), len(data), row)


@pytest.fixture(scope="module")
def configs(folder: Path) -> Path:
    """A folder with the shipped configs that others extend."""
    (folder / "configs").mkdir()
    for name, text in {**SHIPPED, "base.yaml": SHIPPED["ml100k_bounded.yaml"]}.items():
        put(folder / "configs" / name, text)
    return folder / "configs"


@volume(3_000, 40)
def test_configs(counts: dict[str, Counts], configs: Path, number: int) -> None:
    rng = random.Random(number)
    data = mutated(rng.choice(CONFIGS), rng)
    row = counts.setdefault("configs", Counts())
    path = put(configs / "config.yaml", data)
    check(lambda: load_config(path), len(data), row)


@volume(2_000, 30)
def test_what_configs_extend(counts: dict[str, Counts], configs: Path, number: int) -> None:
    rng = random.Random(number)
    data = mutated(rng.choice(CONFIGS), rng)
    whole = b"extends: broken.yaml\n" if rng.random() < 0.5 else EXTENDING.replace(b"base.", b"broken.")
    row = counts.setdefault("what configs extend", Counts())
    put(configs / "broken.yaml", data)
    path = put(configs / "config.yaml", whole)
    check(lambda: load_config(path), len(data) + len(whole), row)


@volume(500, 5)
def test_spreadsheets(counts: dict[str, Counts], folder: Path, number: int) -> None:
    rng = random.Random(number)
    data = broken_sheet(rng)
    row = counts.setdefault("spreadsheets", Counts())
    path = put(folder / "jester.xls", data if not data.startswith(b"PK") else zipped({"jester.xls": data}))
    check(lambda: load_sheet(path), len(data), row)
