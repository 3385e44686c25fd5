"""The Markdown tables that `make bench` prints."""

from collections.abc import Mapping, Sequence
from statistics import median

from docs.makers.reference import markdown_table
from tests.benchmarks.aims import LIU_2015, TIMES_AS_FAST, UPDATES
from tests.benchmarks.contestants import GRID
from tests.benchmarks.limits import Limit
from tests.benchmarks.races import THREADS, Outcome


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
            by_threads = [
                found.ratio(peer, threads) if threads in found.times else None for threads in THREADS
            ]
            said = [str(each) if each else "" for each in by_threads]
            rows.append((*row, *said, *_aim(aim, by_threads[0].middle if by_threads[0] else None)))
    header = ("ours", "work", "d", "peer", "times as fast, one thread", "two threads", "aim", "met")
    return markdown_table(header, rows)


def _aim(aim: float | None, found: float | None) -> tuple[str, str]:
    if aim is None:
        return "", ""
    return f"{aim:g}", "" if found is None else ("yes" if found >= aim else "no")


def updates_table(outcomes: Sequence[Outcome], visits: int, limits: Mapping[int, Limit]) -> str:
    """A row for each d and number of threads of ISGD, with the time of a visit of one model."""
    rows = []
    for found in outcomes:
        d = found.race.factors
        if found.ours != "dpmf ISGD" or d is None:
            continue
        limit = limits[d]
        for threads, times in found.times.items():
            seconds = median(ran.seconds for ran in times[found.ours])
            done = visits * d * found.models[threads][found.ours]
            rate, most = threads * done / seconds, threads * GRID * d / limit.seconds
            aim = UPDATES.get(d) if threads == 1 else None
            bounds = ", ".join(
                f"{name} {billions(threads * GRID * d / each)}" for name, each in limit.bounds.items()
            )
            rows.append(
                (
                    str(d),
                    str(threads),
                    billions(rate),
                    f"{rate / LIU_2015:.2f}",
                    bounds,
                    f"{rate / most:.0%} of {limit.binding}",
                    *(("", "") if aim is None else (billions(aim), "yes" if rate >= aim else "no")),
                )
            )
    header = (
        "d",
        "threads",
        "10⁹ a second",
        "of Liu et al.",
        "bounds, 10⁹ a second",
        "of the limit",
        "aim",
        "met",
    )
    return markdown_table(header, rows)


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
