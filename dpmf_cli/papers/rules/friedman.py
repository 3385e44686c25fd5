"""Claims of Friedman, Berkovsky and Kaafar (2016), and the cells of their tables 3 to 5 and of section 5.4."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress

import numpy as np

from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.papers.evidence import Evidence, MissingEvidence
from dpmf_cli.papers.printed import CROSSING_TABLES, load, printed_baseline, printed_crossings
from dpmf_cli.papers.rules.base import Cell, Computed, Rule, Theorem, epsilon_text

TOLERANCES: dict[str, float] = load("friedman2016")["tolerances"]

FACTORIZED = ("isgd", "psgd", "pals")
KINDS = ("bounded", "unbounded")
SMALLER = {"ml-1m": "ml-100k", "ml-10m": "ml-1m", "netflix": "ml-10m"}
"""The data set of the next smaller size."""

Pair = tuple[str, float, float]
"""The name of a comparison, and two ε or RMSE; the first should be below the second."""


def table(evidence: Evidence, kind: str) -> str:
    """Returns the config of table 4 (bounded) or 5 (unbounded)."""
    return evidence.named(f"{{}}_{kind}")


def figure(evidence: Evidence, name: str) -> str:
    """Returns the config of a figure. Configs without a data set in their name are the paper's, mostly on ML-1M."""
    drawn = {("fig5", "netflix-sample"): "friedman_fig5b", ("fig5", "ml-1m"): "friedman_fig5a"}
    if evidence.data == "ml-1m":
        return drawn.get((name, "ml-1m"), f"friedman_{name}")
    whole = "fig5a" if name == "fig5" else name
    return drawn.get((name, evidence.data), evidence.named(f"friedman_{whole}_{{}}"))


def lower(pairs: Iterable[Pair]) -> tuple[bool, str]:
    """Returns whether the first of each pair is below the second, and in words which are not.

    A pair of ε that are both not reached does not count.
    """
    reached = [each for each in pairs if min(each[1:]) < math.inf]
    against = [f"{what} {epsilon_text(a)} and {epsilon_text(b)}" for what, a, b in reached if not a < b]
    said = f"{len(reached) - len(against)} of {len(reached)}"
    return not against, said + (f", not {', '.join(against)}" if against else "")


def close(values: Sequence[float]) -> bool:
    """Returns whether ε are within the factor up to which they count as similar."""
    return max(values) <= TOLERANCES["similar"] * min(values) < math.inf


def crossings(evidence: Evidence, name: str, baseline: str, keys: Iterable[str]) -> dict[str, float]:
    return {key: evidence.crossing(name, key, baseline) for key in keys}


def told(cells: dict[str, float]) -> str:
    return ", ".join(f"{key.upper()} {epsilon_text(value)}" for key, value in cells.items())


BASELINES = ("GA", "IA", "GE", "ALS")


def cells(evidence: Evidence) -> Iterator[Cell]:
    """Yields each printed cell of one data set that is measured, once."""
    yield from _baselines(evidence)
    yield from _crossings(evidence)
    yield from _section_5_4(evidence)


def _baselines(evidence: Evidence) -> Iterator[Cell]:
    for baseline in BASELINES:
        printed = printed_baseline(evidence.data, baseline)
        with suppress(MissingEvidence):
            measured = evidence.baseline(table(evidence, "bounded"), baseline.lower())
            if printed is not None:
                tolerance = TOLERANCES["als" if baseline == "ALS" else "baseline"]
                yield Cell(f"table 3, {baseline}", printed, measured, tolerance)


def _crossings(evidence: Evidence) -> Iterator[Cell]:
    for cell in printed_crossings():
        if cell.dataset == evidence.data and cell.epsilon is not None:
            name = f"table {CROSSING_TABLES[cell.neighbours][-1]}, {cell.algorithm.upper()}, {cell.baseline}"
            with suppress(MissingEvidence):
                config = table(evidence, cell.neighbours)
                yield _crossed(evidence, config, cell.algorithm, cell.baseline, name, cell.epsilon)


def _section_5_4(evidence: Evidence) -> Iterator[Cell]:
    for algorithm, printed in load("friedman2016")["section5_4"].get(evidence.data, {}).items():
        for baseline, epsilon in printed.items():
            name = f"section 5.4, {algorithm.upper()}, {baseline}"
            with suppress(MissingEvidence):
                yield _crossed(evidence, figure(evidence, "fig5"), algorithm, baseline, name, epsilon)


def _crossed(
    evidence: Evidence, config: str, algorithm: str, baseline: str, name: str, printed: float
) -> Cell:
    measured = evidence.crossing(config, algorithm, baseline)
    return Cell(name, printed, measured, TOLERANCES["crossing"], ratio=True)


def input_perturbation_best(evidence: Evidence) -> Computed:
    """ISGD crosses before all other methods and is most accurate at the largest ε, for each kind of neighbours."""
    held, said = [], []
    for kind in KINDS:
        name = table(evidence, kind)
        items = crossings(evidence, name, "IA", ("pge", *FACTORIZED))
        effects = crossings(evidence, name, "GE", FACTORIZED)
        last = {key: float(evidence.curve(name, key).mean()[-1]) for key in ("pge", *FACTORIZED)}
        held += [min(cells, key=cells.__getitem__) == "isgd" for cells in (items, effects, last)]
        said += [f"{kind}: IA {told(items)}; GE {told(effects)}; RMSE at the largest ε {told(last)}"]
    return Computed(tuple(held), "; ".join(said))


def _of_tables(evidence: Evidence, other: Evidence, kinds: tuple[str, str], baseline: str) -> Iterable[Pair]:
    """Yields the crossings of all methods: of `evidence` with the first kind, and of `other` with the second."""
    for key in FACTORIZED if baseline == "GE" else ("pge", *FACTORIZED):
        yield (
            f"{key.upper()} {baseline}",
            evidence.crossing(table(evidence, kinds[0]), key, baseline),
            other.crossing(table(other, kinds[1]), key, baseline),
        )


def larger_data(evidence: Evidence) -> Computed:
    """Crossings are below those of the next smaller data set: bounded, then unbounded; of IA, then of GE."""
    smaller = evidence.on(SMALLER[evidence.data])
    found = [
        (f"{kind}, {baseline}", *lower(_of_tables(evidence, smaller, (kind, kind), baseline)))
        for kind in KINDS
        for baseline in ("IA", "GE")
    ]
    return Computed(
        tuple(held for _, held, _ in found),
        f"below {smaller.data}: " + "; ".join(f"{what} {said}" for what, _, said in found),
    )


def larger_netflix_does_not(evidence: Evidence) -> Computed:
    """Some crossing is not below the same crossing on ML-10M."""
    found = larger_data(evidence)
    return Computed((not all(found.held),), found.measured)


def density_matters_more(evidence: Evidence) -> Computed:
    """Bounded, a data set with more ratings than ML-100K but fewer per user crosses IA and GE no earlier."""
    smaller = evidence.on("ml-100k")
    cells = {b: list(_of_tables(smaller, evidence, ("bounded", "bounded"), b)) for b in ("IA", "GE")}
    found = [lower(pair for pair in pairs if not pair[0].startswith("PGE")) for pairs in cells.values()]
    text = "; ".join(f"{b} {said}" for b, (_, said) in zip(cells, found, strict=True))
    return Computed(tuple(held for held, _ in found), f"ML-100K is below: {text}")


def unbounded_costs_more(evidence: Evidence) -> Computed:
    found = [lower(_of_tables(evidence, evidence, ("bounded", "unbounded"), b)) for b in ("IA", "GE")]
    text = "; ".join(
        f"{b}: {said} bounded below unbounded" for b, (_, said) in zip(("IA", "GE"), found, strict=True)
    )
    return Computed(tuple(held for held, _ in found), text)


def bounded_better_at_any(evidence: Evidence) -> Computed:
    """For each method, the bounded curve is nowhere above the unbounded one where the two overlap."""
    held, said = [], []
    for key in ("pge", *FACTORIZED):
        below, above = (evidence.curve(table(evidence, kind), key) for kind in KINDS)
        gap = _gap(below, above)
        held.append(bool(gap < TOLERANCES["rmse"]))
        said.append(f"{key.upper()} {gap:+.4f}")
    return Computed(tuple(held), f"most by which the bounded RMSE is above: {', '.join(said)}")


def _gap(below: Measured, above: Measured) -> float:
    """Returns the most by which the first curve is above the second, at the first curve's ε that both cover."""
    inside = (below.epsilons >= above.epsilons[0]) & (below.epsilons <= above.epsilons[-1])
    epsilons = below.epsilons[inside]
    there = np.interp(np.log(epsilons), np.log(above.epsilons), above.mean())
    return float((below.mean()[inside] - there).max())


def bounded_order(evidence: Evidence) -> Computed:
    name = table(evidence, "bounded")
    items, effects = (crossings(evidence, name, b, FACTORIZED) for b in ("IA", "GE"))
    held = (
        close([items["psgd"], items["pals"]]),
        max(items["psgd"], items["pals"]) < items["isgd"],
        effects["isgd"] < TOLERANCES["far_below"] * min(effects["psgd"], effects["pals"]),
    )
    return Computed(held, f"IA {told(items)}; GE {told(effects)}")


def unbounded_order(evidence: Evidence) -> Computed:
    name = table(evidence, "unbounded")
    items, effects = (crossings(evidence, name, b, FACTORIZED) for b in ("IA", "GE"))
    held = (
        close(list(items.values())),
        effects["isgd"] < min(effects["psgd"], effects["pals"]),
        close([effects["psgd"], effects["pals"]]),
    )
    return Computed(held, f"IA {told(items)}; GE {told(effects)}")


def items_before_effects(evidence: Evidence) -> Computed:
    found = [
        lower(
            (
                f"{key.upper()}, {kind}",
                evidence.crossing(table(evidence, kind), key, "IA"),
                evidence.crossing(table(evidence, kind), key, "GE"),
            )
            for key in FACTORIZED
        )
        for kind in KINDS
    ]
    return Computed(tuple(held for held, _ in found), "; ".join(said for _, said in found) + " IA before GE")


HALVES = "PALS, P 0.5"
"""The label of PALS with the printed split. No choice of the space changes the split of this entry."""
SPLITS = ("PALS, P 0.3", "PALS, P 0.4", "PALS, P 0.6", "PALS, P 0.7")


def split_of_pals(evidence: Evidence) -> Computed:
    """At some ε where PALS is below IA, a split other than halves is better."""
    name = evidence.named("friedman_noise_{}")
    halves = evidence.curve(name, HALVES).mean()
    useful = halves <= evidence.baseline(name, "ia")
    if not useful.any():
        raise MissingEvidence(f"{name}: PALS below IA")
    gains = {label: float((halves - evidence.curve(name, label).mean())[useful].max()) for label in SPLITS}
    most = max(gains.values())
    said = ", ".join(f"{label} by {gain:.4f}" for label, gain in gains.items())
    return Computed((most > TOLERANCES["rmse"],), f"below halves at most, {said}")


def norm_bounds_cross_earlier(evidence: Evidence) -> Computed:
    """With the paper's norm bounds, IA is crossed slightly earlier than with the widest bounds of figure 3b."""
    name = evidence.named("friedman_noise_{}")
    found = {
        key: [evidence.crossing(name, label, "IA") for label in (bounded, f"{key}, q_max 2")]
        for key, bounded in (("PSGD", "PSGD"), ("PALS", HALVES))
    }
    held = [part for cells in found.values() for part in (cells[0] < cells[1], close(cells))]
    said = "; ".join(
        f"{key} {epsilon_text(a)} with them, {epsilon_text(b)} with q_max 2" for key, (a, b) in found.items()
    )
    return Computed(tuple(held), f"IA: {said}")


RAW = {
    "PSGD": "no preprocessing, norms lifted",
    "ISGD": "ISGD, no preprocessing",
    "PALS": "PALS, no preprocessing, norms lifted",
}
"""The labels of the curves on raw ratings, by the labels of the same curves of figure 3a."""


def preprocessing(evidence: Evidence) -> Computed:
    """On raw ratings, each method crosses IA markedly later."""
    name = figure(evidence, "fig3a")
    pairs = {key: [evidence.crossing(name, label, "IA") for label in (key, raw)] for key, raw in RAW.items()}
    said = "; ".join(f"{key} {epsilon_text(a)}, raw {epsilon_text(b)}" for key, (a, b) in pairs.items())
    return Computed(tuple(TOLERANCES["markedly"] * a < b for a, b in pairs.values()), f"IA at {said}")


def preprocessing_outweighs_the_choice(evidence: Evidence) -> Computed:
    """For some method, raw ratings move the crossing of IA by a larger factor than the choice of the method does."""
    name = figure(evidence, "fig3a")
    own = {key: evidence.crossing(name, key, "IA") for key in RAW}
    if not 0 < min(own.values()) <= max(own.values()) < math.inf:
        raise MissingEvidence(f"{name}: an IA crossing within the grid")
    moved = {key: evidence.crossing(name, raw, "IA") / own[key] for key, raw in RAW.items()}
    between = max(own.values()) / min(own.values())
    said = ", ".join(f"{key} {epsilon_text(factor)}" for key, factor in moved.items())
    return Computed(
        (max(moved.values()) > between,), f"raw ratings move IA by {said}; methods differ by {between:.3g}"
    )


def norm_bounds(evidence: Evidence) -> Computed:
    """q_max moves the crossing of GE but not of IA.

    Wide bounds are better at the largest ε, narrow bounds at the least.
    """
    name, labels = figure(evidence, "fig3b"), ("q_max 0.5", "q_max 1", "q_max 2")
    items, effects = ([evidence.crossing(name, label, b) for label in labels] for b in ("IA", "GE"))
    curves = [evidence.curve(name, label).mean() for label in labels]
    least, most = ([float(curve[at]) for curve in curves] for at in (0, -1))
    held = (
        close(items),
        min(effects) < math.inf and not close(effects),
        most[0] - min(most[1:]) > TOLERANCES["rmse"],
        min(least[1:]) - least[0] > TOLERANCES["rmse"],
    )
    return Computed(
        held,
        f"IA {', '.join(map(epsilon_text, items))}; GE {', '.join(map(epsilon_text, effects))}; "
        f"RMSE at the least and the largest ε {_spoken(least)}; {_spoken(most)}, for q_max 0.5, 1, 2",
    )


def _spoken(values: Iterable[float]) -> str:
    return ", ".join(f"{value:.4f}" for value in values)


def simple_first(evidence: Evidence) -> Computed:
    """At the least ε, PGE and kNN are below every factorisation. At the largest, some factorisation is below kNN."""
    name = figure(evidence, "fig5")
    curves = {key: evidence.curve(name, key).mean() for key in ("pge", "pknn", *FACTORIZED)}
    held = (
        max(curves[key][0] for key in ("pge", "pknn")) < min(curves[key][0] for key in FACTORIZED),
        min(curves[key][-1] for key in FACTORIZED) < curves["pknn"][-1],
    )
    ends = "; ".join(f"{key.upper()} {curve[0]:.3f} … {curve[-1]:.3f}" for key, curve in curves.items())
    return Computed(held, f"RMSE at both ends of the grid: {ends}")


def neighbours_resilient(evidence: Evidence) -> Computed:
    """kNN crosses IA before every factorisation, and before kNN with a fixed covariance: its covariance helps."""
    name = figure(evidence, "fig5")
    found = crossings(evidence, name, "IA", ("pknn", "public_knn", *FACTORIZED))
    held = (found["pknn"] < min(found[key] for key in FACTORIZED), found["pknn"] < found["public_knn"])
    return Computed(held, f"IA {told(found)}")


def neighbours_then_effects(evidence: Evidence) -> Computed:
    name = figure(evidence, "fig5")
    found = crossings(evidence, name, "IA", ("pknn", "pge", *FACTORIZED))
    held = (found["pknn"] < found["pge"], found["pge"] < min(found[key] for key in FACTORIZED))
    return Computed(held, f"IA {told(found)}")


def best_pair(evidence: Evidence) -> Computed:
    """No pair of λ and d is better than the printed one: for clean ALS, then for ISGD at each ε."""
    appendix = load("friedman2016")["appendix"]
    printed = (appendix["regularization"], appendix["factors"])
    held, said = [], []
    for what, rmse in _by_pair(evidence).items():
        best = min(rmse, key=rmse.__getitem__)
        held.append(rmse[printed] - rmse[best] < TOLERANCES["rmse"])
        said.append(f"{what} λ {best[0]:g}, d {best[1]} ({rmse[best]:.4f}, the printed {rmse[printed]:.4f})")
    return Computed(tuple(held), f"best: {'; '.join(said)}")


def _by_pair(evidence: Evidence) -> dict[str, dict[tuple[float, int], float]]:
    """Returns the RMSE by method and ε, then by (λ, d)."""
    found: dict[str, dict[tuple[float, int], float]] = {}
    for method, d in itertools.product(("ALS", "ISGD"), (1, 3, 5, 10)):
        for rate, point in evidence.line("friedman_fig6_pairs", f"{method}, d {d}"):
            for epsilon, rmse in zip(point.epsilons, point.mean(), strict=True):
                what = f"{method}, ε {epsilon:g}" if math.isfinite(epsilon) else f"clean {method}"
                found.setdefault(what, {})[rate, d] = float(rmse)
    return found


def stable_after(evidence: Evidence) -> Computed:
    """From the printed k on, at the latest, RMSE stays within the tolerance: for clean ALS, then for ISGD."""
    printed = load("friedman2016")["appendix"]["stable_after"]
    held, said = [], []
    for label in ("ALS, k", "ISGD, k"):
        points = evidence.line("friedman_fig6_pairs", label)
        rmse = {k: float(point.mean()[-1]) for k, point in points}
        settled = min(k for k in rmse if _spread(rmse, k) <= TOLERANCES["stable"])
        held.append(settled <= printed)
        since = f"from {settled:g}" if settled < max(rmse) else "not before the last k"
        said.append(f"{label.partition(',')[0]} {since}")
    return Computed(tuple(held), f"RMSE within {TOLERANCES['stable']:g}: {', '.join(said)}")


def _spread(rmse: dict[float, float], first: float) -> float:
    later = [value for k, value in rmse.items() if k >= first]
    return max(later) - min(later)


RULES: dict[str, Rule] = {
    "input-perturbation-best": input_perturbation_best,
    "larger-data-crosses-earlier": larger_data,
    "netflix-does-not-cross-earlier": larger_netflix_does_not,
    "split-helps-slightly": split_of_pals,
    "ia-before-ge": items_before_effects,
    "bounded-crossings-order": bounded_order,
    "norm-bounds-cross-earlier": norm_bounds_cross_earlier,
    "preprocessing-helps": preprocessing,
    "preprocessing-outweighs": preprocessing_outweighs_the_choice,
    "q-max-moves-ge": norm_bounds,
    "unbounded-order": unbounded_order,
    "unbounded-costs-more": unbounded_costs_more,
    "bounded-better-at-any-epsilon": bounded_better_at_any,
    "simple-wins-at-low-epsilon": simple_first,
    "neighbours-resilient": neighbours_resilient,
    "netflix-neighbours-first": neighbours_then_effects,
    "density-matters-more": density_matters_more,
    "best-pair": best_pair,
    "stable-after": stable_after,
    "theorem-3": Theorem("isgd, bounded, published"),
    "theorem-4": Theorem("psgd, bounded, published"),
    "theorem-6": Theorem("pals, bounded, corrected"),
    "algorithm-6": Theorem("pals, bounded, published"),
    "algorithm-5": Theorem("psgd, unbounded, published"),
    "unbounded-averages": Theorem("pge, unbounded, published"),
    "unbounded-als": Theorem("pals, unbounded, published"),
}
