"""Speed against peers, in one process and one thread each: `make bench`. Ratios, since machines are noisy.

ML-1M, one training fold, d = 5, 16 values of ε at once, averages, noise and the prediction of the test fold
included, against one fit of a peer of the same size without biases, noise or prediction: less work than one of
our models does. The rate is models a second.

    ISGD, 20 epochs        Cornac MF and Surprise SVD, 20 epochs
    PSGD, 5 passes         Cornac MF, 5 epochs
    PALS, 5 iterations     cmfrec CMF by Cholesky ALS, 5 iterations

Then item kNN, k = 20: McSherry and Mironov's kNN and SVD without noise, against Surprise `KNNBaseline` (item-based,
`pearson_baseline`) and LensKit `ItemKNNScorer`, everyone from the ratings to predictions of the whole test fold. What
a prediction costs is what the whole fold takes more than its first pair alone, both at their fastest; all times are
CPU times. These models differ: the RMSE stands beside.

Last, Wang and Tang's PCC, 1300 neighbours, against Surprise `KNNWithMeans` with the same similarity; and PNBM, which no
peer has, for what learning 500 similarities an item takes.

LensKit 2025.8 needs an older pandas than this project and PyTorch, so it gets an environment of its own within this
one (`lenskit/`, made once, about 1.5 GB) and a process that is asked for one fit at a time.

PMF has no noise: d = 20, ten epochs, one model alone, and 16 models on samples of their own (a tenth of the ratings left
out of each, at random), against one fit of Cornac's PMF of either variant.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dpmf_cli.algorithms.baselines.pcc import PearsonKNN
from dpmf_cli.algorithms.baselines.pmf import ProbabilisticMF
from dpmf_cli.algorithms.baselines.pnbm import ProbabilisticNeighbourhood
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm, PrivateAlgorithm
from dpmf_cli.algorithms.shared.model import Model
from dpmf_cli.datasets import Folders, load
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.errors import DpmfError
from dpmf_cli.evaluation.folds import split
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Epsilons, Ledger
from dpmf_cli.ratings import Ratings
from dpmf_cli.running.cutting import fold_assignment
from dpmf_cli.streams import Streams

FACTORS, GRID, REPETITIONS = 5, 16, 5
NEIGHBOURS, CORRELATED, KNN_REPETITIONS = 20, 1300, 3
LENSKIT = ("lenskit==2025.8.1", "torch==2.13.*")

Answer = tuple[float, float]
"""Seconds of CPU from ratings to predictions, and their RMSE."""
PMF_FACTORS, PMF_EPOCHS = 20, 10


def seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def fit_models(algorithm: Algorithm, train: Ratings, epsilons: Epsilons) -> Model:
    """One model for each ε."""
    streams = Streams(0, "ml-1m", algorithm.algorithm, 0, 0)
    return algorithm.fit(train, epsilons, streams=streams, curator=Curator(Ledger(epsilons), streams))


def ours(key: str, train: Ratings, test: Ratings) -> Callable[[], object]:
    algorithm: PrivateAlgorithm = PRIVATE[key].model_validate({"algorithm": key, "factors": FACTORS})

    def fit_and_predict() -> object:
        model = fit_models(algorithm, train, np.geomspace(0.1, 20, GRID))
        return model.predict(test.users, test.items)

    return fit_and_predict


def our_pmf(train: Ratings, test: Ratings, models: int) -> Callable[[], object]:
    pmf = ProbabilisticMF(algorithm="pmf", factors=PMF_FACTORS, epochs=PMF_EPOCHS)
    kept = np.random.default_rng(0).random((len(train), models)) < (0.9 if models > 1 else 1.0)

    def fit_and_predict() -> object:
        streams, grid = Streams(0, "ml-1m", "pmf", 0, 0), np.full(kept.shape[1], np.inf)
        curator = Curator(Ledger(grid), streams)
        model = pmf.fit_samples(train, kept, grid, streams=streams, curator=curator)
        return model.predict(test.users, test.items)

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


def ours_without_noise(algorithm: Algorithm, train: Ratings, test: Ratings) -> Callable[[int], Answer]:
    def predict(asked: int) -> NDArray[np.floating]:
        model = fit_models(algorithm, train, np.array([np.inf]))
        return model.predict(test.users[:asked], test.items[:asked])[:, 0]

    return answering(predict, test)


def surprise_knn(
    train: Ratings, test: Ratings, kind: str, similarity: str, neighbours: int
) -> Callable[[int], Answer]:
    import pandas as pd
    import surprise
    from surprise import Dataset, Reader

    frame = pd.DataFrame({"user": train.users, "item": train.items, "rating": train.values})
    data = Dataset.load_from_df(frame, Reader(rating_scale=(1, 5))).build_full_trainset()
    pairs = list(zip(test.users.tolist(), test.items.tolist(), test.values.tolist(), strict=True))

    def predict(asked: int) -> NDArray[np.float64]:
        options = {"name": similarity, "user_based": False}
        model = getattr(surprise, kind)(k=neighbours, sim_options=options, verbose=False).fit(data)
        return np.array([prediction.est for prediction in model.test(pairs[:asked])])

    return answering(predict, test)


def answering(predict: Callable[[int], NDArray[np.floating]], test: Ratings) -> Callable[[int], Answer]:
    """`predict` fits and predicts the first pairs, as many as it is told."""

    def answer(asked: int) -> Answer:
        begin = time.process_time()
        predictions = predict(asked)
        took = time.process_time() - begin
        return took, float(np.sqrt(np.mean((predictions - test.values[:asked]) ** 2)))

    return answer


@contextmanager
def lenskit_knn(train: Ratings, test: Ratings) -> Iterator[Callable[[int], Answer]]:
    """LensKit in its own environment and process, which is made first where it is not there.

    raises CalledProcessError where it cannot be installed
    """
    folder = Path(sys.prefix) / "lenskit"
    if not (folder / "installed").exists():
        print(f"  (installing {LENSKIT[0]} in {folder})", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *LENSKIT]
        subprocess.run(command, check=True)
        (folder / "installed").touch()
    script = Path(__file__).with_name("lenskit_knn.py")
    threads = ("LK_NUM_THREADS", "LK_NUM_BACKEND_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS")
    with tempfile.TemporaryDirectory() as scratch:
        arrays = {
            f"{part}_{name}": getattr(ratings, column)
            for part, ratings in (("train", train), ("test", test))
            for name, column in (("users", "users"), ("items", "items"), ("ratings", "values"))
        }
        np.savez(Path(scratch) / "ratings.npz", allow_pickle=False, **arrays)
        process = subprocess.Popen(
            [str(folder / "bin" / "python"), str(script), str(Path(scratch) / "ratings.npz")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **dict.fromkeys(threads, "1")},
        )
        with process:
            requests, answers = process.stdin, process.stdout
            if requests is None or answers is None:
                raise RuntimeError("no pipes to LensKit's process")

            def answer(asked: int) -> Answer:
                print(asked, file=requests, flush=True)
                found = json.loads(answers.readline())
                return found["seconds"], found["rmse"]

            yield answer


def main() -> None:
    """Runs the races."""
    try:
        data = load(CatalogSpec(name="ml-1m"), Folders.named())
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
    print(
        f"ML-1M, {len(train):,} training ratings, {len(test):,} predictions, k = {NEIGHBOURS}, one thread, medians of "
        f"{KNN_REPETITIONS} interleaved repetitions"
    )
    contestants = {
        "dpmf kNN": ours_without_noise(covariance("mm_knn"), train, test),
        "dpmf SVD": ours_without_noise(covariance("mm_svd"), train, test),
        "Surprise KNNBaseline": surprise_knn(train, test, "KNNBaseline", "pearson_baseline", NEIGHBOURS),
    }
    try:
        with lenskit_knn(train, test) as lenskit:
            run_predictions({**contestants, "LensKit ItemKNNScorer": lenskit}, len(test))
    except subprocess.CalledProcessError as error:
        print(f"  without LensKit, which could not be installed: {error}", file=sys.stderr)
        run_predictions(contestants, len(test))
    correlations = {
        "dpmf PCC": ours_without_noise(PearsonKNN(algorithm="pcc", k=CORRELATED), train, test),
        "dpmf PNBM": ours_without_noise(ProbabilisticNeighbourhood(algorithm="pnbm"), train, test),
        "Surprise KNNWithMeans": surprise_knn(train, test, "KNNWithMeans", "pearson", CORRELATED),
    }
    run_predictions(correlations, len(test))


def covariance(key: str) -> PrivateAlgorithm:
    return PRIVATE[key].model_validate({"algorithm": key, "neighbours": "unbounded", "noise": "laplace"})


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


def run_predictions(race: dict[str, Callable[[int], Answer]], pairs: int) -> None:
    """Interleaves the contestants, the first of them ours: each fits and predicts all pairs, and fits and predicts
    one."""
    first = next(iter(race))
    whole: dict[str, list[float]] = {name: [] for name in race}
    one: dict[str, list[float]] = {name: [] for name in race}
    rmse = {}
    with threadpool_limits(1):
        for name in race:
            race[name](1)
        for _ in range(KNN_REPETITIONS):
            for name, contestant in race.items():
                took, rmse[name] = contestant(pairs)
                whole[name].append(took)
                one[name].append(contestant(1)[0])
    for name in race:
        ratios = np.array(whole[name]) / np.array(whole[first])
        each = 1e6 * (min(whole[name]) - min(one[name])) / (pairs - 1)
        against = "" if name == first else f"{ratios.min():.1f} to {ratios.max():.1f} times as long"
        print(
            f"  {name:22s} {np.median(whole[name]):7.2f} s   {f'{each:.0f}' if each >= 1 else 'under 1':>7s} µs a prediction   "
            f"RMSE {rmse[name]:.4f}   {against}"
        )


if __name__ == "__main__":
    main()
