"""The registry: every algorithm that a config can name."""

from dpmf_cli.algorithms.alternating_least_squares import AlternatingLeastSquares
from dpmf_cli.algorithms.base import Algorithm, PrivateAlgorithm
from dpmf_cli.algorithms.baselines import GlobalAverage, GlobalEffects, ItemAverage
from dpmf_cli.algorithms.correlation_knn import CosineKNN, PearsonKNN
from dpmf_cli.algorithms.input_perturbation import InputPerturbationSGD
from dpmf_cli.algorithms.local_averages import LocalMean, LocalMeans
from dpmf_cli.algorithms.local_factorization import LocalMatrixFactorization, LocalSGD
from dpmf_cli.algorithms.mixture_factorization import MixtureFactorization
from dpmf_cli.algorithms.own_mean_predictors import AveragesAndOwnMean, OwnMeanFixedCovariance
from dpmf_cli.algorithms.personalized import Personalized, Sampled
from dpmf_cli.algorithms.pnbm import ConstantNeighbourhood, ProbabilisticNeighbourhood
from dpmf_cli.algorithms.posterior_pnbm import PosteriorPNBM
from dpmf_cli.algorithms.private_als import ObjectivePrivateALS, PrivateALS
from dpmf_cli.algorithms.private_batch_gradient import PrivateBatchGradientDescent
from dpmf_cli.algorithms.private_covariance import CovarianceKNN, CovarianceSVD
from dpmf_cli.algorithms.private_global_effects import PrivateGlobalEffects
from dpmf_cli.algorithms.private_gradients import PrivateGradientMF
from dpmf_cli.algorithms.private_knn import PrivateKNN
from dpmf_cli.algorithms.private_neighbourhood import PrivateConstantNeighbourhood
from dpmf_cli.algorithms.private_pmf import PrivatePMF
from dpmf_cli.algorithms.private_pnbm import PrivatePNBM
from dpmf_cli.algorithms.private_sgd import PrivateSGD
from dpmf_cli.algorithms.probabilistic import ProbabilisticMF
from dpmf_cli.algorithms.public_knn import PublicKNN
from dpmf_cli.algorithms.sgd_factorization import SGDFactorization

BASELINES: dict[str, type[Algorithm]] = {
    "ga": GlobalAverage,
    "ia": ItemAverage,
    "ge": GlobalEffects,
    "als": AlternatingLeastSquares,
    "pmf": ProbabilisticMF,
    "sampled": Sampled,
    "mf_sgd": SGDFactorization,
    "pcc": PearsonKNN,
    "cos": CosineKNN,
    "constant_nbm": ConstantNeighbourhood,
    "pnbm": ProbabilisticNeighbourhood,
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
    "blp_mog_mf": MixtureFactorization,
    "pg_mf": PrivateGradientMF,
    "isgd_local": LocalSGD,
    "local_mf": LocalMatrixFactorization,
    "local_mean": LocalMean,
    "local_means": LocalMeans,
    "dpsgd_pnbm": PrivatePNBM,
    "dpps_pnbm": PosteriorPNBM,
    "private_constant_nbm": PrivateConstantNeighbourhood,
}
