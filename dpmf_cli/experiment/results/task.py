"""Tasks, the unit of work and of resuming: one algorithm on one fold and run of one data set, for a grid of ε."""

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, with_config

from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.algorithms.shared.sample_fits import RecordCosts
from dpmf_cli.core.streams import OWN, SECRET, Seed, Streams, drawn_seed
from dpmf_cli.datasets import DataIdentity
from dpmf_cli.datasets.spec import NewUsersSplit, Split
from dpmf_cli.evaluation.folds import Order
from dpmf_cli.evaluation.metrics import TopItems
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.privacy.neighbours import Neighbours

NOISE_FREE_GRID = (math.inf,)
"""The grid of a fit without noise."""


def hash_of(settings: dict[str, Any]) -> str:
    """The hash (hex) that names results with these settings."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Cut:
    """How the ratings of a task are cut into training and test ratings.

    portion, order   only the first `portion` of the ratings in that order is used, in training and in testing
    split            what is predicted
    """

    folds: int
    fold: int
    portion: float = 1.0
    order: Order = "timestamp"
    split: Split = "folds"

    @property
    def of_new_users(self) -> bool:
        """Whether ratings of users whom no fit has seen are predicted. Each ε then has a fit of its own."""
        return isinstance(self.split, NewUsersSplit)


@dataclass(frozen=True)
class Task:
    """Everything that a result depends on. `limits` are the x of the distribution of errors; empty if not measured.

    experiment  name of the config if the seed is secret, because another experiment draws another seed; else ""
    ranking     the ranking metrics to measure; None for none
    groups      whether to measure errors by group (`evaluation.metrics.GROUPED`)
    """

    data: DataIdentity
    seed: Seed
    cut: Cut
    run: int
    algorithm: Algorithm
    epsilons: tuple[float, ...]
    limits: tuple[float, ...] = ()
    experiment: str = ""
    ranking: TopItems | None = None
    groups: bool = False

    @cached_property
    def settings(self) -> dict[str, Any]:
        """What the results of all folds, runs and ε of this algorithm have in common.

        Leaves out settings that do not affect the cut: all ratings are the same in any order.
        """
        cut = self.cut
        split = cut.split if isinstance(cut.split, str) else cut.split.model_dump(exclude={"path"})
        return {
            "dataset": self.data.key,
            "checksum": self.data.checksum,
            "seed": self.seed,
            "algorithm": self.algorithm.parameters(),
            "folds": cut.folds,
            **({"portion": cut.portion, "order": cut.order} if cut.portion < 1 else {}),
            **({"test": split} if split != "folds" else {}),
            **({"unit": "stars"} if self.data.to_stars else {}),
            **({"streams": OWN} if self.data.own else {}),
            **({"test_checksum": self.data.test_checksum} if self.data.test_checksum else {}),
            **({"error_cdf": list(self.limits)} if self.limits else {}),
            **({"ranking": self.ranking.model_dump()} if self.ranking else {}),
            **({"groups": True} if self.groups else {}),
            **({"experiment": self.experiment} if self.experiment else {}),
        }

    @cached_property
    def settings_hash(self) -> str:
        return hash_of(self.settings)

    @cached_property
    def key(self) -> tuple[str, int, int, tuple[float, ...]]:
        """What distinguishes the results of this task from those of other tasks."""
        return self.settings_hash, self.cut.fold, self.run, self.epsilons

    def streams(self) -> Streams:
        """The random generators of one fit; if the seed is secret, each call returns new ones."""
        seed = drawn_seed(self.seed)
        return Streams(seed, self.data.stream, self.algorithm.algorithm, self.cut.fold, self.run)


Number = Annotated[
    float, Field(strict=True, ge=0), BeforeValidator(lambda value: math.inf if value == "inf" else value)
]
"""A number of a task's file: at least 0; an infinity is the string "inf"."""

Fraction = Annotated[float, Field(strict=True, ge=0, le=1 + 1e-9)]
"""A share, or a mean of shares, which rounding may lift above 1."""


class _Step(BaseModel, extra="forbid"):
    """A step of a ledger in a task's file, as `privacy.ledger.Entry` records it; lists have one number for each ε."""

    step: str
    mechanism: str
    sensitivity: Number
    calibrated_to: Number
    norm: str
    neighbours: Neighbours
    source: str
    claimed: list[Number]
    provable: list[Number]
    mu: list[Number] = []
    rate: Fraction = 1.0
    repetitions: int = Field(1, strict=True, ge=0)
    multiplier: list[Number] = []


PER_EPSILON = ("claimed", "provable", "mu", "multiplier")
"""The fields of a step that have one number for each ε of the grid."""

_COLUMNS = TypeAdapter(dict[str, tuple[Number, ...]])


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True)
class TaskResult:
    """The result of a task: for each ε its error and the ledger's two sums, and the ledger itself.

    Its fields are also the schema of a task's file, in which each of the `others` stands on its own.

    error_cdf   (E, X): for each ε the fraction of absolute errors up to each of the task's limits; empty if not asked
                for
    records     what personalised privacy cost the records; None where privacy is the same for all
    others      (E,) each: the errors `BESIDE` RMSE, by key; one that an older version did not measure is not there.
                With `groups` also those of `GROUPED`
    ranking     (E, 2): for each ε the metrics of the task's `ranking`; empty if not asked for

    An algorithm that predicts no ratings has no errors: `rmse`, `others` and `error_cdf` are empty.
    """

    epsilons: tuple[Annotated[Number, Field(gt=0)], ...]
    rmse: tuple[Number, ...]
    claimed: tuple[Number, ...]
    provable: tuple[Number, ...]
    ledger: tuple[
        Annotated[dict[str, Any], AfterValidator(lambda step: _Step.model_validate(step) and step)], ...
    ]
    error_cdf: tuple[tuple[Fraction, ...], ...] = ()
    records: Annotated[
        RecordCosts | None, BeforeValidator(lambda value: RecordCosts(**_COLUMNS.validate_python(value)))
    ] = None
    others: dict[str, tuple[Number, ...]] = field(default_factory=dict)
    ranking: tuple[Annotated[tuple[Fraction, ...], Field(min_length=2, max_length=2)], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """How a task ended: with a result, or with a `failure`, its traceback.

    seconds        CPU time of the fit and its measurement; an equal part if several tasks share a fit
    process        the id of the process that executed it
    peak_bytes     largest resident memory of the process so far
    """

    task: Task
    result: TaskResult | None
    seconds: float
    process: int
    peak_bytes: int
    failure: str | None = None


def tasks_of(
    config: ExperimentConfig, entry: Algorithm, data: DataIdentity, portions: Sequence[float] | None = None
) -> Iterator[Task]:
    """Every task of one algorithm of a config, on all or some of its portions; noise-free runs have
    `NOISE_FREE_GRID`."""
    pieces = list(entry.pieces(config.grid(entry)))
    order: Order = config.growth.order if config.growth else "timestamp"
    of = config.name if config.seed == SECRET else ""
    asked = config.limits, of, config.ranking, config.groups
    for portion in portions or config.portions:
        for fold in range(config.folds_run):
            cut = Cut(config.folds, fold, portion, order, config.split)
            for piece, grid in pieces:
                for run in range(config.runs_of(entry)):
                    yield Task(data, config.seed, cut, run, piece, grid, *asked)
            for piece, grid in entry.pieces(NOISE_FREE_GRID) if config.has_noise_free_run(entry) else ():
                yield Task(data, config.seed, cut, 0, piece, grid, *asked)
