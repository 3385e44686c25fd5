"""The Markdown tables that `make bench` prints: our aims in speed beside its measurements."""

from collections.abc import Mapping, Sequence

from docs.makers.reference import markdown_table
from tests.benchmarks.contestants import GRID
from tests.benchmarks.limits import Bounds, binding
from tests.benchmarks.races import THREADS, Outcome, short

LIU_2015 = 8.5e6 * 1024
"""Coordinate updates in a second on one PC: 8.5 million ratings a second with models of 1024 factors (Liu, Wang
and Smola 2015, abstract)."""

UPDATES = {20: 1e10}
"""Coordinate updates a second of ISGD on one thread, by d."""

TIMES_AS_FAST: dict[tuple[str, str], dict[int | None, float]] = {
    ("dpmf ISGD", "Cornac `MF`"): {5: 13.0, 20: 7.0, 64: 5.0},
    ("dpmf PSGD", "Cornac `MF`"): {5: 6.5, 20: 4.5, 64: 4.0},
    ("dpmf PALS", "cmfrec ALS by Cholesky"): {5: 20.0, 20: 12.0, 64: 10.0},
    ("dpmf PMF, 1 model", "Cornac `PMF`, linear"): {5: 4.0, 20: 6.0, 64: 8.0},
    ("dpmf MM kNN", "Cornac `ItemKNN`"): {None: 8.0},
    ("dpmf MM kNN", "LensKit `ItemKNNScorer`"): {None: 1.0},
}
"""The aim for how many times as fast as a peer ours should be, by CPU time for a model, by d where it applies."""


def ratios_table(outcomes: Sequence[Outcome], limits: Mapping[str, str]) -> str:
    """A row for each pair of ours and a peer. limits: by race, what part of the machine's limit ours reaches."""
    rows: list[tuple[str, ...]] = []
    for found in outcomes:
        for peer in found.race.peers:
            aim = TIMES_AS_FAST.get((found.ours, peer), {}).get(found.race.factors)
            row = (found.ours, found.race.what, str(found.race.factors or ""), peer)
            if peer in found.absent:
                rows.append((*row, f"not installed: {found.absent[peer]}", "", *_aim(aim, None), ""))
                continue
            one, two = (found.ratio(peer, threads) for threads in THREADS)
            said = [short(each) if each else "" for each in (one, two)]
            of_limit = limits.get(f"{found.ours} {found.race.factors}", "")
            rows.append((*row, *said, *_aim(aim, one), of_limit if aim else ""))
    header = (
        "ours",
        "work",
        "d",
        "peer",
        "times as fast, one thread",
        "two threads",
        "aim",
        "met",
        "of the limit",
    )
    return markdown_table(header, rows)


def _aim(aim: float | None, found: float | None) -> tuple[str, str]:
    if aim is None:
        return "", ""
    return f"{aim:g}", "" if found is None else ("yes" if found >= aim else "no")


def of_limits(
    outcomes: Sequence[Outcome], visits: Mapping[str, int], limits: Mapping[int, Mapping[str, Bounds]]
) -> dict[str, str]:
    """By race, the part of the limit that ours reaches on one thread, and what binds. visits: by method and d."""
    said = {}
    for found in outcomes:
        race = f"{found.ours} {found.race.factors}"
        if race in visits and found.race.factors:
            bounds = limits[found.race.factors][found.ours]
            least = visits[race] * max(bounds.values()) / GRID
            said[race] = f"{least / found.seconds(found.ours, 1):.0%} of {binding(bounds)}"
    return said


def updates_table(
    outcomes: Sequence[Outcome], visits: int, limits: Mapping[int, Mapping[str, Bounds]]
) -> str:
    """A row for each d and number of threads of ISGD, with the time of a visit of one model."""
    rows = []
    for found in outcomes:
        d = found.race.factors
        if found.ours != "dpmf ISGD" or d is None:
            continue
        of_d = limits[d][found.ours]
        for threads in found.times:
            rate, most = (
                visits * d / found.seconds(found.ours, threads) * threads,
                threads * GRID * d / max(of_d.values()),
            )
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
            seconds = min(ran.seconds for ran in runs)
            rows.append((name, f"{seconds:.1f} s", f"{runs[0].rmse:.4f}"))
    return markdown_table(("item kNN", "CPU time", "RMSE"), list(dict.fromkeys(rows)))


def billions(rate: float) -> str:
    return f"{rate / 1e9:.1f}"
