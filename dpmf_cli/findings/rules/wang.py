"""Claims of Wang and Tang (2017).

The paper chooses its parameters anew for each ε, and does not say which: a method is taken for what its best curve
has at each ε, so that no claim fails for the other ones. Nor does it say which items PCC and COS take for neighbours:
both choices are asked.
"""

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.findings.evidence import Evidence
from dpmf_cli.findings.rules.base import Computed, Rule, of

_DATA = {"ml100k": "ML-100K", "ml1m": "ML-1M"}
_RATING, _USER = "wang_fig1_{}", "wang_fig2_{}"
_NEIGHBOURS = {
    "similar items": ("PCC", "COS"),
    "items with common raters": ("PCC, common raters", "COS, co-raters, common raters"),
}
"""The baselines by what their neighbours are."""

_Better = dict[str, NDArray[np.bool_]]
"""By what the neighbours are, (PCC and COS, E): where a method has the lower RMSE."""


def _against_neighbours(evidence: Evidence, config: str, algorithm: str, least: float = 0.0) -> _Better:
    """Where a method is better than both, at the ε of the grid from `least` on."""
    epsilons, rmse = evidence.best(config, algorithm)
    level = {name: evidence.baseline(config, name) for pair in _NEIGHBOURS.values() for name in pair}
    kept = rmse[_from(epsilons, least)]
    return {choice: np.array([kept < level[name] for name in pair]) for choice, pair in _NEIGHBOURS.items()}


def _from(epsilons: NDArray[np.float64], least: float) -> NDArray[np.bool_]:
    """Which ε of a grid, whose points are rounded, are at least that."""
    kept: NDArray[np.bool_] = epsilons >= least * (1 - 1e-9)
    return kept


def _told(title: str, better: _Better) -> str:
    """How often a method is better, against which neighbours."""
    parts = (f"{int(cells.sum())} of {cells.size} against {choice}" for choice, cells in better.items())
    return f"{title}: {', '.join(parts)}"


def _beats_neighbours(evidence: Evidence, algorithm: str, least: float) -> Computed:
    found = {
        title: _against_neighbours(evidence, _RATING.format(data), algorithm, least)
        for data, title in _DATA.items()
    }
    cells = np.concatenate([each.ravel() for better in found.values() for each in better.values()])
    told = "; ".join(_told(title, better) for title, better in found.items())
    return Computed(of(int(cells.sum()), cells.size), f"below PCC and COS at ε ≥ {least:g}: {told}")


def sgd_pnbm(evidence: Evidence) -> Computed:
    return _beats_neighbours(evidence, "dpsgd_pnbm", 1)


def sgd_mf(evidence: Evidence) -> Computed:
    return _beats_neighbours(evidence, "psgd", 20)


def posterior_accurate(evidence: Evidence) -> Computed:
    """Accurate is what is better than averages alone, GE."""
    held = cells = 0
    told = []
    for data, title in _DATA.items():
        config = _USER.format(data)
        level = evidence.baseline(config, "ge")
        for algorithm, name, start in (
            ("dpps_pnbm", "DPPS-PNBM", "constant_nbm"),
            ("dpps_mf", "DPPS-MF", "ia"),
        ):
            epsilons, rmse = evidence.best(config, algorithm)
            kept = rmse[_from(epsilons, 20)]
            held, cells = held + int((kept < level).sum()), cells + len(kept)
            told.append(
                f"{title}, {name}: below GE ({level:.3f}) at {int((kept < level).sum())} of {len(kept)} ε ≥ 20, "
                f"with {kept.min():.3f} to {kept.max():.3f}, having started at {evidence.baseline(config, start):.3f}"
            )
    return Computed(of(held, cells), "; ".join(told))


def pnbm_throughout(evidence: Evidence) -> Computed:
    """ "Throughout" is refuted by one ε, but only where it is against either choice of neighbours."""
    found = {
        f"{title}, {name}": _against_neighbours(evidence, config.format(data), algorithm)
        for data, title in _DATA.items()
        for config, algorithm, name in (
            (_RATING, "dpsgd_pnbm", "DPSGD-PNBM"),
            (_USER, "dpps_pnbm", "DPPS-PNBM"),
        )
    }
    throughout = any(all(better[choice].all() for better in found.values()) for choice in _NEIGHBOURS)
    told = "; ".join(_told(title, better) for title, better in found.items())
    return Computed("confirmed" if throughout else "refuted", f"below PCC and COS: {told}")


def pnbm_then_mf(evidence: Evidence) -> Computed:
    """Of the paper's own factorisations, at the ends of the grid."""
    held = 0
    told = []
    pairs = ((_RATING, "dpsgd_pnbm", "psgd", "DPSGD"), (_USER, "dpps_pnbm", "dpps_mf", "DPPS"))
    for data, title in _DATA.items():
        for config, neighbourhood, factorization, name in pairs:
            epsilons, ours = evidence.best(config.format(data), neighbourhood)
            _, theirs = evidence.best(config.format(data), factorization)
            held += int(ours[0] < theirs[0]) + int(theirs[-1] < ours[-1])
            ends = (
                f"{ours[at]:.3f} and {theirs[at]:.3f} at ε = {epsilons[at]:g}"
                for at in (0, len(epsilons) - 1)
            )
            told.append(f"{title}, {name}-PNBM and -MF: {', '.join(ends)}")
    return Computed(of(held, 4 * len(_DATA)), "; ".join(told))


RULES: dict[str, Rule] = {
    "sgd-pnbm-beats-neighbours": sgd_pnbm,
    "sgd-mf-beats-neighbours": sgd_mf,
    "posterior-sampling-accurate": posterior_accurate,
    "pnbm-beats-neighbours-throughout": pnbm_throughout,
    "pnbm-then-mf": pnbm_then_mf,
}
