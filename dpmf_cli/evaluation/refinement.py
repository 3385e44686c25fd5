"""Which ε to add to the grids of curves whose crossings lie in gaps that are too wide."""

from dpmf_cli.evaluation.crossings import crossing_targets, differences_between
from dpmf_cli.evaluation.curves import Experiment

PARTS = 4
"""A gap is cut into so many. What a quadratic leaves open falls to a sixteenth, and two crossings add six ε, which
take as long to fit as one (`lane_groups`)."""

MOST_ROUNDS = 4
"""After so many rounds a crossing stays as coarse as it is, and is shown so. Gaps are cut in 256 by then."""

Added = dict[str, tuple[float, ...]]
"""By the label of a curve, the ε that its grid has beside those of the config, ascending."""


def epsilons_to_add(experiment: Experiment) -> Added:
    """What the next round adds to each curve of the experiment; nothing where its crossings are as fine as they are
    sure. It follows from the results alone.
    """
    found = {}
    for curve in experiment.curves:
        gaps: dict[tuple[float, float], None] = {}
        for target in crossing_targets(experiment):
            differences = differences_between(experiment, curve, target)
            gaps |= dict.fromkeys(differences.open_gaps if differences else ())
        if new := sorted({epsilon for gap in gaps for epsilon in between(*gap)}):
            found[curve.label] = tuple(new)
    return found


def between(low: float, high: float) -> list[float]:
    """The ε that cut a gap into `PARTS`, equal in log ε, rounded to three digits as in a config."""
    cuts = (float(f"{low * (high / low) ** (part / PARTS):.3g}") for part in range(1, PARTS))
    return [cut for cut in cuts if low < cut < high]
