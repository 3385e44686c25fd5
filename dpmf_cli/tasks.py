"""A task: one algorithm on one fold and run of one data set, for a grid of ε. The unit of work and resuming."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.algorithms.base import Algorithm, PrivateAlgorithm, Shape
from dpmf_cli.evaluation.folds import assign_folds
from dpmf_cli.evaluation.metrics import root_mean_squared_errors
from dpmf_cli.privacy.ledger import Ledger
from dpmf_cli.privacy.neighbours import Mode
from dpmf_cli.ratings import Ratings
from dpmf_cli.streams import Streams, named_generator


@dataclass(frozen=True)
class Task:
    """What a result depends on. `checksum` is that of the data set's ratings, `dataset` its key."""

    dataset: str
    checksum: str
    folds: int
    seed: int
    fold: int
    run: int
    algorithm: Algorithm
    epsilons: tuple[float, ...]

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What the results of all folds, runs and ε of this algorithm have in common."""
        return {
            "dataset": self.dataset,
            "checksum": self.checksum,
            "folds": self.folds,
            "seed": self.seed,
            "algorithm": self.algorithm.parameters(),
        }

    @cached_property
    def settings_hash(self) -> str:
        return hashlib.sha256(json.dumps(self.settings, sort_keys=True).encode()).hexdigest()

    @property
    def streams(self) -> Streams:
        return Streams(self.seed, self.dataset, self.algorithm.algorithm, self.fold, self.run)


@dataclass(frozen=True)
class TaskResult:
    """What a task found: for each ε its error and the ledger's two sums, and the ledger itself."""

    epsilons: tuple[float, ...]
    rmse: tuple[float, ...]
    claimed: tuple[float, ...]
    provable: tuple[float, ...]
    ledger: tuple[dict[str, Any], ...]


def training_shape(users: int, items: int, ratings: int, folds: int) -> Shape:
    """The size of a training set under k-fold cross-validation."""
    return Shape(users, items, ratings - ratings // folds)


def fold_assignment(dataset: str, seed: int, folds: int, n_ratings: int) -> NDArray[np.int16]:
    """The folds of a data set under a seed: the same for every algorithm and run."""
    return assign_folds(n_ratings, folds, named_generator(seed, dataset, folds, "folds"))


def execute(task: Task, train: Ratings, test: Ratings) -> TaskResult:
    """Fits the task's algorithm on the training ratings and measures it on the test ratings."""
    algorithm = task.algorithm
    mode = algorithm.mode if isinstance(algorithm, PrivateAlgorithm) else Mode.CORRECTED
    delta = algorithm.spends_delta if isinstance(algorithm, PrivateAlgorithm) else 0.0
    ledger = Ledger(task.epsilons, mode, delta)
    model = algorithm.fit(train, streams=task.streams, ledger=ledger)
    predictions = model.predict(test.users, test.items)
    if algorithm.clip_predictions:
        predictions = np.clip(predictions, train.scale.minimum, train.scale.maximum)
    return TaskResult(
        task.epsilons,
        tuple(root_mean_squared_errors(predictions, test.values).tolist()),
        tuple(ledger.claimed.tolist()),
        tuple(ledger.provable.tolist()),
        tuple(entry.record() for entry in ledger.entries),
    )
