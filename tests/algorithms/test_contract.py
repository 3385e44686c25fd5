"""The contract of algorithms (`dpmf_cli.testing`), run over the complete registry."""

from typing import Any

import numpy as np

from dpmf_cli.algorithms.neera2020.pg_mf import Devices, PrivateGradientMF
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.testing import LARGE, AlgorithmContract, PrivateAlgorithmContract, fit, predict_all

FACTORS = {key: {"factors": 2} for key in ("als", "isgd", "psgd", "pals", "pals_objective", "pbgd", "hua_mf")}
FACTORS |= {key: {"factors": 2} for key in ("mf_sgd", "blp_mog_mf", "isgd_local", "local_mf")}
PRIVATE_GRADIENTS = {
    "factors": 2,
    "iterations": 20,
    "learning_rate": 1,
}  # few ratings an item take large steps
PMF = {
    "factors": 2,
    "learning_rate": 10,
    "initial_factors": {"distribution": "positive_sphere", "scale": 1},
}
LANGEVIN_MF = {
    "factors": 2,
    "iterations": 400,
    "initial_rate": 0.1,
    "temperature": 1e-14,
    "most_ratings": 30,
    "initial_factors": {"scale": 0.3},
}  # noise that hides nothing: no provable ε is claimed for any of these
SPECIFICATION = {
    "conservative": 0.2,
    "epsilon_conservative": 0.5,
    "epsilon_moderate": 200,
    "epsilon_liberal": 1e4,
    "threshold": 200,
}
LANGEVIN = {"most_ratings": 15, "initial_rate": 4, "temperature": 1e-10, "iterations": 5}
"""With the published rates the model never leaves its start, and the published noise is the same at every ε. So
the contract is tested with the drift, which is full from ε = 4B = 960 on."""
SMALL: dict[str, dict[str, Any]] = {
    **FACTORS,
    "dpps_pnbm": LANGEVIN,
    "pg_mf": PRIVATE_GRADIENTS,
    "dpps_mf": LANGEVIN_MF,
    "dpals": {"factors": 2},
    "dpam": {"factors": 2, "iterations": 3},
    "pmf": PMF,
    "dp_pmf": {**PMF, "noisy_epochs": 20},
    "liu_mf": {
        "factors": 2,
        "iterations": 60,
        "initial_rate": 0.1,
        "decay": 0,
        "temperature": 1e-14,
        "most_ratings": 30,
        "initial_factors": {"scale": 0.3},
    },
    "mugdho_mf": {
        "factors": 2,
        "iterations": 60,
        "learning_rate": 0.02,
        "clip": 2,
        "initial_factors": {"scale": 0.5},
    },
    "frank_wolfe": {"iterations": 3, "norm": 1, "nuclear": 0.25},
    "sampled": {**SPECIFICATION, "base": {"algorithm": "pmf", **PMF}},
    "personalized": {**SPECIFICATION, "base": {"algorithm": "dp_pmf", **PMF}},
}


def small(key: str, mode: str) -> dict[str, Any]:
    """The corrected modes of DP-PMF and DPPS-MF share hardly any parameter with the published ones."""
    if mode == "corrected" and key == "dpps_mf":
        return {"factors": 2, "iterations": 20, "user_ridge": 5, "item_ridge": 1}
    if mode == "corrected" and key == "dp_pmf":
        return {"factors": 2}
    if mode == "corrected" and key == "personalized":
        return {**SPECIFICATION, "base": {"algorithm": "dp_pmf", "factors": 2}}
    if mode == "published" and key == "frank_wolfe":  # its λ′ is enlarged by √σ, which falls slowly
        return {**SMALL[key], "nuclear": 1, "failure": 0.99}
    if mode == "corrected" and key == "dpps_pnbm":
        return {"iterations": 5}
    return SMALL.get(key, {})


CLEAN = {key: entry(algorithm=key, **SMALL.get(key, {})) for key, entry in BASELINES.items()}
VARIANTS = {
    f"{key}-{neighbours}-{mode}": PRIVATE[key].model_validate(
        {"algorithm": key, "neighbours": neighbours, "mode": mode, **small(key, mode)}
    )
    for key, entry in sorted(PRIVATE.items())
    for neighbours, mode in sorted(entry.variants)
}
REFITTED = {
    f"mm_svd-{noise}-refitted-{mode}": PRIVATE["mm_svd"].model_validate(
        {"algorithm": "mm_svd", "noise": noise, "mode": mode, "tuning": "refitted", "validation": 0.2, "k": 5}
    )
    for noise in ("laplace", "gaussian")
    for mode in ("published", "corrected")
}
SAMPLED = {
    f"{key}-{neighbours}-laplace-sampled-corrected": PRIVATE[key].model_validate(
        {
            "algorithm": key,
            "noise": "laplace",
            "mode": "corrected",
            "neighbours": neighbours,
            "sampling_rate": 0.3,
            "iterations": 5,
        }
    )
    for key, neighbours in (("dpsgd_pnbm", "bounded"), ("dpsgd_pnbm", "unbounded"), ("dpps_pnbm", "user"))
}

LEAST_HARM = {"local_mean": 1.01, "pg_mf": 1.1}
"""What noise does at least to the error where it is bounded: a mean of messages from within the scale is at worst the
scale's middle, and a device fits its user's factors to clean ratings."""


def learns(algorithm: Algorithm) -> float:
    if isinstance(algorithm, PrivateGradientMF) and algorithm.variant is not Devices:
        return 0.95  # one report a user: 1 of 32 here, whatever ε is
    return 1.01 if algorithm.algorithm in ("ga", "ua", "local_mean") else 0.9


class TestBaselines(AlgorithmContract):
    entries = CLEAN

    def learns(self, algorithm: Algorithm) -> float:
        return learns(algorithm)


class TestPrivate(PrivateAlgorithmContract):
    entries = VARIANTS | REFITTED | SAMPLED

    def learns(self, algorithm: Algorithm) -> float:
        return learns(algorithm)

    def least_harm(self, algorithm: PrivateAlgorithm) -> float:
        return LEAST_HARM.get(algorithm.algorithm, super().least_harm(algorithm))


def test_the_twin_of_private_global_effects_is_the_baseline(ratings: Ratings) -> None:
    private = predict_all(fit(VARIANTS["pge-bounded-published"], ratings, [LARGE])[0], ratings)
    assert np.allclose(private, predict_all(fit(CLEAN["ge"], ratings, [])[0], ratings), atol=1e-4)
