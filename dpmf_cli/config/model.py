"""The complete model of a config: its keys, the algorithms that it may name, and the checks that it can be run."""

import hashlib
import json
from collections.abc import Sequence
from types import GenericAlias
from typing import Any, Self

from pydantic import create_model, model_validator

from dpmf_cli.algorithms.plugins import by_name, sources
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.config.checks import refuse_contradictions
from dpmf_cli.config.entries import BASELINES_OF_OWN, LISTED, entry_of, is_own, one_of, written_out
from dpmf_cli.config.keys import ExperimentKeys


class ExperimentConfig(ExperimentKeys):
    """One experiment: private algorithms over a grid of ε or θ, and baselines, on the folds of one data set."""

    @classmethod
    def knowing(cls, plugins: Sequence[type[Algorithm]]) -> type["ExperimentConfig"]:
        """Returns the model of a config whose entries may name these plugins, too."""
        if not plugins:
            return cls
        baselines = {**BASELINES, **by_name(plugins, private=False)}
        private = {**PRIVATE, **by_name(plugins, private=True)}
        entries: dict[str, Any] = {
            "baselines": (GenericAlias(list, (entry_of(baselines),)), cls.model_fields["baselines"]),
            "algorithms": (GenericAlias(list, (entry_of(private),)), cls.model_fields["algorithms"]),
        }
        model = create_model(cls.__name__, __base__=cls, __doc__=cls.__doc__, **entries)
        model.known_baselines, model.known_private = baselines, private
        return model

    @model_validator(mode="before")
    @classmethod
    def _write_out(cls, data: Any) -> Any:
        """Expands the entries of a config, with what they inherit."""
        if not isinstance(data, dict):
            return data
        test = data.get("test", "folds")
        folds = {} if test == "folds" else {"folds": 3 if test == "recent" else 1}
        own = is_own(data.get("dataset"))
        baselines = BASELINES_OF_OWN if own else cls.model_fields["baselines"].default
        data = {"baselines": baselines, **folds, **data}
        for key, registry in (("baselines", cls.known_baselines), ("algorithms", cls.known_private)):
            if isinstance(data.get(key), list):
                data[key] = [each for entry in data[key] for each in written_out(entry, data, registry)]
        return {**data, **{key: one_of(data[key]) for key in LISTED if key in data}}

    @model_validator(mode="after")
    def _hold_together(self) -> Self:
        refuse_contradictions(self)
        return self

    def resolved(self) -> dict[str, Any]:
        """The config with every default filled in, as plain data."""
        return self.model_dump(mode="json")

    @property
    def plugin_sources(self) -> dict[str, dict[str, str]]:
        """Where the code of each plugin comes from, by the plugin's name."""
        return sources({type(entry): None for entry in self.entries})

    @property
    def hash(self) -> str:
        """SHA-256 of the resolved config, and of its plugins."""
        content = {**self.resolved(), **({"sources": self.plugin_sources} if self.plugins else {})}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
