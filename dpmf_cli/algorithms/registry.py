"""The registry: every algorithm that a config can name."""

from typing import Any

from dpmf_cli.algorithms.baselines.clean_averages import (
    GlobalAverage,
    GlobalEffects,
    ItemAverage,
    Popularity,
    UserAverage,
)
from dpmf_cli.algorithms.baselines.clean_factorizations import (
    AlternatingLeastSquares,
    ProbabilisticMF,
    Sampled,
    SGDFactorization,
)
from dpmf_cli.algorithms.baselines.clean_neighbourhoods import (
    ConstantNeighbourhood,
    CosineKNN,
    PearsonKNN,
    ProbabilisticNeighbourhood,
)
from dpmf_cli.algorithms.beyond.comparisons import (
    AveragesAndOwnMean,
    OwnMeanFixedCovariance,
    PrivateConstantNeighbourhood,
    PublicKNN,
)
from dpmf_cli.algorithms.beyond.local_methods import LocalMatrixFactorization, LocalMean, LocalMeans
from dpmf_cli.algorithms.beyond.own_regression import OwnRegression
from dpmf_cli.algorithms.beyond.patterns import OwnPattern, PublicPattern
from dpmf_cli.algorithms.beyond.perturbed_factorizations import (
    ObjectivePrivateALS,
    PrivateBatchGradientDescent,
)
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
