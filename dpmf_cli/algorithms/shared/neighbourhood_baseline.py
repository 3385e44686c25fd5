"""What neighbourhood models without noise share. Wang and Tang 2017."""

from pydantic import Field

from dpmf_cli.algorithms.shared.averages_baseline import AveragesBaseline
from dpmf_cli.algorithms.shared.effects import EffectsParameters


class NeighbourhoodBaseline(AveragesBaseline):
    """Every item has k neighbours. Averages are as `effects` has them, plain by default."""

    effects: EffectsParameters = EffectsParameters(beta_m=0)
    k: int = Field(500, ge=1, le=100_000, description="N_k: neighbours of an item")
