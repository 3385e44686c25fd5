"""The registry: every algorithm that a config can name."""

from typing import Any

from dpmf_cli.algorithms.baselines.als import AlternatingLeastSquares
from dpmf_cli.algorithms.baselines.constant_nbm import ConstantNeighbourhood
from dpmf_cli.algorithms.baselines.cos import CosineKNN
from dpmf_cli.algorithms.baselines.ga import GlobalAverage
from dpmf_cli.algorithms.baselines.ge import GlobalEffects
from dpmf_cli.algorithms.baselines.ia import ItemAverage
from dpmf_cli.algorithms.baselines.mf_sgd import SGDFactorization
from dpmf_cli.algorithms.baselines.pcc import PearsonKNN
from dpmf_cli.algorithms.baselines.pmf import ProbabilisticMF
from dpmf_cli.algorithms.baselines.pnbm import ProbabilisticNeighbourhood
from dpmf_cli.algorithms.baselines.popularity import Popularity
from dpmf_cli.algorithms.baselines.sampled import Sampled
from dpmf_cli.algorithms.baselines.ua import UserAverage
from dpmf_cli.algorithms.beyond.local_mean import LocalMean
from dpmf_cli.algorithms.beyond.local_means import LocalMeans
from dpmf_cli.algorithms.beyond.local_mf import LocalMatrixFactorization
from dpmf_cli.algorithms.beyond.mm_averages import AveragesAndOwnMean
from dpmf_cli.algorithms.beyond.mm_public import OwnMeanFixedCovariance
from dpmf_cli.algorithms.beyond.own_pattern import OwnPattern
from dpmf_cli.algorithms.beyond.own_regression import OwnRegression
from dpmf_cli.algorithms.beyond.pals_objective import ObjectivePrivateALS
from dpmf_cli.algorithms.beyond.pbgd import PrivateBatchGradientDescent
from dpmf_cli.algorithms.beyond.private_constant_nbm import PrivateConstantNeighbourhood
from dpmf_cli.algorithms.beyond.public_knn import PublicKNN
from dpmf_cli.algorithms.beyond.public_pattern import PublicPattern
from dpmf_cli.algorithms.beyond.shrunk_averages import ShrunkAverages
from dpmf_cli.algorithms.field.dpals import PrivateAlternatingLeastSquares
from dpmf_cli.algorithms.field.dpam import PrivateAlternatingMinimization
from dpmf_cli.algorithms.field.frank_wolfe import FrankWolfe
from dpmf_cli.algorithms.field.hua_mf import HuaMF
from dpmf_cli.algorithms.field.liu_mf import LiuMF
from dpmf_cli.algorithms.field.mugdho_mf import MugdhoMF
from dpmf_cli.algorithms.friedman2016.isgd import InputPerturbationSGD
from dpmf_cli.algorithms.friedman2016.pals import PrivateALS
from dpmf_cli.algorithms.friedman2016.pge import PrivateGlobalEffects
from dpmf_cli.algorithms.friedman2016.pknn import PrivateKNN
from dpmf_cli.algorithms.friedman2016.psgd import PrivateSGD
from dpmf_cli.algorithms.mcsherry2009.mm_knn import CovarianceKNN
from dpmf_cli.algorithms.mcsherry2009.mm_svd import CovarianceSVD
from dpmf_cli.algorithms.neera2020.blp_mog_mf import MixtureFactorization
from dpmf_cli.algorithms.neera2020.isgd_local import LocalSGD
from dpmf_cli.algorithms.neera2020.pg_mf import PrivateGradientMF
from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.algorithms.wang2017.dpps_mf import PosteriorSamplingMF
from dpmf_cli.algorithms.wang2017.dpps_pnbm import PosteriorPNBM
from dpmf_cli.algorithms.wang2017.dpsgd_pnbm import PrivatePNBM
from dpmf_cli.algorithms.zhang2018.dp_pmf import PrivatePMF
from dpmf_cli.algorithms.zhang2018.personalized import Personalized


def _by_key(*classes: Any) -> dict[str, Any]:
    """Classes by their name in a config."""
    return {each.key(): each for each in classes}


BASELINES: dict[str, type[Algorithm]] = _by_key(
    GlobalAverage,
    UserAverage,
    ItemAverage,
    GlobalEffects,
    AlternatingLeastSquares,
    ProbabilisticMF,
    Sampled,
    SGDFactorization,
    PearsonKNN,
    CosineKNN,
    ConstantNeighbourhood,
    ProbabilisticNeighbourhood,
    Popularity,
)

PRIVATE: dict[str, type[PrivateAlgorithm]] = _by_key(
    PrivateGlobalEffects,
    InputPerturbationSGD,
    PrivateSGD,
    PrivateALS,
    ObjectivePrivateALS,
    PrivateBatchGradientDescent,
    PrivateKNN,
    PublicKNN,
    CovarianceKNN,
    CovarianceSVD,
    AveragesAndOwnMean,
    OwnMeanFixedCovariance,
    PrivatePMF,
    Personalized,
    MixtureFactorization,
    PrivateGradientMF,
    LocalSGD,
    LocalMatrixFactorization,
    LocalMean,
    LocalMeans,
    PrivatePNBM,
    PosteriorPNBM,
    PrivateConstantNeighbourhood,
    PosteriorSamplingMF,
    OwnRegression,
    PrivateAlternatingLeastSquares,
    PrivateAlternatingMinimization,
    FrankWolfe,
    HuaMF,
    MugdhoMF,
    LiuMF,
    PublicPattern,
    OwnPattern,
    ShrunkAverages,
)
"""The class with the parameters of each key. It validates an entry of a config."""
