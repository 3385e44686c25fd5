"""Claims of Friedman, Berkovsky and Kaafar (2016) that their tables 4 and 5 decide."""

from collections.abc import Iterable

import numpy as np

from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.rules.base import Computed
from dpmf_cli.papers.rules.friedman_shared import (
    FACTORIZED,
    KINDS,
    SMALLER,
    TOLERANCES,
    Pair,
    close,
    crossings,
    lower,
    table,
    told,
)


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
