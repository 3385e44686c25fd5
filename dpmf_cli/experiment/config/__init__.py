"""The config of an experiment: read and validated, with errors that say file:line:column and the fix."""

from dpmf_cli.experiment.config.loading import config_of, load_config
from dpmf_cli.experiment.config.model import ExperimentConfig

__all__ = ["ExperimentConfig", "config_of", "load_config"]
