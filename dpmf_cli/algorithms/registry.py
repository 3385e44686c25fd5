"""The registry: every algorithm that a config can name."""

from dpmf_cli.algorithms.alternating_least_squares import AlternatingLeastSquares
from dpmf_cli.algorithms.base import Algorithm, PrivateAlgorithm
from dpmf_cli.algorithms.baselines import GlobalAverage, GlobalEffects, ItemAverage
from dpmf_cli.algorithms.input_perturbation import InputPerturbationSGD
from dpmf_cli.algorithms.private_global_effects import PrivateGlobalEffects

BASELINES: dict[str, type[Algorithm]] = {
    "ga": GlobalAverage,
    "ia": ItemAverage,
    "ge": GlobalEffects,
    "als": AlternatingLeastSquares,
}

PRIVATE: dict[str, type[PrivateAlgorithm]] = {
    "pge": PrivateGlobalEffects,
    "isgd": InputPerturbationSGD,
}
