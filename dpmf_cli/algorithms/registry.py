"""The registry: every algorithm that a config can name."""

from dpmf_cli.algorithms.alternating_least_squares import AlternatingLeastSquares
from dpmf_cli.algorithms.base import Algorithm, PrivateAlgorithm
from dpmf_cli.algorithms.baselines import GlobalAverage, GlobalEffects, ItemAverage
from dpmf_cli.algorithms.input_perturbation import InputPerturbationSGD
from dpmf_cli.algorithms.own_mean_predictors import AveragesAndOwnMean, OwnMeanFixedCovariance
from dpmf_cli.algorithms.personalized import Personalized, Sampled
from dpmf_cli.algorithms.private_als import ObjectivePrivateALS, PrivateALS
from dpmf_cli.algorithms.private_batch_gradient import PrivateBatchGradientDescent
from dpmf_cli.algorithms.private_covariance import CovarianceKNN, CovarianceSVD
from dpmf_cli.algorithms.private_global_effects import PrivateGlobalEffects
from dpmf_cli.algorithms.private_knn import PrivateKNN
from dpmf_cli.algorithms.private_pmf import PrivatePMF
from dpmf_cli.algorithms.private_sgd import PrivateSGD
from dpmf_cli.algorithms.probabilistic import ProbabilisticMF
from dpmf_cli.algorithms.public_knn import PublicKNN

BASELINES: dict[str, type[Algorithm]] = {
    "ga": GlobalAverage,
    "ia": ItemAverage,
    "ge": GlobalEffects,
    "als": AlternatingLeastSquares,
    "pmf": ProbabilisticMF,
    "sampled": Sampled,
}

PRIVATE: dict[str, type[PrivateAlgorithm]] = {
    "pge": PrivateGlobalEffects,
    "isgd": InputPerturbationSGD,
    "psgd": PrivateSGD,
    "pals": PrivateALS,
    "pals_objective": ObjectivePrivateALS,
    "pbgd": PrivateBatchGradientDescent,
    "pknn": PrivateKNN,
    "public_knn": PublicKNN,
    "mm_knn": CovarianceKNN,
    "mm_svd": CovarianceSVD,
    "mm_averages": AveragesAndOwnMean,
    "mm_public": OwnMeanFixedCovariance,
    "dp_pmf": PrivatePMF,
    "personalized": Personalized,
}
