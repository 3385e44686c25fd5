"""Compares shipped configs with the settings that their papers print."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pydantic import Field

from dpmf_cli.core.strict_model import StrictModel
from dpmf_cli.experiment.config import ExperimentConfig
from dpmf_cli.experiment.config.loading import ConfigPath, places
from dpmf_cli.papers.claims import PaperFindings

_ABSENT = object()


class PrintedSettings(StrictModel):
    """Settings that a paper prints.

    source    where they are printed
    configs   the names of the experiments that they are about, or patterns of names ("ml1m_*")
    are       the printed value by path into a config (`config.paths`). If the config has a number and the printed
              value is a list, the list holds the values of all entries. Later settings in a file override earlier
              ones
    """

    source: str = Field(min_length=1)
    configs: tuple[str, ...] = Field(min_length=1)
    are: dict[str, Any] = Field(min_length=1)


class Departure(StrictModel):
    """A difference of shipped configs from the paper: what the paper prints, what they have instead, and why."""

    configs: tuple[str, ...] = Field(min_length=1)
    key: str
    printed: Any
    shipped: Any
    reason: str = Field(min_length=1)


@dataclass(frozen=True)
class ConfigPlace:
    """The place of one value in a config: in the entry of that name, or in the config itself if `entry` is "".

    swept   whether the entry sweeps this value
    """

    config: str
    entry: str
    keys: str
    swept: bool = False


@dataclass
class _Expected:
    """The printed value and the config's value of one place."""

    printed: Any
    found: Any

    @property
    def met(self) -> bool:
        """Whether the config agrees. If it has a number, a printed list holds the values of all entries."""
        if isinstance(self.printed, list) and not isinstance(self.found, list):
            return self.found in self.printed
        return bool(self.printed == self.found)


def values_at(config: ExperimentConfig, path: str) -> Iterator[tuple[ConfigPlace, Any]]:
    """Yields each value of a config at a path of `config.paths`, as plain data.

    Raises ValueError for an invalid path.
    """
    of = ConfigPath.of(path)
    for entry, data in places(config, config.resolved(), of):
        place = ConfigPlace(config.name, entry.name, of.keys, entry.swept == of.keys) if entry else None
        yield from _if_there(place or ConfigPlace(config.name, "", of.keys), data)


def _if_there(place: ConfigPlace, data: Any) -> Iterator[tuple[ConfigPlace, Any]]:
    for key in place.keys.split("."):
        data = data.get(key, _ABSENT) if isinstance(data, Mapping) else _ABSENT
    if data is not _ABSENT:
        yield place, data


def unexplained(found: PaperFindings, configs: Sequence[ExperimentConfig]) -> list[str]:
    """Returns the faults of a paper's configs, one sentence each.

    A fault is a value that differs from the printed one and that no departure names. A departure or setting that
    applies to none of the configs is a fault too.
    """
    expected: dict[ConfigPlace, _Expected] = {}
    faults = []
    for setting in map(PrintedSettings.model_validate, found.settings):
        for path, printed in setting.are.items():
            places = [each for one in _named(setting.configs, configs) for each in values_at(one, path)]
            faults += (
                []
                if places
                else [f"{setting.source}: {path} matches no entry of {', '.join(setting.configs)}"]
            )
            expected.update(
                (place, _Expected(printed, value))
                for place, value in places
                if isinstance(printed, list) or not place.swept
            )
    for departure in map(Departure.model_validate, found.departures):
        excused = [
            place
            for one in _named(departure.configs, configs)
            for place, _ in values_at(one, departure.key)
            if place in expected and _excuses(departure, expected[place])
        ]
        faults += (
            []
            if excused
            else [f"{', '.join(departure.configs)}: {departure.key}: a departure that excuses nothing"]
        )
        for place in excused:
            del expected[place]
    faults += [
        f"{place.config}: {place.entry or 'config'}.{place.keys} is {each.found}, but the paper prints {each.printed}"
        for place, each in expected.items()
        if not each.met
    ]
    return [*faults, *_values_left_out(expected)]


def _named(patterns: Sequence[str], configs: Sequence[ExperimentConfig]) -> list[ExperimentConfig]:
    return [each for each in configs if any(fnmatchcase(each.name, pattern) for pattern in patterns)]


def _excuses(departure: Departure, expected: _Expected) -> bool:
    as_said = departure.printed == expected.printed and departure.shipped == expected.found
    return as_said and not expected.met


def _values_left_out(expected: Mapping[ConfigPlace, _Expected]) -> Iterator[str]:
    """Yields a sentence for the values of each printed list that no entry of a config has."""
    lists = {
        (place.config, place.keys, str(each.printed)): each.printed
        for place, each in expected.items()
        if isinstance(each.printed, list) and not isinstance(each.found, list)
    }
    for (config, keys, told), printed in lists.items():
        present = [
            each.found
            for place, each in expected.items()
            if (place.config, place.keys, str(each.printed)) == (config, keys, told)
        ]
        missing = [value for value in printed if value not in present]
        if missing:
            yield f"{config}: no entry has {keys} {missing}, but the paper prints {told}"
