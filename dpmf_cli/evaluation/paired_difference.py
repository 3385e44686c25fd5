"""Compares two experiments on the same folds, curve by curve: the difference of RMSE, paired by fold and run.

Folds are a function of the dataset, the seed and the number of folds. Two experiments that share these have used the
same training and test ratings. Unless the seed is secret, an algorithm with other parameters also has the same noise
(`streams`). Both cancel in the difference, so its interval is narrower than those of the two curves.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpmf_cli.core.streams import named_generator
from dpmf_cli.evaluation.crossings import is_complete
from dpmf_cli.evaluation.curves import Experiment, Measured
from dpmf_cli.evaluation.statistics import REPLICATES, Over, percentile_interval, replicate_means


@dataclass(frozen=True)
class Difference:
    """RMSE of B minus RMSE of A at one ε, over the folds and runs that both have; negative where B is better.

    a, b        the two RMSE, rating units; inf where a model diverged
    difference  None where `a` or `b` is infinite
    low, high   ends of the 95 % interval of `difference`; None where there is none
    over        what the interval is resampled over
    same        whether A and B agree to the bit in every pair, so no setting in which they differ has an effect
    provable_a, provable_b  the ε that can be proved for what was run, inf where none can
    """

    algorithm: str
    label_a: str
    label_b: str
    neighbours: str
    epsilon: float
    a: float
    b: float
    difference: float | None
    low: float | None
    high: float | None
    over: Over
    folds: int
    runs: int
    same: bool
    provable_a: float
    provable_b: float

    @property
    def verdict(self) -> str:
        """Whether B is "better" or "worse" than A; "" if the interval contains 0 or there is none."""
        if self.low is None or self.high is None:
            return ""
        return "better" if self.high < 0 else "worse" if self.low > 0 else ""


@dataclass(frozen=True)
class Comparison:
    """The differences of the pairs that can be compared, and for each other curve the reason why it cannot."""

    differences: tuple[Difference, ...]
    left_out: tuple[str, ...]


def paired(a: Sequence[tuple[str, str]], b: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    """Pairs of indices into `a` and `b`, whose elements are (label, algorithm).

    Elements are paired by label. Two of the others are paired if their algorithm remains once in `a` and in `b`.
    """
    labels = {label: at for at, (label, _) in enumerate(b)}
    pairs = {at: labels[label] for at, (label, _) in enumerate(a) if label in labels}
    rest_a = [at for at in range(len(a)) if at not in pairs]
    taken = set(pairs.values())
    rest_b = [at for at in range(len(b)) if at not in taken]
    left_a, left_b = Counter(a[at][1] for at in rest_a), Counter(b[at][1] for at in rest_b)
    by_algorithm = {b[at][1]: at for at in rest_b}
    pairs |= {
        at: by_algorithm[algorithm]
        for at, algorithm in ((at, a[at][1]) for at in rest_a)
        if left_a[algorithm] == left_b[algorithm] == 1
    }
    return sorted(pairs.items())


def compare(a: Experiment, b: Experiment, *, replicates: int = REPLICATES) -> Comparison:
    """Compares the curves of two experiments. The caller checks that both have the same dataset, seed and folds."""
    all_a, all_b = ((*each.baselines, *each.curves) for each in (a, b))
    pairs = paired(*([(one.label, one.algorithm) for one in every] for every in (all_a, all_b)))
    found: list[Difference] = []
    in_a, in_b = ({pair[side] for pair in pairs} for side in (0, 1))
    left_out = [f"{one.label}: only in A" for at, one in enumerate(all_a) if at not in in_a]
    left_out += [f"{one.label}: only in B" for at, one in enumerate(all_b) if at not in in_b]
    for at_a, at_b in pairs:
        one, other = all_a[at_a], all_b[at_b]
        reason = _incomparable(one, other)
        if reason:
            both = one.label if one.label == other.label else f"{one.label} and {other.label}"
            left_out.append(f"{both}: {reason}")
        else:
            found += differences(one, other, a, replicates)
    return Comparison(tuple(found), tuple(left_out))


def _incomparable(a: Measured, b: Measured) -> str:
    """Why two curves cannot be compared: their ε mean different things, or errors are missing; "" if they can."""
    if not (is_complete(a) and is_complete(b)):
        return f"{' and '.join(x for x, one in (('A', a), ('B', b)) if not is_complete(one))} lacks results"
    if a.is_baseline != b.is_baseline:
        return f"only {'B' if a.is_baseline else 'A'} is private"
    if not a.is_baseline and a.guarantee.at_any_delta != b.guarantee.at_any_delta:
        how = (
            "not comparable"
            if a.guarantee.protects != b.guarantee.protects
            else "not ranked against each other"
        )
        return f"A protects the {a.guarantee}, B the {b.guarantee}; their ε are {how}"
    if a.delta != b.delta:
        return f"A has δ = {a.delta:g}, B {b.delta:g}; their ε are not ranked against each other"
    if not np.isin(a.epsilons, b.epsilons).any():
        has = [f"{each.epsilons[0]:.4g} to {each.epsilons[-1]:.4g}" for each in (a, b)]
        return f"no ε in common: A has {has[0]}, B {has[1]}"
    return ""


def differences(
    a: Measured, b: Measured, experiment: Experiment, replicates: int = REPLICATES
) -> Iterator[Difference]:
    """Yields the difference of two curves of one dataset, seed and cut into folds at each ε that both have."""
    common, in_a, in_b = np.intersect1d(a.epsilons, b.epsilons, return_indices=True)
    folds, runs = (min(a.rmse.shape[axis], b.rmse.shape[axis]) for axis in (0, 1))
    ours, theirs = a.rmse[:folds, :runs, in_a], b.rmse[:folds, :runs, in_b]
    finite = np.asarray((np.isfinite(ours) & np.isfinite(theirs)).all(axis=(0, 1)))
    difference: NDArray[np.float64] = np.subtract(theirs, ours, where=finite, out=np.zeros_like(ours))
    rng = named_generator(experiment.seed, "comparison", experiment.stream, a.neighbours, a.label, b.label)
    drawn = replicate_means(difference, rng=rng, partition=experiment.partition, replicates=replicates)
    ends = percentile_interval(drawn.curves) if drawn.over != "none" else None
    for at, epsilon in enumerate(common):
        known = ends is not None and bool(finite[at])
        yield Difference(
            algorithm=a.algorithm,
            label_a=a.label,
            label_b=b.label,
            neighbours=a.neighbours,
            epsilon=float(epsilon),
            a=float(ours[:, :, at].mean()),
            b=float(theirs[:, :, at].mean()),
            difference=float(difference[:, :, at].mean()) if finite[at] else None,
            low=float(ends[0][at]) if ends is not None and known else None,
            high=float(ends[1][at]) if ends is not None and known else None,
            over=drawn.over if known else "none",
            folds=folds,
            runs=runs,
            same=bool(finite[at] and not difference[:, :, at].any()),
            provable_a=float(a.provable[in_a[at]]),
            provable_b=float(b.provable[in_b[at]]),
        )
