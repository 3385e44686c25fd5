"""Speed against peers, beside our aims and the limits of the machine: `make bench`.

    python -m tests.benchmarks.peers [--lenskit]

Uses one training fold of ML-1M. Ratios compare the least CPU time of a model (`races`). The row of a peer that is not installed says so, and how to install it.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from dpmf_cli.algorithms.shared.factorization import visiting_order
from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.files import write_whole
from dpmf_cli.core.ratings import Ratings
from dpmf_cli.datasets import Folders, load
from dpmf_cli.datasets.spec import CatalogSpec
from dpmf_cli.experiment.results.manifest import cpu
from dpmf_cli.experiment.results.task import Cut
from dpmf_cli.experiment.running.cutting import cut_ratings
from tests.benchmarks import contestants as of
from tests.benchmarks.contestants import Contestant, NotHereError
from tests.benchmarks.limits import measured
from tests.benchmarks.races import Enter, Outcome, Race, run_race
from tests.benchmarks.tables import (
    LIU_2015,
    billions,
    neighbours_table,
    of_limits,
    ratios_table,
    updates_table,
)

RESULT = Path("results", "bench.md")
FACTORS = (5, 20, 64)
ISGD_EPOCHS, PSGD_EPOCHS, PMF_EPOCHS = 20, 5, 2
PALS_ITERATIONS = {5: 5, 20: 5, 64: 2}
PMF_FACTORS, FEW = 20, 2000


def races(train: Ratings, test: Ratings, small: Ratings, cornac: of.CornacData) -> Iterator[Race]:
    """All races except LensKit's. Kernels are compiled on the `small` ratings before anything is measured."""

    def warm(contestant: Callable[..., Contestant], **parameters: Any) -> Enter:
        def enter() -> Contestant:
            contestant(train=small, test=small, **parameters).run(1)
            return contestant(train=train, test=test, **parameters)

        return enter

    private = partial(warm, of.ours)

    for d in FACTORS:
        sgd: dict[str, Enter] = {
            "Cornac `MF`": partial(of.cornac_mf, cornac, d, ISGD_EPOCHS),
            "LIBMF": partial(of.libmf, train, d, ISGD_EPOCHS),
        }
        yield Race(f"{ISGD_EPOCHS} epochs", d, private(key="isgd", factors=d, epochs=ISGD_EPOCHS), sgd)
    for d in FACTORS:
        mf = {"Cornac `MF`": partial(of.cornac_mf, cornac, d, PSGD_EPOCHS)}
        yield Race(f"{PSGD_EPOCHS} epochs", d, private(key="psgd", factors=d, epochs=PSGD_EPOCHS), mf)
    for d, iterations in PALS_ITERATIONS.items():
        als = {"cmfrec ALS by Cholesky": partial(of.cmfrec_als, train, d, iterations)}
        yield Race(f"{iterations} iterations", d, private(key="pals", factors=d, iterations=iterations), als)
    for d, models in [*((d, 1) for d in FACTORS), (PMF_FACTORS, of.GRID)]:
        linear = {"Cornac `PMF`, linear": partial(of.cornac_pmf, cornac, d, PMF_EPOCHS)}
        yield Race(
            f"{PMF_EPOCHS} epochs", d, warm(of.our_pmf, factors=d, epochs=PMF_EPOCHS, models=models), linear
        )


def neighbour_races(
    train: Ratings, test: Ratings, small: Ratings, cornac: of.CornacData, lenskit: Enter
) -> Iterator[Race]:
    """kNN and SVD on the covariance of items: from the ratings to predictions of the test fold."""
    peers: dict[str, Enter] = {
        "Cornac `ItemKNN`": partial(of.cornac_knn, cornac, test),
        "LensKit `ItemKNNScorer`": lenskit,
    }

    def enter(key: str) -> Contestant:
        of.our_neighbours(key, small, small).run(1)
        return of.our_neighbours(key, train, test)

    for key, racing in (("mm_knn", peers), ("mm_svd", {})):
        yield Race(f"fit and predict, k = {of.NEIGHBOURS}", None, partial(enter, key), racing)


def page(lenskit: bool) -> str:
    """Runs all races, and returns the Markdown that reports them."""
    try:
        data = load(CatalogSpec(name="ml-1m"), Folders.named())
    except DpmfError as error:
        sys.exit(f"the benchmark needs ML-1M: {error}")
    load_before = os.getloadavg()[0]
    train, test = cut_ratings(data.ratings, Cut(10, 0), dataset="ml-1m", seed=0)
    small = data.ratings.select(np.arange(len(data.ratings)) < FEW)
    cornac = cache(partial(of.cornac_data, train))
    factorisations = [told(run_race(race)) for race in races(train, test, small, cornac)]
    order = visiting_order(train, "user_major", np.random.default_rng(0))
    limits = {d: measured(train.items[order], train.n_items, d) for d in FACTORS}
    visits = {
        f"dpmf {method} {d}": len(train) * passes
        for d in FACTORS
        for method, passes in (("ISGD", ISGD_EPOCHS), ("PSGD", PSGD_EPOCHS), ("PALS", 2 * PALS_ITERATIONS[d]))
    }
    with ExitStack() as stack:

        def enter_lenskit() -> Contestant:
            if not lenskit:
                raise NotHereError("`make bench LENSKIT=1` (1.5 GB)")
            return stack.enter_context(of.lenskit_knn(train, test))

        neighbours = [
            told(run_race(race, (1,))) for race in neighbour_races(train, test, small, cornac, enter_lenskit)
        ]
    return "\n".join(
        [
            f"{cpu()}, {os.cpu_count()} cores, load {load_before:.1f} when it began; {_versions()}. "
            f"ML-1M, {len(train):,} training ratings, {of.GRID} ε at once.\n",
            ratios_table([*factorisations, *neighbours], of_limits(factorisations, visits, limits)),
            f"Coordinate updates of ISGD. Liu et al. (2015) report {billions(LIU_2015)}·10⁹ a second on one PC.\n",
            updates_table(factorisations, ISGD_EPOCHS * len(train), limits),
            f"Item neighbours, {len(test):,} predictions:\n",
            neighbours_table(neighbours),
        ]
    )


def told(found: Outcome) -> Outcome:
    """The outcome, whose rows are printed as they come, so that an interrupted run has reported its finished
    races."""
    print("".join(ratios_table([found], {}).splitlines(keepends=True)[2:]), end="", file=sys.stderr)
    return found


def _versions() -> str:
    found = []
    for name in ("numpy", "numba", "cornac", "libmf", "cmfrec"):
        with suppress(ImportError):
            found.append(f"{name} {version(name)}")
    return ", ".join(found)


def main() -> None:
    """Prints the tables, and writes them into results/bench.md."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--lenskit", action="store_true", help="race against LensKit, which takes 1.5 GB")
    asked = parser.parse_args()
    begin = time.perf_counter()
    made = page(asked.lenskit)
    print(made)
    took = f"{time.perf_counter() - begin:.0f} s by the clock, {time.process_time():.0f} s of CPU"
    print(f"the races took {took}", file=sys.stderr)
    RESULT.parent.mkdir(exist_ok=True)
    write_whole(RESULT, made.encode())


if __name__ == "__main__":
    main()
