"""Labels that do not overlap: the least movement that keeps a distance between neighbours."""

from collections.abc import Sequence


def spread(targets: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions in [low, high], at least `gap` apart, nearest to `targets` in least squares; in input order.

    With positions sorted and y_i = x_i − i·gap, "at least `gap` apart" means that y never falls, so y is the
    isotonic regression of the targets, found by pooling adjacent violators (Barlow et al., Statistical
    Inference under Order Restrictions, 1972), clipped to the range. Where the labels do not fit, they are
    spaced evenly.
    """
    count = len(targets)
    if count > 1:
        gap = min(gap, (high - low) / (count - 1))
    order = sorted(range(count), key=lambda index: targets[index])
    blocks: list[tuple[float, int]] = []  # mean and size of runs of equal y
    for rank, index in enumerate(order):
        mean, size = targets[index] - rank * gap, 1
        while blocks and blocks[-1][0] > mean:
            before, width = blocks.pop()
            mean, size = (before * width + mean * size) / (width + size), width + size
        blocks.append((mean, size))
    top = high - (count - 1) * gap
    placed = [min(max(mean, low), top) for mean, size in blocks for _ in range(size)]
    positions = [0.0] * count
    for rank, index in enumerate(order):
        positions[index] = placed[rank] + rank * gap
    return positions
