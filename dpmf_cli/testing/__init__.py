"""Tests that the tests of an algorithm can inherit, for plugins and for dpmf's own algorithms. Needs pytest.

from dpmf_cli.testing import PrivateAlgorithmContract, variants_of

class TestItemMedian(PrivateAlgorithmContract):
    entries = variants_of(ItemMedian, beta=3)
"""

import pytest

pytest.register_assert_rewrite("dpmf_cli.testing.contract")

from dpmf_cli.testing.contract import (  # noqa: E402  the assertions must be rewritten before they are imported
    LARGE as LARGE,
    LARGE_GAUSSIAN as LARGE_GAUSSIAN,
    AlgorithmContract as AlgorithmContract,
    PrivateAlgorithmContract as PrivateAlgorithmContract,
    fit as fit,
    make_ratings as make_ratings,
    predict_all as predict_all,
    variants_of as variants_of,
)
