"""Under CI only the tests and modules named here may be skipped: any other skip is a failure."""

import os
from collections.abc import Generator
from typing import TypeVar

import pytest

FULL_FORM = "in the full form alone: make test-faults"
ROOT_ONLY = "only root can mount a disk; tests/results/test_store.py has the system call fail"


Report = TypeVar("Report", pytest.TestReport, pytest.CollectReport)


def _no_skip(report: Report) -> Report:
    if os.environ.get("CI") != "true" or not report.skipped or hasattr(report, "wasxfail"):
        return report
    reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if FULL_FORM not in reason and ROOT_ONLY not in reason:
        report.outcome = "failed"
        report.longrepr = f"{report.nodeid}: nothing is skipped under CI: {reason}"
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Checks a test, whichever of its marks, fixtures or lines skips it."""
    return _no_skip((yield))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Checks a module that skips itself, as by importorskip."""
    return _no_skip((yield))
