"""Claims of Friedman, Berkovsky and Kaafar (2016)."""

from dpmf_cli.papers.evidence import Evidence
from dpmf_cli.papers.rules.base import Computed, Rule, epsilon_text, of

_CELLS = (
    ("pge", "IA"),
    *((name, baseline) for name in ("isgd", "psgd", "pals") for baseline in ("IA", "GE")),
)


def _paired(evidence: Evidence, pairs: list[tuple[str, str]], what: str) -> Computed:
    """In how many cells the crossing of the first config of a pair lies below that of the second."""
    cells = [
        (f"{name.upper()} {baseline} ({first}, {second})", lower, higher)
        for first, second in pairs
        for name, baseline in _CELLS
        for lower, higher in [
            (evidence.crossing(first, name, baseline), evidence.crossing(second, name, baseline))
        ]
    ]
    against = [
        f"{label}: {epsilon_text(low)} and {epsilon_text(high)}"
        for label, low, high in cells
        if not low < high
    ]
    text = f"{len(cells) - len(against)} of {len(cells)} {what}"
    return Computed(of(len(cells) - len(against), len(cells)), "; not ".join([text, *against]))


def larger_data(evidence: Evidence) -> Computed:
    pairs = [(f"ml1m_{kind}", f"ml100k_{kind}") for kind in ("bounded", "unbounded")]
    return _paired(evidence, pairs, "crossings of tables 4 and 5 are lower on ML-1M than on ML-100K")


def unbounded_costs_more(evidence: Evidence) -> Computed:
    pairs = [(f"{data}_bounded", f"{data}_unbounded") for data in ("ml100k", "ml1m")]
    found = _paired(evidence, pairs, "crossings are lower bounded than unbounded")
    # "Every crossing" is refuted by one.
    return Computed((all(found.held),), found.measured)


def bounded_order(evidence: Evidence) -> Computed:
    held, told = 0, []
    for name in ("ml100k_bounded", "ml1m_bounded"):
        items = {key: evidence.crossing(name, key, "IA") for key in ("psgd", "pals", "isgd")}
        effects = {key: evidence.crossing(name, key, "GE") for key in ("psgd", "pals", "isgd")}
        held += max(items["psgd"], items["pals"]) < items["isgd"]
        held += effects["isgd"] < 0.6 * min(effects["psgd"], effects["pals"])
        for baseline, cells in (("IA", items), ("GE", effects)):
            told.append(
                f"{name}, {baseline}: "
                + ", ".join(f"{k.upper()} {epsilon_text(v)}" for k, v in cells.items())
            )
    return Computed(of(held, 4), "; ".join(told))


def simple_first(evidence: Evidence) -> Computed:
    name = "friedman_fig5a"
    curves = {key: evidence.curve(name, key).mean() for key in ("pge", "pknn", "isgd", "psgd", "pals")}
    factorized = ("isgd", "psgd", "pals")
    first = max(curves[key][0] for key in ("pge", "pknn")) < min(curves[key][0] for key in factorized)
    last = max(curves[key][-1] for key in factorized) < curves["pknn"][-1]
    ends = "; ".join(f"{key} {curve[0]:.3f} … {curve[-1]:.3f}" for key, curve in curves.items())
    return Computed(of(int(first) + int(last), 2), f"RMSE at both ends of the grid: {ends}")


def preprocessing(evidence: Evidence) -> Computed:
    name = "friedman_fig3a"
    labels = ("PSGD", "no preprocessing, norms lifted")
    crossings = [evidence.crossing(name, label, "IA") for label in labels]
    verdict = of(int(2 * crossings[0] < crossings[1]), 1)
    return Computed(
        verdict,
        f"IA at {epsilon_text(crossings[0])} with it, {epsilon_text(crossings[1])} without (norms lifted)",
    )


def norm_bounds(evidence: Evidence) -> Computed:
    labels = ("q_max 0.5", "q_max 1", "q_max 2")
    cells = {b: [evidence.crossing("friedman_fig3b", label, b) for label in labels] for b in ("IA", "GE")}
    still = max(cells["IA"]) < 1.1 * min(cells["IA"])
    moved = max(cells["GE"]) > 1.1 * min(cells["GE"])
    told = [f"{b} at {', '.join(map(epsilon_text, values))}" for b, values in cells.items()]
    return Computed(of(still + moved, 2), f"{'; '.join(told)} for q_max = 0.5, 1, 2")


RULES: dict[str, Rule] = {
    "larger-data-crosses-earlier": larger_data,
    "bounded-crossings-order": bounded_order,
    "unbounded-costs-more": unbounded_costs_more,
    "simple-wins-at-low-epsilon": simple_first,
    "preprocessing-helps": preprocessing,
    "q-max-moves-ge": norm_bounds,
}
