"""The config of an experiment: read and validated, with errors that say file:line:column and the fix."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpmf_cli.experiment.config.loading import config_of, load_config
    from dpmf_cli.experiment.config.model import ExperimentConfig

__all__ = ["ExperimentConfig", "config_of", "load_config"]


def __getattr__(name: str) -> Any:
    """Imports the algorithms, which a config may name, only for who asks for a config."""
    if name not in __all__:
        raise AttributeError(name)
    return getattr(import_module(f"{__name__}.loading"), name)
