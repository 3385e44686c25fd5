"""The contract of algorithms, inherited: `python -m pytest test_private_item_average.py`."""

from private_item_average import PrivateItemAverage

from dpmf_cli.testing import PrivateAlgorithmContract, variants_of


class TestPrivateItemAverage(PrivateAlgorithmContract):
    entries = variants_of(PrivateItemAverage, beta=2)
