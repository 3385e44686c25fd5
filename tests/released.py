"""The content of a release, computed by hand."""

from typing import Any

import numpy as np

from dpmf_cli.privacy.grid import MARGIN, grid_of, on_grid


def released(clean: Any, unit: Any, scale: float) -> Any:
    """`clean` with noise, for which a proof over real numbers asks for that scale; with the noise's margin, and
    on its grid."""
    with_margin = np.array(scale * (1 + MARGIN))
    return on_grid(clean + unit * with_margin, grid_of(with_margin))
