"""The Markdown tables that `make bench` prints: our aims in speed beside its measurements."""

from collections.abc import Mapping, Sequence
from statistics import median

from docs.makers.reference import markdown_table
from tests.benchmarks.contestants import GRID
from tests.benchmarks.limits import Bounds, binding
from tests.benchmarks.races import THREADS, Outcome

LIU_2015 = 8.5e6 * 1024
"""Coordinate updates in a second on one PC: 8.5 million ratings a second with models of 1024 factors (Liu, Wang
and Smola 2015, abstract)."""

UPDATES = {20: 1e10}
"""Coordinate updates a second of ISGD on one thread, by d."""

TIMES_AS_FAST: dict[tuple[str, str], dict[int | None, float]] = {
    ("dpmf ISGD", "Cornac `MF`"): {5: 13.0, 20: 7.0, 64: 4.5},
    ("dpmf PSGD", "Cornac `MF`"): {5: 8.0, 20: 5.0, 64: 3.0},
    ("dpmf PALS", "cmfrec ALS by Cholesky"): {5: 23.0, 20: 11.0, 64: 9.0},
    ("dpmf PMF, 1 model", "Cornac `PMF`, linear"): {5: 6.0, 20: 6.0, 64: 6.0},
    ("dpmf MM kNN", "LensKit `ItemKNNScorer`"): {None: 10.0},
}
"""The aim for how many times as fast as a peer ours should be, by CPU time for a model, by d where it applies."""


def ratios_table(outcomes: Sequence[Outcome]) -> str:
    """A row for each pair of ours and a peer."""
    rows: list[tuple[str, ...]] = []
    for found in outcomes:
        for peer in found.race.peers:
            aim = TIMES_AS_FAST.get((found.ours, peer), {}).get(found.race.factors)
            row = (found.ours, found.race.what, str(found.race.factors or ""), peer)
            if peer in found.absent:
                rows.append((*row, f"not installed: {found.absent[peer]}", "", *_aim(aim, None)))
                continue
            by_threads = [found.ratio(peer, threads) for threads in THREADS]
            said = [str(each) if each else "" for each in by_threads]
            rows.append((*row, *said, *_aim(aim, by_threads[0].middle if by_threads[0] else None)))
    header = ("ours", "work", "d", "peer", "times as fast, one thread", "two threads", "aim", "met")
    return markdown_table(header, rows)


def _aim(aim: float | None, found: float | None) -> tuple[str, str]:
    if aim is None:
        return "", ""
    return f"{aim:g}", "" if found is None else ("yes" if found >= aim else "no")


def updates_table(outcomes: Sequence[Outcome], visits: int, limits: Mapping[int, Bounds]) -> str:
    """A row for each d and number of threads of ISGD, with the time of a visit of one model."""
    rows = []
    for found in outcomes:
        d = found.race.factors
        if found.ours != "dpmf ISGD" or d is None:
            continue
        of_d = limits[d]
        for threads, times in found.times.items():
            seconds = median(ran.seconds for ran in times[found.ours])
            done = visits * d * found.models[threads][found.ours]
            rate, most = threads * done / seconds, threads * GRID * d / max(of_d.values())
            aim = UPDATES.get(d) if threads == 1 else None
            bounds = ", ".join(f"{name} {billions(threads * GRID * d / each)}" for name, each in of_d.items())
            row = (str(d), str(threads), billions(rate), f"{rate / LIU_2015:.2f}", bounds)
            met = ("", "") if aim is None else (billions(aim), "yes" if rate >= aim else "no")
            rows.append((*row, f"{rate / most:.0%} of {binding(of_d)}", *met))
    rates = ("10⁹ a second", "of Liu et al.", "bounds, 10⁹ a second", "of the limit")
    return markdown_table(("d", "threads", *rates, "aim", "met"), rows)


def neighbours_table(outcomes: Sequence[Outcome]) -> str:
    """How long each contestant took, and how well it predicts, because the models differ."""
    rows = []
    for found in outcomes:
        for name, runs in found.times[1].items():
            seconds = median(ran.seconds for ran in runs)
            rows.append((name, f"{seconds:.1f} s", f"{runs[0].rmse:.4f}"))
    return markdown_table(("item kNN", "CPU time", "RMSE"), list(dict.fromkeys(rows)))


def billions(rate: float) -> str:
    return f"{rate / 1e9:.1f}"
