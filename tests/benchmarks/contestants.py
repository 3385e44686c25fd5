"""The contestants of the races: each of our algorithms, and the peers that do the same work or less.

Ours fit 16 ε at once, with private averages and noise, and predict the test fold. A peer fits one model of the same
size, without biases, noise or prediction. In the race of item kNN every contestant predicts the test fold.
"""

import importlib
import io
import json
import os
import subprocess
import sys
import tempfile
import time
import venv
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.baselines.clean_factorizations import ProbabilisticMF
from dpmf_cli.algorithms.registry import PRIVATE
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.core.streams import Streams
from dpmf_cli.privacy.curator import Curator
from dpmf_cli.privacy.ledger import Ledger

GRID, NEIGHBOURS = 16, 20
CornacData = Callable[[], Any]
"""Makes the data of `cornac_data` once."""
LENSKIT = ("lenskit==2025.8.1", "torch==2.13.*")


class NotHereError(Exception):
    """A peer is not installed. The message says how to install it."""


@dataclass(frozen=True)
class Ran:
    """The cost of a run in CPU seconds of all threads, and its RMSE on the test fold if asked for."""

    seconds: float
    rmse: float | None = None


@dataclass(frozen=True)
class Contestant:
    """One whose run fits so many models: ours on each thread, a peer with all threads.

    threaded   whether it can use several threads
    """

    name: str
    models: float
    run: Callable[[int], Ran]
    threaded: bool = True


def timed(call: Callable[[], NDArray[np.floating] | None], truth: NDArray[np.float32] | None = None) -> Ran:
    """The CPU time of a call, and the RMSE of its predictions of the `truth`."""
    begin = time.process_time()
    found = call()
    seconds = time.process_time() - begin
    return Ran(seconds, None if truth is None else float(np.sqrt(np.mean((np.asarray(found) - truth) ** 2))))


def _fit(entry: Any, train: Ratings, test: Ratings, epsilons: NDArray[np.float64], kept: Any = None) -> Any:
    """The predictions of the test fold by an entry of a config, fitted for these ε; `kept`: each model's sample."""
    streams = Streams(0, "ml-1m", entry.algorithm, 0, 0)
    curator = Curator(Ledger(epsilons), streams)
    if kept is None:
        model = entry.fit(train, epsilons, streams=streams, curator=curator)
    else:
        model = entry.fit_samples(train, kept, epsilons, streams=streams, curator=curator)
    return model.predict(test.users, test.items)


def _side_by_side(name: str, models: int, fit: Callable[[], object]) -> Contestant:
    """One fit for each thread at the same time: kernels run without Python's lock, like the processes of `dpmf
    run -j`."""

    def run(threads: int) -> Ran:
        with ThreadPoolExecutor(threads) as pool:
            begin = time.process_time()
            for each in [pool.submit(fit) for _ in range(threads)]:
                each.result()
            return Ran(time.process_time() - begin)

    return Contestant(f"dpmf {name}", models, run)


def ours(key: str, train: Ratings, test: Ratings, **parameters: object) -> Contestant:
    """A private factorisation with default values except for these parameters."""
    entry = PRIVATE[key].model_validate({"algorithm": key, **parameters})
    return _side_by_side(entry.title, GRID, lambda: _fit(entry, train, test, np.geomspace(0.1, 20, GRID)))


def our_pmf(train: Ratings, test: Ratings, factors: int, epochs: int, models: int) -> Contestant:
    """PMF on all ratings, or several models, each on a sample that leaves out a tenth at random."""
    pmf = ProbabilisticMF(algorithm="pmf", factors=factors, epochs=epochs)
    kept = np.random.default_rng(0).random((len(train), models)) < (0.9 if models > 1 else 1.0)
    name = f"PMF, {models} model{'s' * (models > 1)}"
    return _side_by_side(name, models, lambda: _fit(pmf, train, test, np.full(models, np.inf), kept))


def our_neighbours(key: str, train: Ratings, test: Ratings) -> Contestant:
    """McSherry and Mironov's predictors on the covariance of items, without noise."""
    chosen = {"algorithm": key, "neighbours": "unbounded", "noise": "laplace"}
    entry, without_noise = PRIVATE[key].model_validate(chosen), np.array([np.inf])

    def run(threads: int) -> Ran:
        return timed(lambda: _fit(entry, train, test, without_noise)[:, 0], test.values)

    return Contestant(f"dpmf {entry.title}", 1, run)


def cornac_data(train: Ratings) -> Any:
    """The ratings in the form that Cornac takes. Raises NotHereError."""
    rows = zip(train.users.tolist(), train.items.tolist(), train.values.tolist(), strict=True)
    return _imported("cornac.data", "cornac").Dataset.from_uir(rows)


def cornac_mf(data: CornacData, factors: int, epochs: int) -> Contestant:
    models, ratings = _imported("cornac.models", "cornac"), data()
    given = {"k": factors, "max_iter": epochs, "learning_rate": 0.01, "use_bias": False, "seed": 1}

    def run(threads: int) -> Ran:
        return timed(lambda: models.MF(num_threads=threads, **given).fit(ratings) and None)

    return Contestant("Cornac `MF`", 1, run)


def cornac_pmf(data: CornacData, factors: int, epochs: int) -> Contestant:
    models, ratings = _imported("cornac.models", "cornac"), data()
    given = {"k": factors, "max_iter": epochs, "variant": "linear", "seed": 1}

    def run(threads: int) -> Ran:
        return timed(lambda: models.PMF(**given).fit(ratings) and None)

    return Contestant("Cornac `PMF`, linear", 1, run, threaded=False)


def cornac_knn(data: CornacData, test: Ratings) -> Contestant:
    models, ratings = _imported("cornac.models", "cornac"), data()
    users, items = (
        [ids.get(each) for each in column.tolist()]
        for ids, column in ((ratings.uid_map, test.users), (ratings.iid_map, test.items))
    )
    given = {"k": NEIGHBOURS, "similarity": "pearson", "mean_centered": True, "verbose": False}

    def run(threads: int) -> Ran:
        def predict() -> NDArray[np.float64]:
            model = models.ItemKNN(num_threads=threads, **given).fit(ratings)
            rated = (
                ratings.global_mean if user is None or item is None else model.rate(user, item)
                for user, item in zip(users, items, strict=True)
            )
            return np.fromiter(rated, float)

        return timed(predict, test.values)

    return Contestant("Cornac `ItemKNN`", 1, run)


def libmf(train: Ratings, factors: int, epochs: int) -> Contestant:
    """LIBMF visits blocks that share neither users nor items at the same time (Chin et al. 2015). It runs a
    quarter of the epochs, which counts as a quarter of a model. Its time includes sorting."""
    mf = _imported("libmf.mf", "libmf")
    data = np.column_stack([train.users, train.items, train.values]).astype(np.float32)

    def run(threads: int) -> Ran:
        model = mf.MF(k=factors, nr_iters=epochs // 4, nr_threads=threads, quiet=True, eta=0.05)
        return timed(lambda: model.fit(data))

    return Contestant("LIBMF", 0.25, run)


def cmfrec_als(train: Ratings, factors: int, iterations: int) -> Contestant:
    from scipy.sparse import coo_matrix

    cmfrec = _imported("cmfrec", "cmfrec")
    data = coo_matrix((train.values, (train.users, train.items)), (train.n_users, train.n_items))

    given = {"method": "als", "k": factors, "lambda_": 0.045, "scale_lam": True, "niter": iterations}
    given |= {"use_float": True, "random_state": 1}
    unused = ("use_cg", "finalize_chol", "user_bias", "item_bias", "precompute_for_predictions", "verbose")

    def run(threads: int) -> Ran:
        model = cmfrec.CMF(nthreads=threads, **given, **dict.fromkeys(unused, False))
        return timed(lambda: model.fit(data) and None)

    return Contestant("cmfrec ALS by Cholesky", 1, run)


def _imported(module: str, package: str) -> Any:
    """A module of a peer. Raises NotHereError."""
    try:
        with (
            redirect_stdout(io.StringIO()),
            warnings.catch_warnings(action="ignore"),
        ):  # LIBMF says where it is
            return importlib.import_module(module)
    except (ImportError, OSError):
        raise NotHereError(f"`pip install {package}`") from None


@contextmanager
def lenskit_knn(train: Ratings, test: Ratings) -> Iterator[Contestant]:
    """LensKit in an environment of its own within this one, which is made first, about 1.5 GB: it needs an older
    pandas, and PyTorch. Its process is asked for one fit at a time.

    raises NotHereError where it cannot be installed
    """
    folder = Path(sys.prefix) / "lenskit"
    python = str(folder / "bin" / "python")
    if not (folder / "installed").exists():
        print(f"installing {LENSKIT[0]} in {folder}", file=sys.stderr)
        venv.create(folder, clear=True, with_pip=True)
        try:
            subprocess.run([python, "-m", "pip", "install", "-qq", *LENSKIT], check=True)
        except subprocess.CalledProcessError:
            raise NotHereError(f"`{python} -m pip install {' '.join(LENSKIT)}`") from None
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
            [python, str(script), str(Path(scratch) / "ratings.npz")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **dict.fromkeys(threads, "1")},
        )
        with process:
            requests, answers = process.stdin, process.stdout
            if requests is None or answers is None:
                raise RuntimeError("no pipes to LensKit's process")

            def run(threads: int) -> Ran:
                print(len(test), file=requests, flush=True)
                found = json.loads(answers.readline())
                return Ran(found["seconds"], found["rmse"])

            yield Contestant("LensKit `ItemKNNScorer`", 1, run, threaded=False)
