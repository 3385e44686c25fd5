"""The table of costs: the cost of a fit of each of dpmf's own algorithms, by the algorithm's key in a config."""

from collections.abc import Callable, Mapping
from typing import Any

from dpmf_cli.algorithms.costs import (
    alternation,
    averages,
    covariance,
    factorization,
    local,
    neighbourhood,
    pattern,
)
from dpmf_cli.algorithms.costs.cost import Cost, Shape

COSTS: Mapping[str, Callable[[Any, Shape, int], Cost]] = {
    **dict.fromkeys(
        ("ga", "ua", "ia", "ge", "pge", "popularity", "mm_averages", "shrunk_averages"), averages.averages
    ),
    "als": factorization.als,
    "mf_sgd": factorization.mf_sgd,
    "pmf": factorization.pmf,
    "sampled": factorization.sampled,
    "pcc": neighbourhood.correlation,
    "cos": neighbourhood.correlation,
    "constant_nbm": neighbourhood.constant_nbm,
    "pnbm": neighbourhood.pnbm,
    "isgd": factorization.isgd,
    "psgd": factorization.psgd,
    "pals": factorization.pals,
    "pals_objective": factorization.pals,
    "pbgd": factorization.pbgd,
    "pknn": covariance.pknn,
    "public_knn": covariance.public_knn,
    "mm_knn": covariance.mm_knn,
    "mm_svd": covariance.mm_svd,
    "mm_public": covariance.mm_public,
    "dp_pmf": factorization.dp_pmf,
    "personalized": factorization.personalized,
    "blp_mog_mf": local.blp_mog_mf,
    "pg_mf": local.pg_mf,
    "isgd_local": local.isgd_local,
    "local_mf": local.local_mf,
    "local_mean": local.local_mean,
    "local_means": local.local_means,
    "dpsgd_pnbm": neighbourhood.private_pnbm,
    "dpps_pnbm": neighbourhood.private_pnbm,
    "private_constant_nbm": neighbourhood.private_constant_nbm,
    "dpps_mf": factorization.dpps_mf,
    "own_regression": factorization.own_regression,
    "dpals": alternation.dpals,
    "dpam": alternation.dpam,
    "frank_wolfe": covariance.frank_wolfe,
    "hua_mf": factorization.hua_mf,
    "mugdho_mf": factorization.mugdho_mf,
    "liu_mf": factorization.liu_mf,
    "public_pattern": pattern.public_pattern,
    "own_pattern": pattern.own_pattern,
}
"""A function takes the entry with its parameters, the size of the training set, and how many ε there are."""
