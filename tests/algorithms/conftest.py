"""What the tests of several methods set up."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
from dpmf_cli.algorithms.shared.certified_descent import CertifiedDescent
from dpmf_cli.ratings import Ratings
from tests.algorithms.similarity_models import Array, Run, fit


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    states: list[Array] = []
    samples: list[NDArray[np.bool_]] = []
    ordinary = CertifiedDescent.step

    def state(models: Any) -> Array:
        return np.concatenate(
            [m.values.reshape(*m.neighbours.shape, -1)[..., : m.lanes].astype(np.float64) for m in models], -1
        )

    def step(self: Any, models: Any, visits: Any, sampled: Any, *rest: Any, **more: Any) -> None:
        if not states:
            states.append(state(models))
        ordinary(self, models, visits, sampled, *rest, **more)
        states.append(state(models))
        samples.append(sampled)

    def watch(algorithm: PrivateAlgorithm, train: Ratings, epsilons: list[float]) -> Run:
        states.clear()
        samples.clear()
        _, ledger = fit(algorithm, train, epsilons)
        return Run(np.array(states), list(samples), ledger)

    monkeypatch.setattr(CertifiedDescent, "step", step)
    return watch
