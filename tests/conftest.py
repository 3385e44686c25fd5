"""Ratings that tests share, and the real data files where present."""

import gc
import os
import signal
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings

from dpmf_cli.core.compiled import machine_code
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.experiment.running import calibration
from dpmf_cli.experiment.running.calibration import REFERENCE, measure
from dpmf_cli.testing import make_ratings
from tests.command import UNDRAWN
from tests.real_data import FOLDER
from tests.skips import pytest_make_collect_report, pytest_runtest_makereport

__all__ = ["make_ratings", "measure", "pytest_make_collect_report", "pytest_runtest_makereport"]


def pytest_configure() -> None:
    """Lets tests share compiled kernels, takes the reference machine for this one, and restores handlers of signals.

    A test with a cache of its own would otherwise compile kernels and measure this machine, each for seconds. A suite
    in the background or under `nohup` ignores signals, and so would all processes that it starts.
    """
    settings.register_profile("tests", deadline=None)  # a busy machine needs more than the default of 200 ms
    settings.load_profile("tests")
    os.environ.setdefault("DPMF_KERNELS", str(machine_code.place()))
    calibration.measure = lambda program: REFERENCE
    for number, default in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, default)


def pytest_collection_finish() -> None:
    """Excludes the modules and the list of tests from garbage collection, which would go through them over and over."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Prints the seconds by folder, where the slowest tests are asked for."""
    if terminalreporter.config.option.durations is None:
        return
    seconds: dict[str, float] = defaultdict(float)
    for report in (each for found in terminalreporter.stats.values() for each in found):
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid.partition("::")[0].rpartition("/")[0]] += report.duration
    terminalreporter.section("seconds by folder")
    for folder, spent in sorted(seconds.items(), key=lambda item: -item[1]):
        terminalreporter.line(f"{spent:8.1f}  {folder}")


@pytest.fixture
def ratings() -> Ratings:
    return make_ratings()


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs draw no pictures."""
    monkeypatch.setattr(*UNDRAWN)


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of the real data files; skips where there is none."""
    if not (FOLDER / "ml-100k.zip").exists():
        pytest.skip(f"no real data: {FOLDER} has no ml-100k.zip; set $DPMF_DATA")
    return FOLDER


@pytest.fixture(scope="session")
def session_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("session-cache")
