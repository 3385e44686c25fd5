"""Tests that the tests of an algorithm can inherit, for plugins and for dpmf's own algorithms. Needs pytest.

from dpmf_cli.testing import PrivateAlgorithmContract, variants_of

class TestItemMedian(PrivateAlgorithmContract):
    entries = variants_of(ItemMedian, beta=3)
"""

import pytest

pytest.register_assert_rewrite("dpmf_cli.testing.contract")

from dpmf_cli.testing.contract import (  # noqa: E402  the assertions must be rewritten before they are imported
    LARGE,
    LARGE_GAUSSIAN,
    AlgorithmContract,
    PrivateAlgorithmContract,
    fit,
    make_ratings,
    predict_all,
    variants_of,
)

__all__ = [
    "LARGE",
    "LARGE_GAUSSIAN",
    "AlgorithmContract",
    "PrivateAlgorithmContract",
    "fit",
    "make_ratings",
    "predict_all",
    "variants_of",
]
