"""Set-up that the tests of several methods share."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.kernels.similarity_descent import descend_noisy_similarities
from dpmf_cli.privacy.release import Release
from tests.algorithms.similarity_models import Array, Run, fit


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Fits a neighbourhood method and records its similarities before and after every noisy step."""
    states: list[Array] = []
    samples: list[NDArray[np.bool_]] = []
    ordinary = Release.inside

    def state(model: Any) -> Array:
        return np.concatenate([group.rows().astype(np.float64) for group in model.groups], -1)

    def inside(self: Any, kernel: Any, model: Any, learned: Any, step: Any, **more: Any) -> None:
        assert kernel is descend_noisy_similarities
        if not states:
            states.append(state(model))
        ordinary(self, kernel, model, learned, step, **more)
        states.append(state(model))
        samples.append(step.sampled)

    def watch(algorithm: PrivateAlgorithm, train: Ratings, epsilons: list[float]) -> Run:
        states.clear()
        samples.clear()
        _, ledger = fit(algorithm, train, epsilons)
        return Run(np.array(states), list(samples), ledger)

    monkeypatch.setattr(Release, "inside", inside)
    return watch


SLOW = (
    "test_all_noise_comes_from_the_curator",
    "test_every_kernel_that_adds_noise_does_what_its_plain_twin_does",
)
"""Tests of the contract that run every plain twin, in seconds. For dpmf's own algorithms they are marked slow,
except the replay, which runs kernels beside their twins."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name.startswith(SLOW) and item.path.name == "test_contract.py":
            item.add_marker(pytest.mark.slow)
