"""Which tests of the contract are slow."""

import pytest

SLOW = (
    "test_all_noise_comes_from_the_curator",
    "test_every_kernel_that_adds_noise_does_what_its_python_reference_does",
)
"""Tests of the contract that run every Python reference, in seconds. For dpmf's own algorithms they are marked slow,
except the replay, which runs kernels beside their references."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name.startswith(SLOW) and item.path.name == "test_contract.py":
            item.add_marker(pytest.mark.slow)
