"""Speed against peers, in one process and one thread each: `make bench`. Ratios, since machines are noisy.

ML-1M, one training fold, d = 5, 16 values of ε at once, averages, noise and the prediction of the test fold
included, against one fit of a peer of the same size without biases, noise or prediction: less work than one of
our models does. The rate is models a second.

    ISGD, 20 epochs        Cornac MF and Surprise SVD, 20 epochs
    PSGD, 5 passes         Cornac MF, 5 epochs
    PALS, 5 iterations     cmfrec CMF by Cholesky ALS, 5 iterations

PMF has no noise: d = 20, ten epochs, one model alone, and 16 models on samples of their own (a tenth of the ratings left
out of each, at random), against one fit of Cornac's PMF of either variant.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from dpmf_cli.algorithms.base import PrivateAlgorithm
from dpmf_cli.algorithms.probabilistic import ProbabilisticMF
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.datasets import cache_folder, data_folder, load
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.folds import split
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams
from dpmf_cli.tasks import fold_assignment

FACTORS, GRID, REPETITIONS = 5, 16, 5
PMF_FACTORS, PMF_EPOCHS = 20, 10


def seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def ours(key: str, train: Ratings, test: Ratings) -> Callable[[], object]:
    algorithm: PrivateAlgorithm = PRIVATE[key](algorithm=key, factors=FACTORS)

    def fit_and_predict() -> object:
        ledger = Ledger(np.geomspace(0.1, 20, GRID))
        model = algorithm.fit(train, streams=Streams(0, "ml-1m", key, 0, 0), ledger=ledger)
        return model.predict(test.users, test.items)

    return fit_and_predict


def our_pmf(train: Ratings, test: Ratings, models: int) -> Callable[[], object]:
    pmf = ProbabilisticMF(algorithm="pmf", factors=PMF_FACTORS, epochs=PMF_EPOCHS)
    kept = np.random.default_rng(0).random((len(train), models)) < (0.9 if models > 1 else 1.0)

    def fit_and_predict() -> object:
        streams, ledger = Streams(0, "ml-1m", "pmf", 0, 0), Ledger([np.inf])
        return pmf.fit_samples(train, kept, streams=streams, ledger=ledger).predict(test.users, test.items)

    return fit_and_predict


def cornac_pmf(train: Ratings, variant: str) -> Callable[[], object]:
    from cornac.data import Dataset
    from cornac.models import PMF

    data = Dataset.from_uir(
        zip(train.users.tolist(), train.items.tolist(), train.values.tolist(), strict=True)
    )
    return lambda: PMF(k=PMF_FACTORS, max_iter=PMF_EPOCHS, variant=variant, seed=1).fit(data)


def cornac_mf(train: Ratings, epochs: int) -> Callable[[], object]:
    from cornac.data import Dataset
    from cornac.models import MF

    data = Dataset.from_uir(
        zip(train.users.tolist(), train.items.tolist(), train.values.tolist(), strict=True)
    )

    def fit() -> object:
        model = MF(k=FACTORS, max_iter=epochs, learning_rate=0.01, use_bias=False, num_threads=1, seed=1)
        return model.fit(data)

    return fit


def surprise_svd(train: Ratings, epochs: int) -> Callable[[], object]:
    import pandas as pd
    from surprise import SVD, Dataset, Reader

    frame = pd.DataFrame({"user": train.users, "item": train.items, "rating": train.values})
    data = Dataset.load_from_df(frame, Reader(rating_scale=(1, 5))).build_full_trainset()
    return lambda: SVD(n_factors=FACTORS, n_epochs=epochs, biased=False, random_state=1).fit(data)


def cmfrec_als(train: Ratings, iterations: int) -> Callable[[], object]:
    from cmfrec import CMF
    from scipy.sparse import coo_matrix

    data = coo_matrix((train.values, (train.users, train.items)), (train.n_users, train.n_items))

    def fit() -> object:
        model = CMF(
            method="als",
            k=FACTORS,
            lambda_=0.045,
            scale_lam=True,
            niter=iterations,
            use_cg=False,
            finalize_chol=False,
            user_bias=False,
            item_bias=False,
            precompute_for_predictions=False,
            use_float=True,
            nthreads=1,
            random_state=1,
            verbose=False,
        )
        return model.fit(data)

    return fit


def main() -> None:
    """Runs the races."""
    try:
        data = load(CatalogSpec(name="ml-1m"), data=data_folder(), cache=cache_folder(), base=data_folder())
    except DpmfError as error:
        sys.exit(f"the benchmark needs ML-1M: {error}")
    assignment = fold_assignment("ml-1m", 0, 10, len(data.ratings))
    train, test = split(data.ratings, assignment, 0)
    races: list[dict[str, tuple[Callable[[], object], int]]] = [
        {
            "dpmf ISGD": (ours("isgd", train, test), GRID),
            "Cornac MF": (cornac_mf(train, 20), 1),
            "Surprise SVD": (surprise_svd(train, 20), 1),
        },
        {"dpmf PSGD": (ours("psgd", train, test), GRID), "Cornac MF": (cornac_mf(train, 5), 1)},
        {"dpmf PALS": (ours("pals", train, test), GRID), "cmfrec ALS": (cmfrec_als(train, 5), 1)},
        *(
            {
                f"dpmf PMF × {models}": (our_pmf(train, test, models), models),
                "Cornac PMF": (cornac_pmf(train, "linear"), 1),
                "… non-linear": (cornac_pmf(train, "non_linear"), 1),
            }
            for models in (1, GRID)
        ),
    ]
    print(
        f"ML-1M, {len(train):,} training ratings, d = {FACTORS}, {GRID} ε, one thread, medians of "
        f"{REPETITIONS} interleaved repetitions"
    )
    for race in races:
        run_race(race)


def run_race(race: dict[str, tuple[Callable[[], object], int]]) -> None:
    """Interleaves the contestants, the first of them ours, and prints each one's median rate and ratio."""
    first = next(iter(race))
    rates: dict[str, list[float]] = {name: [] for name in race}
    with threadpool_limits(1):
        race[first][0]()
        for _ in range(REPETITIONS):
            for name, (call, models) in race.items():
                rates[name].append(models / seconds(call))
    for name, rate in rates.items():
        ratios = np.array(rates[first]) / np.array(rate)
        against = (
            ""
            if name == first
            else f"{first} is {np.median(ratios):.1f} times as fast (from {ratios.min():.1f} to {ratios.max():.1f})"
        )
        print(f"  {name:13s} {np.median(rate):8.2f} models/s   {against}")


if __name__ == "__main__":
    main()
