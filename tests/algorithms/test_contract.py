"""The contract of algorithms (`dpmf_cli.testing`), run over the complete registry."""

from pathlib import Path
from typing import Any

import yaml

from dpmf_cli.algorithms.neera2020.local_factorization import Devices, PrivateGradientMF
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.testing import AlgorithmContract, PrivateAlgorithmContract
from tests.algorithms.fitted import entry

SMALL: dict[str, dict[str, Any]] = yaml.safe_load(Path(__file__).with_name("small.yaml").read_text())


def small(key: str, mode: str = "published") -> dict[str, Any]:
    return SMALL.get(f"{key} {mode}", SMALL.get(key, {}))


def test_small_parameters_are_of_methods() -> None:
    assert {key.removesuffix(" corrected") for key in SMALL} <= BASELINES.keys() | PRIVATE.keys()


CLEAN = {key: entry(key, **small(key)) for key in BASELINES}
VARIANTS = {
    f"{key}-{neighbours}-{mode}": entry(key, neighbours=neighbours, mode=mode, **small(key, mode))
    for key, of in sorted(PRIVATE.items())
    for neighbours, mode in sorted(of.variants)
}
REFITTED = {
    f"mm_svd-{noise}-refitted-{mode}": entry(
        "mm_svd", noise=noise, mode=mode, tuning="refitted", validation=0.2, k=5
    )
    for noise in ("laplace", "gaussian")
    for mode in ("published", "corrected")
}
OF_SAMPLES = {"noise": "laplace", "mode": "corrected", "sampling_rate": 0.3, "iterations": 5}
SAMPLED = {
    f"{key}-{neighbours}-laplace-sampled-corrected": entry(key, neighbours=neighbours, **OF_SAMPLES)
    for key, neighbours in (("dpsgd_pnbm", "bounded"), ("dpsgd_pnbm", "unbounded"), ("dpps_pnbm", "user"))
}

LEAST_HARM = {"local_mean": 1.01, "pg_mf": 1.1}
"""What noise does at least to the error where it is bounded: a mean of messages from within the scale is at worst the
scale's middle, and a device fits its user's factors to clean ratings."""


class Learning(AlgorithmContract):
    def learns(self, algorithm: Algorithm) -> float:
        if isinstance(algorithm, PrivateGradientMF) and algorithm.variant is not Devices:
            return 0.95  # one report a user: 1 of 32 here, whatever ε is
        return 1.01 if algorithm.algorithm in ("ga", "ua", "local_mean") else 0.9


class TestBaselines(Learning):
    entries = CLEAN


class TestPrivate(Learning, PrivateAlgorithmContract):
    entries = VARIANTS | REFITTED | SAMPLED

    def least_harm(self, algorithm: PrivateAlgorithm) -> float:
        return LEAST_HARM.get(algorithm.algorithm, super().least_harm(algorithm))
