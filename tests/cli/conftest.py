"""The catalog entry for tiny data sets, for the commands about data sets."""

from tests.datasets.conftest import cache, data, make_entry

__all__ = ["cache", "data", "make_entry"]
