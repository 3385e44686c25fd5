"""The space of what a paper leaves open: choices, plausible values for each choice, and settings of all choices.

There is one YAML file per paper, `spaces/KEY.yaml`. What a paper prints is not open.
"""

import itertools
import math
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Annotated, Any, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from dpmf_cli.core.errors import DpmfError, did_you_mean
from dpmf_cli.core.streams import named_generator
from dpmf_cli.core.strict_model import StrictModel, in_words
from dpmf_cli.papers.printed import papers

Setting = tuple[int, ...]
"""The index of each choice's value. If all indices are 0, the setting is that of the shipped configs."""

SHARE = 0.5
"""The fraction of the folds on which a setting is chosen. These come first; the setting is tested on the others."""


class Value(StrictModel):
    """A plausible value of an open choice.

    why   why it is plausible: printed elsewhere, in a reference implementation, the habit of the field, …
    set   what the value sets, by paths into entries of configs, as `studies.explore` reads them; empty for the
          first value of a choice, which is that of the shipped configs
    """

    name: str
    why: str
    set: dict[str, Any] = Field(default_factory=dict)


class Choice(StrictModel):
    """Something that a paper leaves open; `only` on this data set, if that is given."""

    name: str
    what: str
    only: str | None = None
    values: Annotated[tuple[Value, ...], Field(min_length=2)]


class OnData(StrictModel):
    """The part of a space that is run on one data set.

    configs    the names of the configs
    settings   how many settings
    folds      how many folds are held out, from the first on: half of them to choose by, then half to test by
    beside     data sets on which the same settings are run too, for claims that compare data sets
    """

    configs: tuple[str, ...]
    settings: int = Field(ge=1)
    folds: int = Field(2, ge=2)
    runs: int = Field(1, ge=1)
    beside: tuple[str, ...] = ()


class Space(StrictModel):
    """All that a paper leaves open.

    file    its file, for messages
    tuned   whether the paper chose its parameters for each ε, so that its claims are about the best of all settings
    also    further settings to try, each as {choice: value} for the values that are not the shipped ones
    """

    file: str = ""
    data: dict[str, OnData]
    tuned: bool = False
    open: tuple[Choice, ...]
    also: tuple[dict[str, str], ...] = ()

    @model_validator(mode="after")
    def _only_of_what_is_here(self) -> Self:
        for choice in self.open:
            if choice.only not in (None, *self.data):
                raise ValueError(f'open: "{choice.name}" is only of "{choice.only}", which is not under data')
        return self

    @model_validator(mode="after")
    def _also_of_what_is_here(self) -> Self:
        values = {choice.name: {value.name for value in choice.values} for choice in self.open}
        for name, value in (pair for each in self.also for pair in each.items()):
            if value not in values.get(name, ()):
                raise ValueError(f'also: there is no value "{value}" of "{name}" under open')
        return self

    def of(self, data: str) -> "Space":
        """The space without the choices that are not open on a data set."""
        return self.model_copy(
            update={"open": tuple(each for each in self.open if each.only in (None, data))}
        )

    def on(self, data: str) -> OnData:
        """What is run on a data set. Raises DpmfError for a data set that the space does not have."""
        if data not in self.data:
            raise DpmfError(f'this paper is not explored on "{data}"{did_you_mean(data, self.data)}')
        return self.data[data]

    def named(self, setting: Setting) -> dict[str, str]:
        """By the name of each choice the name of its value."""
        return {choice.name: choice.values[at].name for choice, at in zip(self.open, setting, strict=True)}

    def settings(self, count: int, *name: str | int) -> list[Setting]:
        """All settings if they are at most `count`; else the shipped one, those of `also`, and a sample.

        The sample is a Latin hypercube: of each choice, every value is in as many settings as any other, give or take
        one. Its randomness is a function of `name`.
        """
        sizes = [len(choice.values) for choice in self.open]
        if math.prod(sizes) <= count:
            return list(itertools.product(*map(range, sizes)))
        rng = named_generator("settings", count, *name)
        columns = [rng.permutation(count - 1) % size for size in sizes]
        sampled = zip(*(column.tolist() for column in columns), strict=True)
        return list(dict.fromkeys([(0,) * len(sizes), *map(self._setting, self.also), *sampled]))

    def _setting(self, named: dict[str, str]) -> Setting:
        """The setting with these values; the other choices have the shipped values."""
        values = {choice.name: [value.name for value in choice.values] for choice in self.open}
        return tuple(names.index(named.get(name, names[0])) for name, names in values.items())


@cache
def space(key: str) -> Space:
    """The space of a paper, by the paper's key. Raises `DpmfError` for a paper that has none."""
    if key not in explored():
        raise DpmfError(f'there is no paper "{key}" to explore{did_you_mean(key, explored())}')
    file = resources.files("dpmf_cli.papers.spaces") / f"{key}.yaml"
    return space_of(yaml.safe_load(file.read_text(encoding="utf-8")), str(file))


def space_of(data: Any, file: str) -> Space:
    """The space that a file holds. Raises `DpmfError`, which names the file, if `data` are no space."""
    try:
        return Space.model_validate({**data, "file": file})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"{part}: " for part in [".".join(map(str, first["loc"]))] if part)
        raise DpmfError(f"{file}: {place}{in_words(first)}") from None


@cache
def explored() -> tuple[str, ...]:
    """The keys of the papers that have a space, sorted."""
    files = {file.name for file in resources.files("dpmf_cli.papers.spaces").iterdir()}
    return tuple(key for key in papers() if f"{key}.yaml" in files)


def halves(folds: int) -> tuple[Sequence[int], Sequence[int]]:
    """The folds to choose by and the folds to test by. A single fold is both."""
    if folds == 1:
        return range(1), range(1)
    middle = int(folds * SHARE)
    return range(middle), range(middle, folds)
