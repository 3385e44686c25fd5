"""The registry: every algorithm that a config can name."""

from typing import Any

from dpmf_cli.algorithms.baselines import clean_averages, clean_factorizations
from dpmf_cli.algorithms.beyond import comparisons, learned_features, patterns
from dpmf_cli.algorithms.field import chien2021, dp_sgd, factorizations
from dpmf_cli.algorithms.friedman2016 import matrix_factorization, pknn
from dpmf_cli.algorithms.mcsherry2009 import covariance_methods
from dpmf_cli.algorithms.neera2020 import local_factorization
from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.algorithms.wang2017 import descent_and_sampling
from dpmf_cli.algorithms.zhang2018 import private_pmf


def _by_key(*classes: Any) -> dict[str, Any]:
    return {each.key(): each for each in classes}


BASELINES: dict[str, type[Algorithm]] = _by_key(
    clean_averages.GlobalAverage,
    clean_averages.UserAverage,
    clean_averages.ItemAverage,
    clean_averages.GlobalEffects,
    clean_factorizations.AlternatingLeastSquares,
    clean_factorizations.ProbabilisticMF,
    clean_factorizations.Sampled,
    clean_factorizations.SGDFactorization,
    clean_averages.PearsonKNN,
    clean_averages.CosineKNN,
    clean_averages.ConstantNeighbourhood,
    clean_averages.ProbabilisticNeighbourhood,
    clean_averages.Popularity,
)

PRIVATE: dict[str, type[PrivateAlgorithm]] = _by_key(
    matrix_factorization.PrivateGlobalEffects,
    matrix_factorization.InputPerturbationSGD,
    matrix_factorization.PrivateSGD,
    matrix_factorization.PrivateALS,
    comparisons.ObjectivePrivateALS,
    comparisons.PrivateBatchGradientDescent,
    pknn.PrivateKNN,
    comparisons.PublicKNN,
    covariance_methods.CovarianceKNN,
    covariance_methods.CovarianceSVD,
    comparisons.AveragesAndOwnMean,
    comparisons.OwnMeanFixedCovariance,
    private_pmf.PrivatePMF,
    private_pmf.Personalized,
    local_factorization.MixtureFactorization,
    local_factorization.PrivateGradientMF,
    local_factorization.LocalSGD,
    comparisons.LocalMatrixFactorization,
    comparisons.LocalMean,
    comparisons.LocalMeans,
    descent_and_sampling.PrivatePNBM,
    descent_and_sampling.PosteriorPNBM,
    comparisons.PrivateConstantNeighbourhood,
    comparisons.PrivatePopularity,
    descent_and_sampling.PosteriorSamplingMF,
    learned_features.OwnRegression,
    chien2021.PrivateAlternatingLeastSquares,
    chien2021.PrivateAlternatingMinimization,
    dp_sgd.DPSGD,
    factorizations.HuaMF,
    factorizations.LiuMF,
    patterns.PublicPattern,
    patterns.OwnPattern,
    patterns.ShrunkAverages,
)
"""The class with the parameters of each key. It validates an entry of a config."""
