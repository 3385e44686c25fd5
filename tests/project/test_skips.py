"""A skipped test is a failure under CI, except for the full forms and tests that need root."""

import pytest

from tests.skips import FULL_FORM, ROOT_ONLY

pytest_plugins = ["pytester"]

TESTS = f"""
import pytest

@pytest.fixture
def lacking():
    pytest.skip("no data")

def test_by_a_fixture(lacking): pass

@pytest.mark.skipif(True, reason="no browser")
def test_by_a_mark(): pass

def test_within(): pytest.skip("no clock")

@pytest.mark.xfail
def test_expected_to_fail(): assert False

@pytest.mark.skipif(True, reason={FULL_FORM!r})
def test_full(): pass

def test_disk(): pytest.skip({ROOT_ONLY!r})

def test_that_passes(): pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    hooks = "pytest_make_collect_report, pytest_runtest_makereport"
    pytester.makeconftest(f"from tests.skips import {hooks}")
    pytester.makepyfile(test_some=TESTS, test_module="import pytest\npytest.importorskip('no_such_module')")
    return pytester


def test_under_ci(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    done = suite.runpytest_inprocess("--continue-on-collection-errors")
    # A fixture that skips fails in the setup: pytest counts that as an error.
    done.assert_outcomes(failed=1, errors=3, skipped=2, xfailed=1, passed=1)
    done.stdout.fnmatch_lines_random(
        [
            f"*nothing is skipped under CI: *{what}*"
            for what in ("no data", "no browser", "no clock", "no_such")
        ]
    )


def test_elsewhere(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    suite.runpytest_inprocess().assert_outcomes(skipped=6, xfailed=1, passed=1)
