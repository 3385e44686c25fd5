"""The values that the `dataset:` and `split:` keys of a config may have.

dataset: ml-100k                                    # by its key in the catalog
dataset: {kind: catalog, name: ml-1m, path: ml-1m.zip}
dataset:
  kind: csv
  name: my-shop
  path: ratings.csv                                 # relative to the config file
  columns: {user: customer, item: sku, rating: stars, timestamp: when}
  scale: {minimum: 1, maximum: 5, step: 1}
dataset: {kind: catalog, name: netflix, sample: {users: 7128, seed: 1}}
dataset: {kind: synthetic, like: ml-100k, seed: 1}
split: {by: leave_out, k: 2}                        # or `folds`, `recent`
"""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    WithJsonSchema,
    model_validator,
)

from dpmf_cli.core.errors import DpmfError
from dpmf_cli.core.ratings import Scale
from dpmf_cli.core.strict_model import StrictModel, later, said_as
from dpmf_cli.datasets import catalog
from dpmf_cli.datasets.catalog import CatalogEntry

_SYNTHETIC = "synthetic-"

PRIZE_DATASET = "netflix"
"""The catalog's key of the Netflix Prize ratings. The keys of their samples begin with it."""


def _catalog_key(name: str) -> str:
    try:
        return catalog.entry(name).key
    except DpmfError as error:
        raise ValueError(str(error)) from None


def _a_file(path: str) -> str:
    if "://" in path:
        raise ValueError("a URL is not read; download the file, and name it here")
    if path.endswith(("/", "/.")) or Path(path).name in ("", ".."):
        raise ValueError("this names a folder; name the file of ratings in it")
    return path


_KEYS = {"type": "string", "enum": list(catalog.ENTRIES)}
CatalogKey = Annotated[str, AfterValidator(_catalog_key), WithJsonSchema(_KEYS)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=80)]
OwnPath = Annotated[str, Field(min_length=1), AfterValidator(_a_file)]
Column = Annotated[
    Annotated[str, Field(min_length=1)] | Annotated[int, Field(ge=0)],
    said_as("a column is a name, or a number from 0 on"),
]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]


class SampleSpec(StrictModel):
    """A random sample of a data set, as Zhang et al. (2018) sample Netflix: `users` users with all their ratings, or
    with `ratings` of these ratings. The same seed makes the same sample. Where one of the same seed skips
    the users of another, they share no user, so that parameters can be tuned on some users and reported on others."""

    users: Count
    ratings: Count | None = Field(None, description="how many ratings of the sampled users; all by default")
    skip: int = later(
        0, ge=0, description="how many users to pass over, in the random order that the seed gives"
    )
    seed: int = Field(1, ge=0)

    @model_validator(mode="after")
    def _enough_ratings(self) -> Self:
        if self.ratings is not None and self.ratings < self.users:
            raise ValueError(f"{self.ratings} ratings of {self.users} users are less than one for each user")
        return self

    @property
    def key(self) -> str:
        ratings, skip = f"{self.ratings}r-" if self.ratings else "", f"skip{self.skip}-" if self.skip else ""
        return f"sample-{self.users}-{ratings}{skip}seed{self.seed}"


class CatalogSpec(StrictModel):
    """A data set of the catalog, or a random `sample` of it. Its files are in the data folder, or at `path` (a file,
    archive or folder)."""

    kind: Literal["catalog"] = "catalog"
    name: CatalogKey
    path: str | None = None
    sample: SampleSpec | None = None
    item_features: bool = Field(
        False,
        description="also read the public features of items, for methods that use them: genres and years",
    )

    @model_validator(mode="after")
    def _has_features(self) -> Self:
        if self.item_features and catalog.entry(self.name).film_list is None:
            known = ", ".join(key for key, entry in catalog.ENTRIES.items() if entry.film_list)
            raise ValueError(f"{self.name} has no `item_features`; these have: {known}")
        return self

    @model_validator(mode="after")
    def _large_enough(self) -> Self:
        expected = catalog.entry(self.name).expected
        for what, skipped in (("users", self.sample.skip), ("ratings", 0)) if self.sample else ():
            asked, there = getattr(self.sample, what) or 0, getattr(expected, what)
            if asked + skipped > there:
                past = f" past the first {skipped:,}" if skipped else ""
                raise ValueError(f"{self.name} has {there:,} {what}, too few for a sample of {asked:,}{past}")
        return self

    @property
    def key(self) -> str:
        return f"{self.name}-{self.sample.key}" if self.sample else self.name

    @property
    def has_timestamps(self) -> bool:
        return catalog.entry(self.name).timestamps

    @property
    def stars(self) -> bool:
        return catalog.entry(self.name).stars


class CsvColumns(StrictModel):
    """The columns of a file, by name, or by 0-based number in a file without a header line. `epsilon` is a privacy
    budget per rating, if users state their own."""

    user: Column
    item: Column
    rating: Column
    timestamp: Column | None = None
    epsilon: Column | None = None

    @property
    def by_role(self) -> dict[str, str | int]:
        return {role: column for role, column in self if column is not None}


WIDEST_SCALE = 1e9


class ScaleSpec(StrictModel):
    """The rating scale, as the site fixes it. `step: 0` means that any value from minimum to maximum is possible."""

    minimum: float = Field(allow_inf_nan=False)
    maximum: float = Field(allow_inf_nan=False)
    step: float = Field(default=0.0, ge=0, allow_inf_nan=False)
    guessed: bool = Field(
        False,
        exclude_if=lambda value: not value,
        description="the scale was guessed from the ratings, so `dpmf release` refuses it; remove this key once the "
        "scale is the one that your site allows, which is public",
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        if not self.minimum < self.maximum:
            raise ValueError(f"minimum {self.minimum:g} is not below maximum {self.maximum:g}; swap them")
        if max(-self.minimum, self.maximum) > WIDEST_SCALE:
            raise ValueError(
                f"from {self.minimum:g} to {self.maximum:g} is wider than ±{WIDEST_SCALE:g}, and ratings are kept in "
                "single precision; give a real scale"
            )
        if self.step:
            steps = (self.maximum - self.minimum) / self.step
            if abs(steps - round(steps)) > 1e-6:
                raise ValueError(
                    f"no whole number of steps of {self.step:g} fits between {self.minimum:g} and "
                    f"{self.maximum:g}; give the distance of two neighbouring ratings (1 for whole stars, 0.5 for "
                    "halves), or `step: 0` where any value between is possible"
                )
        return self

    @property
    def scale(self) -> Scale:
        return Scale(self.minimum, self.maximum, self.step)


class LeastSpec(StrictModel):
    """How many ratings each user and each item has at least."""

    user: Count = 1
    item: Count = 1


class CsvSpec(StrictModel):
    """A user's own ratings file, as text, JSON or Parquet; `path` is relative to the config file. Text may be packed
    by gzip or Zstandard, or be the only file in a zip. A time stamp is a number of seconds, or a date of ISO 8601.

    duplicates   a (user, item) pair that stands twice is refused (error), keeps its last line (last), or is averaged
                 (mean). ε hides a pair after this merge, so another line of an existing pair does not make a
                 neighbour of `unbounded`
    """

    stars: ClassVar[bool] = False
    kind: Literal["csv"]
    name: Name
    path: OwnPath
    columns: CsvColumns
    separator: Annotated[str, Field(pattern=r'^[^"\r\n]$')] = ","
    header: bool = Field(True, description="in text: whether the first line names the columns")
    decimal: Literal[".", ","] = Field(".", description="in text: what stands before the tenths in a number")
    scale: ScaleSpec
    duplicates: Literal["error", "last", "mean"] = Field(
        "error",
        description="what to do with a (user, item) pair that stands twice: refuse it, keep its last line, or "
        "average its lines; neighbours differ in a pair after this merge, not in one of its lines",
    )
    drop_missing: bool = later(False, description="leave out rows that lack a value, which are else an error")
    zero_is_missing: bool = later(False, description="whether a rating of 0 means that there is none")
    minimum_ratings: LeastSpec | None = later(
        None,
        description="leave out users and items with fewer ratings, until all have that many; test ratings of "
        "`split: {by: files}` do not count, and stay; which are left out depends on other ratings, and no ε of "
        "`unbounded` or `user` covers that",
    )
    threshold: float | None = later(
        None, description="ratings of at least this become 1, lower ones 0, at last; the scale is then 0 to 1"
    )

    @model_validator(mode="after")
    def _coherent(self) -> Self:
        if self.name in catalog.ENTRIES or self.name.startswith(_SYNTHETIC):
            raise ValueError(f'the name "{self.name}" means another data set; choose one of your own')
        columns = list(self.columns.by_role.values())
        if not self.header and any(isinstance(column, str) for column in columns):
            raise ValueError("with `header: false`, columns are 0-based numbers")
        if twice := [column for column in columns if columns.count(column) > 1]:
            raise ValueError(f'column "{twice[0]}" is named for two roles; name another for one of them')
        if self.threshold is not None and not self.scale.minimum < self.threshold <= self.scale.maximum:
            raise ValueError(
                f"`threshold: {self.threshold:g}` makes all ratings alike; give one on the scale"
            )
        return self

    @property
    def filters(self) -> dict[str, Any]:
        """What is done to the ratings of the file, by its key."""
        return self.model_dump(include={"drop_missing", "zero_is_missing", "minimum_ratings", "threshold"})

    @property
    def key(self) -> str:
        return self.name

    @property
    def has_timestamps(self) -> bool:
        return self.columns.timestamp is not None


class SyntheticSpec(StrictModel):
    """Synthetic ratings that resemble those of a catalog entry; the same seed makes the same ratings."""

    has_timestamps: ClassVar[bool] = False
    kind: Literal["synthetic"]
    like: CatalogKey
    seed: int = Field(default=1, ge=0)
    users: Count | None = None
    items: Count | None = None
    ratings: Count | None = None

    @model_validator(mode="after")
    def _possible(self) -> Self:
        users, items, ratings = self.shape
        if not max(users, items) <= ratings <= users * items:
            raise ValueError(
                f"{ratings} ratings do not fit {users} users and {items} items: each user and item needs at least "
                "one, and each pair has at most one"
            )
        return self

    @property
    def key(self) -> str:
        return _SYNTHETIC + self.like

    @property
    def stars(self) -> bool:
        return self.entry.stars

    @property
    def entry(self) -> CatalogEntry:
        return catalog.entry(self.like)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(users, items, ratings): each as given here, else as in the original."""
        expected = self.entry.expected
        return (self.users or expected.users, self.items or expected.items, self.ratings or expected.ratings)


AnySpec = CatalogSpec | CsvSpec | SyntheticSpec


def _from_name(value: Any) -> Any:
    """Reads `ml-100k` as `{kind: catalog, name: ml-100k}`, and `synthetic-ml-100k` as a synthetic set with seed 1."""
    if isinstance(value, str) and value.startswith(_SYNTHETIC):
        return {"kind": "synthetic", "like": value.removeprefix(_SYNTHETIC)}
    return {"kind": "catalog", "name": value} if isinstance(value, str) else value


class _OrName:
    """Adds the plain name to the JSON schema, which pydantic cannot derive from a validator."""

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        names = [*catalog.ENTRIES, *(_SYNTHETIC + key for key in catalog.ENTRIES)]
        return {"anyOf": [{"type": "string", "enum": names}, handler(core_schema)]}


DatasetSpec = Annotated[AnySpec, Field(discriminator="kind"), BeforeValidator(_from_name), _OrName()]

PrizeSet = Literal["probe", "judging"]
SplitName = Literal["folds", "recent", "probe", "judging"]
"""Folds of all ratings, folds of each user's most recent ratings, or a test set of the Netflix Prize.

ε protects the ratings of a training set. Each rating is in most of them, so the ε of all folds would add up if their
models were released. Which rating is in which fold depends on their number and the seed, and on no value.
"""


class OneCut(StrictModel):
    """A split of the ratings into one training and one test set."""

    def __str__(self) -> str:
        return ", ".join(f"{key} {value}" for key, value in self)


class FilesSplit(OneCut):
    """Own training and test files: `dataset` names the training ratings, and `path` those to predict, in the same
    form. A user or an item may be in one of them only. A pair in both is an error, or
    with `duplicates: last` a test rating.

    ε protects the training ratings. It says nothing of the test file, nor of how the two were divided.
    """

    by: Literal["files"]
    path: OwnPath = Field(description="the file of the test ratings, relative to the config file")


class TimeSplit(OneCut):
    """The latest ratings are predicted from all before them. Chance decides between equal times.

    ε protects the ratings before the cut, a quantile of all time stamps. One rating more moves it by at most one
    rating, so that neighbours of `unbounded` may differ in two ratings before it, which takes 2ε. One `user` more
    moves ratings of others over it, which no ε covers.
    """

    by: Literal["time"]
    test: float = Field(0.2, gt=0, lt=1, description="share of the ratings that is predicted: the latest")


class LeaveOutSplit(OneCut):
    """k ratings of each user are predicted, and the others trained on. Of a user with k or fewer, none is trained on.

    ε protects the ratings that are trained on. Because which of a user's ratings these are depends on that user's
    times, or on chance, one rating more puts at most one more into the training set, and ε covers the choice as well.
    """

    by: Literal["leave_out"]
    k: int = Field(1, ge=1, le=1000, description="ratings of each user that are predicted")
    which: Literal["last", "random"] = Field(
        "last", description="the latest (equal times by chance), or random"
    )


class NewUsersSplit(OneCut):
    """Random users are left out of the training; a random part of their ratings, the fold-in, is given to predict the
    others from (Liang, Krishnan, Hoffman and Jebara 2018, section 4.2). Methods that cannot predict from items and
    own ratings are refused.

    ε protects the ratings that are trained on. No released number depends on a fold-in, of which nothing but a new
    user's own predictions tell. Who is new depends on chance and on the number of users, which must be public.
    """

    by: Literal["new_users"]
    users: float = Field(0.1, gt=0, lt=1, description="share of the users who are new")
    fold_in: float = Field(0.8, gt=0, lt=1, description="share of their ratings that is given, rounded down")


AnyCut = FilesSplit | TimeSplit | LeaveOutSplit | NewUsersSplit
Split = Annotated[
    Annotated[SplitName, Tag("name")] | Annotated[AnyCut, Field(discriminator="by"), Tag("cut")],
    Discriminator(lambda value: "cut" if isinstance(value, dict | OneCut) else "name"),
]
