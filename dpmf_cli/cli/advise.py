"""`dpmf advise`: says which private method suits a file of ratings."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpmf_cli.cli.options import ResultsOption
from dpmf_cli.cli.own_config import (
    DecimalOption,
    EpsilonOption,
    FileArgument,
    ForceOption,
    HeaderOption,
    ItemOption,
    ProtectsOption,
    RatingOption,
    Said,
    ScaleOption,
    SeparatorOption,
    ToOption,
    UserOption,
    write_own_config,
)
from dpmf_cli.cli.run import JobsOption
from dpmf_cli.errors import DpmfError

if TYPE_CHECKING:
    from dpmf_cli.datasets import Folders


def advise(
    ratings: FileArgument,
    protects: ProtectsOption = "value",
    epsilon: EpsilonOption = 1.0,
    scale: ScaleOption = None,
    user: UserOption = None,
    item: ItemOption = None,
    rating: RatingOption = None,
    separator: SeparatorOption = None,
    header: HeaderOption = None,
    decimal: DecimalOption = None,
    to: ToOption = None,
    force: ForceOption = False,
    results: ResultsOption = Path("results"),
    jobs: JobsOption = None,
) -> None:
    """Say in a page which private method suits a file of ratings.

    Looks at the file, writes a config with every provable method (as `dpmf init` does), and runs it. The page says
    which method to take at your ε.

    Example: dpmf advise ratings.csv --protects value --epsilon 1
    """
    from dpmf_cli.datasets import Folders

    said = Said(scale, user, item, rating, separator=separator, header=header, decimal=decimal)
    config, _ = write_own_config(ratings, said, protects, epsilon, to, force=force)
    print_answer(config, Folders.named(base=config.parent, results=results), jobs, epsilon)


def print_answer(
    config: Path,
    folders: "Folders",
    jobs: int | None,
    epsilon: float,
    *,
    by_errors: bool = True,
    before: str = "",
) -> None:
    """Runs a config and prints the page that says which method to take; `before` follows the page's title."""
    from dpmf_cli.config import load_config
    from dpmf_cli.datasets import load
    from dpmf_cli.experiment import run
    from dpmf_cli.report.answer import answer
    from dpmf_cli.running.machine import available_cores
    from dpmf_cli.running.processes import LocalProcesses
    from dpmf_cli.terminal import say

    again, loaded = f"dpmf run {config}", load_config(config)
    finished = run(loaded, folders, LocalProcesses(jobs or available_cores()), command=again)
    if finished.failures or finished.missing:
        raise DpmfError(f"{finished.missing} tasks have no result; `{again}` says why and tries them again")
    experiment = finished.collected.experiment
    ratings = load(loaded.dataset, folders, loaded.test).ratings
    warnings = [curve.guarantee.warning(ratings.n_users, len(ratings)) for curve in experiment.curves]
    for warning in filter(None, dict.fromkeys(warnings)):
        say(f"warning: {warning}")
    print(f"{experiment.title}: which private method to take at ε = {epsilon:g}\n")
    guessed = loaded.has_guessed_scale
    page = answer(experiment, epsilon, str(config), by_errors=by_errors, guessed_scale=guessed)
    print(before + page, end="")
