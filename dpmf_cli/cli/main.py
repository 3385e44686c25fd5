"""The command line: parse, call, print. Heavy imports happen inside the commands, so that help is instant."""

import sys
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from dpmf_cli import __version__, terminal
from dpmf_cli.cli import limits
from dpmf_cli.cli.advise import advise
from dpmf_cli.cli.audit import audit
from dpmf_cli.cli.combined import combined
from dpmf_cli.cli.datasets import app as datasets_app
from dpmf_cli.cli.doctor import doctor
from dpmf_cli.cli.explore import explore
from dpmf_cli.cli.frontier import frontier
from dpmf_cli.cli.init import init
from dpmf_cli.cli.local import app as local_app
from dpmf_cli.cli.options import PluginOption
from dpmf_cli.cli.papers import configs
from dpmf_cli.cli.recommend import recommend
from dpmf_cli.cli.release import predict, release
from dpmf_cli.cli.report import plot, report
from dpmf_cli.cli.reproduce import reproduce
from dpmf_cli.cli.run import plan, run
from dpmf_cli.cli.tables import baselines, compare, crossings
from dpmf_cli.cli.verify import verify
from dpmf_cli.errors import DpmfError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.add_typer(datasets_app, name="datasets")
app.add_typer(local_app, name="local")
for _command in (
    combined,
    frontier,
    init,
    advise,
    recommend,
    run,
    plan,
    release,
    predict,
    crossings,
    compare,
    baselines,
    report,
    plot,
    configs,
    reproduce,
    explore,
    audit,
    verify,
    doctor,
):
    app.command()(_command)


def _version(asked: bool) -> None:
    if asked:
        print(f"dpmf {__version__}")
        raise typer.Exit()


@app.callback()
def dpmf(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Experiments on differentially private recommenders: from a YAML config to a crossing table."""


def main() -> None:
    """Runs the command line. A DpmfError becomes one message on stderr and exit code 2."""
    terminal.guard()
    try:
        try:
            limits.check()
            app(prog_name="dpmf")
        finally:
            sys.stdout.flush()  # a failed write is reported here, and not by Python at exit
    except BrokenPipeError:
        sys.exit(1)
    except DpmfError as error:
        print(f"dpmf: {error}", file=sys.stderr)
        sys.exit(2)
    except MemoryError as error:
        what = f" ({error})" if str(error) else ""
        print(f"dpmf: not enough memory{what}; `dpmf plan` says how much a config needs", file=sys.stderr)
        sys.exit(2)


@app.command()
def schema(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Names of plugins to include in the schema.", show_default=False),
    ] = None,
    plugin: PluginOption = None,
) -> None:
    """Print the JSON schema of a config, for editors.

    Example: dpmf schema > configs/schema.json
    """
    import json

    from dpmf_cli.algorithms import plugins
    from dpmf_cli.config import ExperimentConfig
    from dpmf_cli.config.schema import file_schema

    model = ExperimentConfig.knowing([plugins.plugin(name) for name in names or plugins.given()])
    print(json.dumps(file_schema(model), indent=2, ensure_ascii=False))


@app.command()
def docs(
    page: Annotated[
        Path | None,
        typer.Argument(help="A page to print with its generated tables updated.", show_default=False),
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            "--results",
            help="Folder of results; also updates what the page shows of results.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Print the reference: commands, keys, algorithms.

    Given a page of the documentation, prints that page with its generated tables updated.

    Example: dpmf docs > docs/reference.md
    """
    from dpmf_cli.cli.answers import answer
    from dpmf_cli.cli.paper_pages import with_tables
    from dpmf_cli.cli.reference import reference

    if page is None:
        print(reference(typer.main.get_command(app)), end="")
    else:
        print(with_tables(page, partial(answer, results=results) if results else None, results), end="")
