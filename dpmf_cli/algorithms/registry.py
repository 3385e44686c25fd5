"""The registry: every algorithm that a config can name."""

from typing import Any

from dpmf_cli.algorithms.baselines import (
    als,
    constant_nbm,
    cos,
    ga,
    ge,
    ia,
    mf_sgd,
    pcc,
    pmf,
    pnbm,
    popularity,
    sampled,
    ua,
)
from dpmf_cli.algorithms.beyond import (
    local_mean,
    local_means,
    local_mf,
    mm_averages,
    mm_public,
    own_pattern,
    own_regression,
    pals_objective,
    pbgd,
    private_constant_nbm,
    public_knn,
    public_pattern,
    shrunk_averages,
)
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
    ga.GlobalAverage,
    ua.UserAverage,
    ia.ItemAverage,
    ge.GlobalEffects,
    als.AlternatingLeastSquares,
    pmf.ProbabilisticMF,
    sampled.Sampled,
    mf_sgd.SGDFactorization,
    pcc.PearsonKNN,
    cos.CosineKNN,
    constant_nbm.ConstantNeighbourhood,
    pnbm.ProbabilisticNeighbourhood,
    popularity.Popularity,
)

PRIVATE: dict[str, type[PrivateAlgorithm]] = _by_key(
    pge.PrivateGlobalEffects,
    isgd.InputPerturbationSGD,
    psgd.PrivateSGD,
    pals.PrivateALS,
    pals_objective.ObjectivePrivateALS,
    pbgd.PrivateBatchGradientDescent,
    pknn.PrivateKNN,
    public_knn.PublicKNN,
    mm_knn.CovarianceKNN,
    mm_svd.CovarianceSVD,
    mm_averages.AveragesAndOwnMean,
    mm_public.OwnMeanFixedCovariance,
    dp_pmf.PrivatePMF,
    personalized.Personalized,
    blp_mog_mf.MixtureFactorization,
    pg_mf.PrivateGradientMF,
    isgd_local.LocalSGD,
    local_mf.LocalMatrixFactorization,
    local_mean.LocalMean,
    local_means.LocalMeans,
    dpsgd_pnbm.PrivatePNBM,
    dpps_pnbm.PosteriorPNBM,
    private_constant_nbm.PrivateConstantNeighbourhood,
    dpps_mf.PosteriorSamplingMF,
    own_regression.OwnRegression,
    dpals.PrivateAlternatingLeastSquares,
    dpam.PrivateAlternatingMinimization,
    frank_wolfe.FrankWolfe,
    hua_mf.HuaMF,
    mugdho_mf.MugdhoMF,
    liu_mf.LiuMF,
    public_pattern.PublicPattern,
    own_pattern.OwnPattern,
    shrunk_averages.ShrunkAverages,
)
"""The class with the parameters of each key. It validates an entry of a config."""
