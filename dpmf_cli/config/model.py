"""The model of a config: its keys with the algorithms that it may name, as one that can be run."""

import hashlib
import json
from collections.abc import Sequence
from types import GenericAlias
from typing import Any, ClassVar, Self

from pydantic import create_model, model_validator

from dpmf_cli.algorithms.plugins import by_name, sources
from dpmf_cli.algorithms.registry import BASELINES, PRIVATE
from dpmf_cli.algorithms.shared.base import Algorithm
from dpmf_cli.config.checks import refuse_contradictions
from dpmf_cli.config.entries import Registry, baseline_entry, expand_sweep, private_entry, with_inherited
from dpmf_cli.config.keys import ExperimentKeys


class ExperimentConfig(ExperimentKeys):
    """One experiment: algorithms over a grid of ε or θ, on the folds of one data set, beside its baselines."""

    known_baselines: ClassVar[Registry] = BASELINES
    known_private: ClassVar[Registry] = PRIVATE

    @classmethod
    def knowing(cls, plugins: Sequence[type[Algorithm]]) -> type["ExperimentConfig"]:
        """The config whose entries may be these algorithms too."""
        if not plugins:
            return cls
        baselines = {**BASELINES, **by_name(plugins, private=False)}
        private = {**PRIVATE, **by_name(plugins, private=True)}
        entries: dict[str, Any] = {
            "baselines": (GenericAlias(list, (baseline_entry(baselines),)), cls.model_fields["baselines"]),
            "algorithms": (GenericAlias(list, (private_entry(private),)), cls.model_fields["algorithms"]),
        }
        model = create_model(cls.__name__, __base__=cls, __doc__=cls.__doc__, **entries)
        model.known_baselines, model.known_private = baselines, private
        return model

    @model_validator(mode="before")
    @classmethod
    def _inherit(cls, data: Any) -> Any:
        """Hands the experiment's neighbours, mode and effects to the entries that do not set their own."""
        if not isinstance(data, dict):
            return data
        folds = {} if data.get("test", "folds") == "folds" else {"folds": 1}
        data = {"baselines": ["ga", "ia", "ge"], **folds, **data}
        for key, registry in (("baselines", cls.known_baselines), ("algorithms", cls.known_private)):
            if isinstance(data.get(key), list):
                entries = [expanded for entry in data[key] for expanded in expand_sweep(entry)]
                data[key] = [with_inherited(entry, data, registry) for entry in entries]
        return data

    @model_validator(mode="after")
    def _hold_together(self) -> Self:
        refuse_contradictions(self)
        return self

    def resolved(self) -> dict[str, Any]:
        """The config with every default filled in, as plain data."""
        return self.model_dump(mode="json")

    @property
    def plugin_sources(self) -> dict[str, dict[str, str]]:
        """Where the code of its plugins comes from, by their names."""
        return sources({type(entry): None for entry in self.entries})

    @property
    def hash(self) -> str:
        """SHA-256 of the resolved config, and of its plugins."""
        content = {**self.resolved(), **({"sources": self.plugin_sources} if self.plugins else {})}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
