"""`dpmf audit`: checks every ε against the code that runs."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpmf_cli.cli import options
from dpmf_cli.core.children import available_cores
from dpmf_cli.core.errors import DpmfError

if TYPE_CHECKING:
    from dpmf_cli.audit.job import Job, Settings
    from dpmf_cli.datasets import Folders
    from dpmf_cli.experiment.config import ExperimentConfig

LEAST_TRIALS = 20

SECONDS = 2.0
"""The CPU seconds that trials of one variant may take, if their number is not given."""

BITS = 100_000
"""How often a test of low bits releases a number on each side."""

OWN_PAIRS = 12
"""How many pairs are made from small parts of a config's own data."""


def audit(
    config: Annotated[
        Path | None, typer.Argument(help="A YAML config; its private entries are audited.")
    ] = None,
    algorithm: Annotated[
        str | None, typer.Option(help="Key of one algorithm to audit in all its variants.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Audit every algorithm in all its variants.")] = False,
    pairs: Annotated[
        int, typer.Option(min=1, help="How many small adversarial pairs to replay for each algorithm.")
    ] = 84,
    numeric: Annotated[
        bool, typer.Option("--numeric", help="Also replay pairs with up to 95,000 ratings of one item.")
    ] = False,
    trials: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="How many fits on each side of the worst pair, for a lower bound on ε. Without it as many as "
            f"{SECONDS:g} s of CPU allow.",
        ),
    ] = None,
    bits: Annotated[
        bool,
        typer.Option("--bits", help=f"Test the low bits of released numbers, {BITS:,} times for each step."),
    ] = False,
    epsilon: Annotated[float, typer.Option(min=1e-6, help="The ε for --trials and --bits.")] = 1.0,
    confidence: Annotated[
        float, typer.Option(min=0.5, max=0.9999, help="Confidence of the lower bounds.")
    ] = 0.95,
    flaws: Annotated[
        bool,
        typer.Option(
            "--flaws",
            help="Replay the papers' known mistakes, and show how the audit finds each.",
        ),
    ] = False,
    results: options.ResultsOption = Path("results"),
    data: options.DataOption = None,
    jobs: options.JobsOption = None,
    form: options.FormatOption = "table",
    plugin: options.PluginOption = None,
    as_json: options.JsonFormatOption = False,
) -> None:
    """Check every ε against the code that runs.

    Replays fits on neighbouring ratings. Looks for measurements that move by more than their sensitivity, for ledgers
    that depend on the ratings, and for other violations of privacy. The exit code is 1 if a provable ε is refuted.

    Example: dpmf audit --algorithm pge --trials 400
    """
    from dpmf_cli.audit.entries import KNOWN, jobs_of
    from dpmf_cli.audit.job import FOLDER, Settings, keep_for_experiment, outcomes_of
    from dpmf_cli.datasets import Folders
    from dpmf_cli.experiment.config import load_config
    from dpmf_cli.experiment.results.manifest import add_file
    from dpmf_cli.experiment.results.store import write_atomically
    from dpmf_cli.report.tables.layout import draw
    from dpmf_cli.report.tables.ledgers import audits_table, flaws_table

    if [config is not None, algorithm is not None, every, flaws].count(True) != 1:
        raise DpmfError("name one thing to audit: a config, or --algorithm KEY, or --all, or --flaws")
    settings = Settings(
        pairs=pairs,
        numeric=numeric,
        trials=trials or 0,
        draws=BITS if bits else 0,
        epsilon=epsilon,
        confidence=confidence,
        seconds=SECONDS if trials is None and not flaws else 0.0,
    )
    loaded = None if config is None else load_config(config)
    title = algorithm or "audit" if loaded is None else loaded.name
    if flaws:
        wanted = jobs_of({flaw.entry for flaw in KNOWN}, settings)
    elif config is None or loaded is None:
        wanted = _registered(algorithm, settings)
    else:
        folders = Folders.named(data, base=config.parent, results=results)
        wanted = _of_config(loaded, settings, folders)
    if trials and trials < LEAST_TRIALS:
        raise DpmfError(
            f"--trials {trials}: too few to show anything; give {LEAST_TRIALS} or more fits on each side"
        )
    kept = outcomes_of(wanted, title, results, jobs or available_cores())
    for name, outcome in kept.items():
        if outcome.worst_pair:
            write_atomically(results / FOLDER / "pairs" / f"{name}.csv", outcome.worst_pair.encode())
    outcomes = list(kept.values())
    if flaws:
        shown = flaws_table([(flaw, flaw.shown_by(outcomes)) for flaw in KNOWN])
        print(draw(shown, form), end="")
        return
    folder = results if loaded is None else results / title
    if loaded is not None:
        keep_for_experiment(folder, outcomes, loaded.hash)
    if every or loaded is not None:
        for suffix in ("md", "csv"):
            add_file(folder / f"audit.{suffix}", draw(audits_table(outcomes), suffix).encode())
    print(draw(audits_table(outcomes), form), end="")
    if any(outcome.refuted for outcome in outcomes):
        raise typer.Exit(1)


def _registered(key: str | None, settings: "Settings") -> list["Job"]:
    """Jobs for all variants of one algorithm, or of all algorithms if `key` is None."""
    from dpmf_cli.algorithms import plugins
    from dpmf_cli.algorithms.registry import PRIVATE
    from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
    from dpmf_cli.audit.entries import of_plugin, registered
    from dpmf_cli.audit.job import Job
    from dpmf_cli.core.errors import did_you_mean

    if key is not None and key not in PRIVATE:
        if key not in plugins.available():
            raise DpmfError(f'there is no private algorithm "{key}"{did_you_mean(key, PRIVATE)}')
        found = plugins.plugin(key)
        if not issubclass(found, PrivateAlgorithm):
            raise DpmfError(f'"{key}" spends no ε: there is nothing to audit')
        return [Job(each, settings) for each in of_plugin(found)]
    return [Job(each, settings) for each in registered(key)]


def _of_config(loaded: "ExperimentConfig", settings: "Settings", folders: "Folders") -> list["Job"]:
    """Jobs for the private entries of a config, with pairs of its own data."""
    from dataclasses import replace

    from dpmf_cli.algorithms.shared.base import PrivateAlgorithm
    from dpmf_cli.audit.job import Job
    from dpmf_cli.audit.pairs import pairs_of
    from dpmf_cli.datasets import load
    from dpmf_cli.datasets.canonical import Stars

    dataset = load(loaded.dataset, folders, loaded.split)
    ratings = dataset.ratings
    if dataset.identity.to_stars:
        ratings = Stars(ratings.scale).of(ratings)
    made = []
    for entry in loaded.algorithms:
        if not isinstance(entry, PrivateAlgorithm):
            continue
        pairs = tuple(pairs_of(ratings, entry.neighbours, OWN_PAIRS))
        for piece, grid in entry.pieces(loaded.grid(entry)):
            some = tuple(dict.fromkeys((grid[0], grid[len(grid) // 2], grid[-1])))
            own = replace(settings, epsilons=some)
            made.append(Job(piece, own, pairs))
    return made
