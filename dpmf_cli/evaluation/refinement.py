"""Chooses the ε to add to the grids of curves whose crossings lie in gaps that are too wide."""

from dpmf_cli.evaluation.crossings import crossing_targets, differences_between
from dpmf_cli.evaluation.curves import Experiment

PARTS = 4
"""Number of parts into which a gap is cut. With 4, what a quadratic leaves open falls to a sixteenth, and two
crossings add six ε, which take as long to fit as one (`lane_groups`)."""

MOST_ROUNDS = 4
"""Number of rounds after which a crossing is no longer refined, and is marked as coarse if it still is. By then a gap
has been cut into 256 parts."""

Added = dict[str, tuple[float, ...]]
"""For each label of a curve, the ε that its grid has beside those of the config, ascending."""


def epsilons_to_add(experiment: Experiment) -> Added:
    """The ε that the next round adds to each curve of the experiment.

    Adds nothing to curves whose crossings are uncertain only statistically, no longer by interpolation. Depends on
    the results only.
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
    """The ε that cut a gap into `PARTS` parts of equal width in log ε, rounded to three digits as in a config."""
    cuts = (float(f"{low * (high / low) ** (part / PARTS):.3g}") for part in range(1, PARTS))
    return [cut for cut in cuts if low < cut < high]
