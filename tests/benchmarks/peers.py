"""Speed against peers, in one process and one thread each: `make bench`. Ratios, since machines are noisy.

ISGD on ML-1M (one training fold, d = 5, 20 epochs) for 16 values of ε, averages, noise and the prediction of
the test fold included, against one fit of Cornac's `MF` and one of Surprise's `SVD` of the same size: without
biases, noise or prediction, which is less work than one of our models does. Throughput is models a second.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
from threadpoolctl import threadpool_limits

from dpmf_cli.algorithms.input_perturbation import InputPerturbationSGD
from dpmf_cli.datasets import cache_folder, data_folder, load
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.folds import split
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams
from dpmf_cli.tasks import fold_assignment

FACTORS, EPOCHS, GRID, REPETITIONS = 5, 20, 16, 5


def seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def ours(train: Ratings, test: Ratings) -> Callable[[], object]:
    algorithm = InputPerturbationSGD(algorithm="isgd", factors=FACTORS, epochs=EPOCHS)

    def fit_and_predict() -> object:
        ledger = Ledger(np.geomspace(0.1, 20, GRID))
        model = algorithm.fit(train, streams=Streams(0, "ml-1m", "isgd", 0, 0), ledger=ledger)
        return model.predict(test.users, test.items)

    return fit_and_predict


def cornac_mf(train: Ratings) -> Callable[[], object]:
    from cornac.data import Dataset
    from cornac.models import MF

    data = Dataset.from_uir(
        zip(train.users.tolist(), train.items.tolist(), train.values.tolist(), strict=True)
    )

    def fit() -> object:
        model = MF(k=FACTORS, max_iter=EPOCHS, learning_rate=0.01, use_bias=False, num_threads=1, seed=1)
        return model.fit(data)

    return fit


def surprise_svd(train: Ratings) -> Callable[[], object]:
    import pandas as pd
    from surprise import SVD, Dataset, Reader

    frame = pd.DataFrame({"user": train.users, "item": train.items, "rating": train.values})
    data = Dataset.load_from_df(frame, Reader(rating_scale=(1, 5))).build_full_trainset()
    return lambda: SVD(n_factors=FACTORS, n_epochs=EPOCHS, biased=False, random_state=1).fit(data)


def main() -> None:
    """Interleaves the contestants and prints the median of each and of the ratios run by run."""
    try:
        data = load(CatalogSpec(name="ml-1m"), data=data_folder(), cache=cache_folder(), base=data_folder())
    except DpmfError as error:
        sys.exit(f"the benchmark needs ML-1M: {error}")
    assignment = fold_assignment("ml-1m", 0, 10, len(data.ratings))
    train, test = split(data.ratings, assignment, 0)
    contestants = {
        "dpmf ISGD": (ours(train, test), GRID),
        "Cornac MF": (cornac_mf(train), 1),
        "Surprise SVD": (surprise_svd(train), 1),
    }
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    with threadpool_limits(1):
        contestants["dpmf ISGD"][0]()
        for _ in range(REPETITIONS):
            for name, (call, models) in contestants.items():
                rates[name].append(models / seconds(call))
    print(f"ML-1M, {len(train):,} training ratings, d = {FACTORS}, {EPOCHS} epochs, one thread, medians of "
          f"{REPETITIONS} interleaved repetitions")  # fmt: skip
    for name, rate in rates.items():
        ratios = np.array(rates["dpmf ISGD"]) / np.array(rate)
        print(
            f"  {name:13s} {np.median(rate):7.2f} models/s   dpmf is {np.median(ratios):5.1f} times as fast "
            f"(from {ratios.min():.1f} to {ratios.max():.1f})"
        )


if __name__ == "__main__":
    main()
