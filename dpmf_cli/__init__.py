"""dpmf: experiments on differentially private recommenders, from a YAML config to a crossing table."""

__version__ = "0.1.0"
