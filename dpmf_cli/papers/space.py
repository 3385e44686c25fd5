"""The space of what a paper leaves open: choices, the values that are plausible for each, and settings of all.

One YAML file per paper, `spaces/KEY.yaml`. What a paper prints is not open.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import Annotated, Any, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from dpmf_cli.errors import DpmfError, did_you_mean
from dpmf_cli.papers.printed import papers
from dpmf_cli.streams import named_generator
from dpmf_cli.strict_model import StrictModel

Setting = tuple[int, ...]
"""For each choice the index of its value. The first values of all are the shipped configs."""

SHARE = 0.5
"""Of the folds: the first of them are those on which a setting is chosen, the others those on which it is tested."""


class Value(StrictModel):
    """A value that is plausible for what is open.

    why   printed elsewhere, in a reference implementation, the habit of the field, …
    set   by paths into entries of configs what they hold, as `exploring.applied` reads them; nothing in the first
          value of a choice, which is that of the shipped configs
    """

    name: str
    why: str
    set: dict[str, Any] = Field(default_factory=dict)


class Choice(StrictModel):
    """Something that a paper leaves open."""

    name: str
    what: str
    values: Annotated[tuple[Value, ...], Field(min_length=2)]


class OnData(StrictModel):
    """What of a space is run on one data set.

    configs    by their names
    settings   how many of them
    folds      the first so many are held out: the first half to choose by, the other half to test by
    beside     data sets on which the same settings are run too, for claims that compare
    """

    configs: tuple[str, ...]
    settings: int = Field(ge=1)
    folds: int = Field(2, ge=2)
    runs: int = Field(1, ge=1)
    beside: tuple[str, ...] = ()


class Space(StrictModel):
    """All that a paper leaves open.

    file    where it stands, for messages
    tuned   whether the paper chose its parameters for each ε, so that its claims are about the best of all settings
    also    settings that are tried besides, each by the names of choices and values that are not the shipped ones
    """

    file: str = ""
    data: dict[str, OnData]
    tuned: bool = False
    open: tuple[Choice, ...]
    also: tuple[dict[str, str], ...] = ()

    @model_validator(mode="after")
    def _also_of_what_is_here(self) -> Self:
        values = {choice.name: {value.name for value in choice.values} for choice in self.open}
        for name, value in (pair for each in self.also for pair in each.items()):
            if value not in values.get(name, ()):
                raise ValueError(f'also: there is no value "{value}" of "{name}" under open')
        return self

    def on(self, data: str) -> OnData:
        """What is run on a data set. Raises DpmfError for one that the space does not have."""
        if data not in self.data:
            raise DpmfError(f'this paper is not explored on "{data}"{did_you_mean(data, self.data)}')
        return self.data[data]

    def named(self, setting: Setting) -> dict[str, str]:
        """By the name of each choice that of its value."""
        return {choice.name: choice.values[at].name for choice, at in zip(self.open, setting, strict=True)}

    @property
    def digest(self) -> str:
        """Of the names of all choices and values, and of what the values set."""
        sets = [(choice.name, [(value.name, value.set) for value in choice.values]) for choice in self.open]
        return hashlib.sha256(json.dumps(sets).encode()).hexdigest()[:16]

    def settings(self, count: int, *name: str | int) -> list[Setting]:
        """The shipped setting, those of `also`, then others: all where these are no more than `count`, else a sample.

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
        """The setting with these values, and else the shipped ones."""
        values = {choice.name: [value.name for value in choice.values] for choice in self.open}
        return tuple(names.index(named.get(name, names[0])) for name, names in values.items())


@cache
def space(key: str) -> Space:
    """What a paper leaves open, by the paper's key. Raises `DpmfError` for a paper that has none."""
    if key not in explored():
        raise DpmfError(f'there is nothing to explore of a paper "{key}"{did_you_mean(key, explored())}')
    file = resources.files("dpmf_cli.papers.spaces") / f"{key}.yaml"
    return space_of(yaml.safe_load(file.read_text(encoding="utf-8")), str(file))


def space_of(data: Any, file: str) -> Space:
    """The space that a file holds. Raises `DpmfError`, which names the file, for what is none."""
    try:
        return Space.model_validate({**data, "file": file})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"{part}: " for part in [".".join(map(str, first["loc"]))] if part)
        raise DpmfError(f"{file}: {place}{first['msg'].removeprefix('Value error, ')}") from None


@cache
def explored() -> tuple[str, ...]:
    """The keys of the papers that have a space, sorted."""
    files = {file.name for file in resources.files("dpmf_cli.papers.spaces").iterdir()}
    return tuple(key for key in papers() if f"{key}.yaml" in files)


def halves(folds: int) -> tuple[Sequence[int], Sequence[int]]:
    """The folds to choose by, and those to test by; a single fold is both."""
    if folds == 1:
        return range(1), range(1)
    middle = int(folds * SHARE)
    return range(middle), range(middle, folds)
