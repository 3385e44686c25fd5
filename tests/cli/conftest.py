"""The catalog entry for tiny data sets, for the commands about data sets."""

from tests.datasets.conftest import cache, data, shelf

__all__ = ["cache", "data", "shelf"]
