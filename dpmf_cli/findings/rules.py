"""Verdicts on claims, computed from the results at hand: a rule for each claim that figures alone decide.

A rule gets the evidence and returns a verdict with the figures behind it; it raises MissingEvidence where a result
that it needs is not there.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dpmf_cli.evaluation.curves import Measured
from dpmf_cli.findings import Word
from dpmf_cli.findings.evidence import Evidence, MissingEvidence
from dpmf_cli.report.layout import significant


@dataclass(frozen=True)
class Computed:
    """A verdict, and the figures that it rests on."""

    verdict: Word
    measured: str


_CELLS = (("pge", "IA"), *((name, baseline) for name in ("isgd", "psgd", "pals") for baseline in ("IA", "GE")))


def _of(held: int, pairs: int) -> Word:
    """All, some or none of so many comparisons."""
    return "confirmed" if held == pairs else "in part" if held else "refuted"


def _epsilon(value: float) -> str:
    return significant(value) if np.isfinite(value) else "not reached"


def _paired(evidence: Evidence, pairs: list[tuple[str, str]], what: str) -> Computed:
    """In how many cells the crossing of the first config of a pair lies below that of the second."""
    cells = [
        (f"{name.upper()} {baseline} ({first}, {second})", lower, higher)
        for first, second in pairs
        for name, baseline in _CELLS
        for lower, higher in [(evidence.crossing(first, name, baseline), evidence.crossing(second, name, baseline))]
    ]
    against = [f"{label}: {_epsilon(low)} and {_epsilon(high)}" for label, low, high in cells if not low < high]
    text = f"{len(cells) - len(against)} of {len(cells)} {what}"
    return Computed(_of(len(cells) - len(against), len(cells)), "; not ".join([text, *against]))


def larger_data(evidence: Evidence) -> Computed:
    pairs = [(f"ml1m_{kind}", f"ml100k_{kind}") for kind in ("bounded", "unbounded")]
    return _paired(evidence, pairs, "crossings of tables 4 and 5 are lower on ML-1M than on ML-100K")


def unbounded_costs_more(evidence: Evidence) -> Computed:
    pairs = [(f"{data}_bounded", f"{data}_unbounded") for data in ("ml100k", "ml1m")]
    found = _paired(evidence, pairs, "crossings are lower bounded than unbounded")
    # "Every crossing" is refuted by one.
    return found if found.verdict == "confirmed" else Computed("refuted", found.measured)


def bounded_order(evidence: Evidence) -> Computed:
    held, told = 0, []
    for name in ("ml100k_bounded", "ml1m_bounded"):
        items = {key: evidence.crossing(name, key, "IA") for key in ("psgd", "pals", "isgd")}
        effects = {key: evidence.crossing(name, key, "GE") for key in ("psgd", "pals", "isgd")}
        held += max(items["psgd"], items["pals"]) < items["isgd"]
        held += effects["isgd"] < 0.6 * min(effects["psgd"], effects["pals"])
        for baseline, cells in (("IA", items), ("GE", effects)):
            told.append(f"{name}, {baseline}: " + ", ".join(f"{k.upper()} {_epsilon(v)}" for k, v in cells.items()))
    return Computed(_of(held, 4), "; ".join(told))


def simple_first(evidence: Evidence) -> Computed:
    name = "friedman_fig5a"
    curves = {key: evidence.curve(name, key).mean() for key in ("pge", "pknn", "isgd", "psgd", "pals")}
    factorized = ("isgd", "psgd", "pals")
    first = max(curves[key][0] for key in ("pge", "pknn")) < min(curves[key][0] for key in factorized)
    last = max(curves[key][-1] for key in factorized) < curves["pknn"][-1]
    ends = "; ".join(f"{key} {curve[0]:.3f} … {curve[-1]:.3f}" for key, curve in curves.items())
    return Computed(_of(first + last, 2), f"RMSE at both ends of the grid: {ends}")


def preprocessing(evidence: Evidence) -> Computed:
    name = "friedman_fig3a"
    labels = ("PSGD", "no preprocessing, norms lifted")
    crossings = [evidence.crossing(name, label, "IA") for label in labels]
    verdict = _of(int(2 * crossings[0] < crossings[1]), 1)
    return Computed(verdict, f"IA at {_epsilon(crossings[0])} with it, {_epsilon(crossings[1])} without (norms lifted)")


def norm_bounds(evidence: Evidence) -> Computed:
    labels = ("q_max 0.5", "q_max 1", "q_max 2")
    cells = {b: [evidence.crossing("friedman_fig3b", label, b) for label in labels] for b in ("IA", "GE")}
    still = max(cells["IA"]) < 1.1 * min(cells["IA"])
    moved = max(cells["GE"]) > 1.1 * min(cells["GE"])
    told = [f"{b} at {', '.join(map(_epsilon, values))}" for b, values in cells.items()]
    return Computed(_of(still + moved, 2), f"{'; '.join(told)} for q_max = 0.5, 1, 2")


def loss_shrinks(evidence: Evidence) -> Computed:
    experiment = evidence.experiment("mcsherry_fig2_ml1m")
    stages = experiment.growth.stages if experiment.growth else ()
    held = steps = 0
    told = []
    for rank, curve in enumerate(experiment.curves):
        losses = np.array([_loss(stage.curves[rank]) for stage in stages])
        if len(losses) < 2 or not np.isfinite(losses).all():
            raise MissingEvidence(experiment.name)
        steps += losses[1:].size
        held += int((losses[1:] < losses[:-1]).sum())
        told.append(f"{curve.label} {losses[0, 0]:.3f} → {losses[-1, 0]:.3f}")
    return Computed(_of(held, steps), f"{held} of {steps} steps shrink it; at the least θ: {'; '.join(told)}")


def _loss(curve: Measured) -> list[float]:
    twin = curve.without_noise()
    return [np.nan] * len(curve.epsilons) if twin is None else (curve.mean() - twin.mean()).tolist()


def per_user(evidence: Evidence) -> Computed:
    name, held, told = "mcsherry_user_ml1m", 0, []
    for noise in ("Gaussian", "Laplace"):
        whom = [evidence.crossing(name, f"kNN, per {what}, {noise}", "IA") for what in ("user", "rating")]
        held += whom[1] < whom[0]
        told.append(f"{noise} noise {_epsilon(whom[0])} per user, {_epsilon(whom[1])} per rating")
    return Computed(_of(held, 2), f"IA at ε: {'; '.join(told)}")


def cleaning(evidence: Evidence) -> Computed:
    held, told = 0, []
    for method in ("kNN", "SVD"):
        gain = evidence.curve("mcsherry_fig1_ml1m", method).mean()
        gain = gain - evidence.curve("mcsherry_fig1_ml1m", f"{method}, cleaned").mean()
        held += int(gain[0] > 0) + int(gain[-1] < 0)
        told.append(f"{method} {gain[0]:+.3f} at the least θ, at best {gain.max():+.3f}, {gain[-1]:+.3f} at the largest")
    return Computed(_of(held, 4), f"RMSE gained by cleaning: {'; '.join(told)}")


def figure2_level(evidence: Evidence) -> Computed:
    means = [float(each.mean()[-1]) for _, each in evidence.line("zhang_fig2_ml1m", "PDP-PMF")]
    held = sum(abs(mean - 1.0) < 0.1 for mean in means)
    return Computed(_of(held, len(means)), f"ML-1M: RMSE {min(means):.3f}–{max(means):.3f}")


def errors_at_most_one(evidence: Evidence) -> Computed:
    parts = []
    for label in ("PDP-PMF1", "PDP-PMF2", "PDP-PMF3"):
        curve = evidence.curve("zhang_fig3_ml1m", label)
        assert curve.error_cdf is not None
        parts.append(100 * float(curve.error_cdf.mean(axis=(0, 1))[-1, curve.limits.index(1.0)]))
    held = sum(abs(part - 70) < 3 for part in parts)
    return Computed(_of(held, 3), f"ML-1M: {min(parts):.1f}–{max(parts):.1f} %")


def figure4_right_end(evidence: Evidence) -> Computed:
    lines = [evidence.line("zhang_fig4_ml1m", f"PDP-PMF{k}") for k in (1, 2, 3)]
    ends = [float(line[-1][1].mean()[-1]) for line in lines]
    held = sum(0.935 < end < 0.975 for end in ends)
    return Computed(_of(held, 3), f"ML-1M: RMSE {min(ends):.3f}–{max(ends):.3f} at the largest ε_m")


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
        "in part" if near and not held else _of(held, 2), f"best t {best_text}; from 0.7 to 1.0 down by {fall} points"
    )


def beats_isgd(evidence: Evidence) -> Computed:
    ours, held, cells = "blp_mog_mf", 0, 0
    told = []
    for label in ("ISGD, unregularised", "ISGD, regularised"):
        better = evidence.curve("neera_fig4_ml100k", ours).mean() < evidence.curve("neera_fig4_ml100k", label).mean()
        held, cells = held + int(better.sum()), cells + len(better)
        told.append(f"below {label} at {int(better.sum())} of {len(better)} ε")
    return Computed(_of(held, cells), f"ML-100K: {'; '.join(told)}")


def falls_with_epsilon(evidence: Evidence) -> Computed:
    experiment = evidence.experiment("neera_fig4_ml100k")
    falling = [bool((np.diff(curve.mean()) < 1e-3).all()) for curve in experiment.curves if not curve.missing]
    if len(falling) < len(experiment.curves):
        raise MissingEvidence(experiment.name)
    return Computed(_of(sum(falling), len(falling)), f"ML-100K: {sum(falling)} of {len(falling)} curves fall throughout")


def mixture(evidence: Evidence) -> Computed:
    ours = evidence.curve("neera_fig4_ml100k", "blp_mog_mf").mean()
    plain = evidence.curve("neera_fig4_ml100k", "MF, BLP").mean()
    gain = 100 * (1 - ours / plain)
    held = int((gain > 0.5).sum())
    return Computed(_of(held, len(gain)), f"ML-100K: RMSE lower by {gain.min():.1f} to {gain.max():.1f} % with the mixture")


def accurate(evidence: Evidence) -> Computed:
    ours = evidence.curve("neera_fig4_ml100k", "blp_mog_mf")
    floor = evidence.curve("neera_fig4_ml100k", "mean").mean()
    better = ours.epsilons[ours.mean() < floor]
    strong = ours.epsilons <= 1
    held = int((ours.mean() < floor)[strong].sum())
    since = f"only from ε = {better[0]:g} on" if len(better) else "nowhere"
    return Computed(_of(held, int(strong.sum())), f"ML-100K: below the mean of the perturbed ratings {since}")


def beats_pg_mf(evidence: Evidence) -> Computed:
    name = "neera_fig3_ml100k"
    ours = evidence.curve(name, "blp_mog_mf").mean()
    theirs = [curve for curve in evidence.experiment(name).curves if curve.algorithm == "pg_mf" and not curve.missing]
    if not theirs:
        raise MissingEvidence(name)
    better = [int((ours < curve.mean()).sum()) for curve in theirs]
    told = "; ".join(f"below {c.label} at {n} of {len(ours)} ε" for c, n in zip(theirs, better, strict=True))
    return Computed(_of(sum(better), len(ours) * len(theirs)), told)


RULES: dict[tuple[str, str], Callable[[Evidence], Computed]] = {
    ("friedman2016", "larger-data-crosses-earlier"): larger_data,
    ("friedman2016", "bounded-crossings-order"): bounded_order,
    ("friedman2016", "unbounded-costs-more"): unbounded_costs_more,
    ("friedman2016", "simple-wins-at-low-epsilon"): simple_first,
    ("friedman2016", "preprocessing-helps"): preprocessing,
    ("friedman2016", "q-max-moves-ge"): norm_bounds,
    ("mcsherry2009", "cleaning-helps-under-noise"): cleaning,
    ("mcsherry2009", "loss-shrinks-with-data"): loss_shrinks,
    ("mcsherry2009", "per-user-costs-more"): per_user,
    ("zhang2018", "figure2-level"): figure2_level,
    ("zhang2018", "errors-at-most-one"): errors_at_most_one,
    ("zhang2018", "figure4-right-end"): figure4_right_end,
    ("zhang2018", "best-threshold"): best_threshold,
    ("neera2020", "beats-isgd-everywhere"): beats_isgd,
    ("neera2020", "error-falls-with-epsilon"): falls_with_epsilon,
    ("neera2020", "mixture-helps"): mixture,
    ("neera2020", "accurate-under-strong-privacy"): accurate,
    ("neera2020", "beats-pg-mf"): beats_pg_mf,
}
"""The rule of each claim that is computed, by its paper's key and its id."""


def compute(key: str, claim: str, evidence: Evidence) -> Computed | None:
    """The verdict on a claim from the results at hand; None where no rule decides it, or results are missing."""
    rule = RULES.get((key, claim))
    if rule is None:
        return None
    try:
        return rule(evidence)
    except MissingEvidence:
        return None
