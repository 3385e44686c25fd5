"""The registry: every algorithm that a config can name."""

from typing import Any

from dpmf_cli.algorithms.baselines import clean_averages, clean_factorizations, clean_neighbourhoods
from dpmf_cli.algorithms.beyond import comparisons, learned_features, patterns, perturbed_factorizations
from dpmf_cli.algorithms.field import dpals, dpam, frank_wolfe, hua_mf, liu_mf, mugdho_mf
from dpmf_cli.algorithms.friedman2016 import isgd, pals, pge, pknn, psgd
from dpmf_cli.algorithms.mcsherry2009 import mm_knn, mm_svd
from dpmf_cli.algorithms.neera2020 import blp_mog_mf, isgd_local, pg_mf
from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.algorithms.wang2017 import dpps_mf, dpps_pnbm, dpsgd_pnbm
from dpmf_cli.algorithms.zhang2018 import dp_pmf, personalized


def _by_key(*classes: Any) -> dict[str, Any]:
    """Classes by their name in a config."""
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
    clean_neighbourhoods.PearsonKNN,
    clean_neighbourhoods.CosineKNN,
    clean_neighbourhoods.ConstantNeighbourhood,
    clean_neighbourhoods.ProbabilisticNeighbourhood,
    clean_averages.Popularity,
)

PRIVATE: dict[str, type[PrivateAlgorithm]] = _by_key(
    pge.PrivateGlobalEffects,
    isgd.InputPerturbationSGD,
    psgd.PrivateSGD,
    pals.PrivateALS,
    perturbed_factorizations.ObjectivePrivateALS,
    perturbed_factorizations.PrivateBatchGradientDescent,
    pknn.PrivateKNN,
    comparisons.PublicKNN,
    mm_knn.CovarianceKNN,
    mm_svd.CovarianceSVD,
    comparisons.AveragesAndOwnMean,
    comparisons.OwnMeanFixedCovariance,
    dp_pmf.PrivatePMF,
    personalized.Personalized,
    blp_mog_mf.MixtureFactorization,
    pg_mf.PrivateGradientMF,
    isgd_local.LocalSGD,
    comparisons.LocalMatrixFactorization,
    comparisons.LocalMean,
    comparisons.LocalMeans,
    dpsgd_pnbm.PrivatePNBM,
    dpps_pnbm.PosteriorPNBM,
    comparisons.PrivateConstantNeighbourhood,
    dpps_mf.PosteriorSamplingMF,
    learned_features.OwnRegression,
    dpals.PrivateAlternatingLeastSquares,
    dpam.PrivateAlternatingMinimization,
    frank_wolfe.FrankWolfe,
    hua_mf.HuaMF,
    mugdho_mf.MugdhoMF,
    liu_mf.LiuMF,
    patterns.PublicPattern,
    patterns.OwnPattern,
    patterns.ShrunkAverages,
)
"""The class with the parameters of each key. It validates an entry of a config."""
