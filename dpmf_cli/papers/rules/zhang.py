"""Claims of Zhang et al. (2018)."""

import numpy as np

from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.rules.base import Computed, Rule, of


def figure2_level(evidence: Evidence) -> Computed:
    means = [float(each.mean()[-1]) for _, each in evidence.line("zhang_fig2_ml1m", "PDP-PMF")]
    held = sum(abs(mean - 1.0) < 0.1 for mean in means)
    return Computed(of(held, len(means)), f"ML-1M: RMSE {min(means):.3f}–{max(means):.3f}")


def errors_at_most_one(evidence: Evidence) -> Computed:
    parts = []
    for label in ("PDP-PMF1", "PDP-PMF2", "PDP-PMF3"):
        curve = evidence.curve("zhang_fig3_ml1m", label)
        assert curve.error_cdf is not None
        parts.append(100 * float(curve.error_cdf.mean(axis=(0, 1))[-1, curve.limits.index(1.0)]))
    held = sum(abs(part - 70) < 3 for part in parts)
    return Computed(of(held, 3), f"ML-1M: {min(parts):.1f}–{max(parts):.1f} %")


def figure4_right_end(evidence: Evidence) -> Computed:
    lines = [evidence.line("zhang_fig4_ml1m", f"PDP-PMF{k}") for k in (1, 2, 3)]
    ends = [float(line[-1][1].mean()[-1]) for line in lines]
    held = sum(0.935 < end < 0.975 for end in ends)
    return Computed(of(held, 3), f"ML-1M: RMSE {min(ends):.3f}–{max(ends):.3f} at the largest ε_m")


def best_threshold(evidence: Evidence) -> Computed:
    line = evidence.line("zhang_fig5_ml100k", "PDP-PMF")
    thresholds = [value for value, _ in line]
    parts = []
    for _, each in line:
        assert each.error_cdf is not None
        parts.append(100 * each.error_cdf.mean(axis=(0, 1))[-1])
    table = np.array(parts)
    best = [thresholds[at] for at in table.argmax(axis=0)]
    spread = table[thresholds.index(0.7)] - table[-1]
    held = int(all(abs(t - 0.7) < 0.051 for t in best)) + int(bool((abs(spread - 2.2) < 0.5).all()))
    near = all(abs(t - 0.7) < 0.11 for t in best)
    best_text, fall = ", ".join(f"{t:g}" for t in best), ", ".join(f"{s:.1f}" for s in spread)
    return Computed(
        of(held, 2),
        f"best t {best_text}; from 0.7 to 1.0 down by {fall} points",
    )


RULES: dict[str, Rule] = {
    "figure2-level": figure2_level,
    "errors-at-most-one": errors_at_most_one,
    "figure4-right-end": figure4_right_end,
    "best-threshold": best_threshold,
}
