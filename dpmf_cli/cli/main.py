"""The command line: parse, call, and print what the command returns, if it does not print as it goes on.

Heavy imports happen inside the commands, so that help is instant.
"""

import os
import resource
import sys
from pathlib import Path
from typing import Annotated

import typer

import dpmf_cli
from dpmf_cli import __version__
from dpmf_cli.cli import options, tables
from dpmf_cli.cli.audit import audit
from dpmf_cli.cli.datasets import app as datasets_app
from dpmf_cli.cli.health import doctor, verify
from dpmf_cli.cli.own_config import advise, init, recommend
from dpmf_cli.cli.papers import configs, explore, reproduce
from dpmf_cli.cli.release import predict, release
from dpmf_cli.cli.run import plan, run, tune
from dpmf_cli.core import terminal
from dpmf_cli.core.children import available_cores
from dpmf_cli.core.errors import DpmfError

LIBRARIES, OF_A_THREAD = 512 << 20, 80 << 20
"""Bytes of address space: for all imports with one OpenBLAS thread (497 MB, measured), and for each further thread
(82 MB: buffers and stacks of the two copies of OpenBLAS, one in NumPy and one in SciPy)."""

REFERENCE = Path(dpmf_cli.__file__).with_name("reference.txt")
"""The reference. In the repository it is a link to docs/reference.md, so that a built package has it, too."""


def check_limits() -> None:
    """Raises DpmfError if this process may use less address space than the libraries need."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    asked = os.environ.get("OPENBLAS_NUM_THREADS", "")
    threads = int(asked) if asked.isdecimal() else available_cores()
    needed = LIBRARIES + (threads - 1) * OF_A_THREAD
    if resource.RLIM_INFINITY != limit < needed:
        raise DpmfError(
            f"address space is limited to {limit >> 20} MiB (ulimit -v), but the libraries need {needed >> 20} MiB "
            f"with {threads} threads; raise the limit, or set OPENBLAS_NUM_THREADS=1 ({LIBRARIES >> 20} MiB)"
        )


app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)
app.add_typer(datasets_app, name="datasets")
app.add_typer(tables.local_app, name="local")
for _command in (
    *(tables.combined, tables.frontier, init, advise, recommend, run, plan, tune, release, predict),
    *(tables.crossings, tables.levels, tables.explain, tables.compare, tables.baselines, tables.report),
    *(tables.plot, configs, reproduce, explore, audit, verify, doctor),
):
    app.command()(_command)


def _version(asked: bool) -> None:
    if asked:
        print(f"dpmf {__version__}")
        raise typer.Exit()


@app.callback(result_callback=lambda text, **_: print(text or "", end=""))
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
            check_limits()
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
        list[str] | None, typer.Argument(help="Names of plugins to include in the schema.")
    ] = None,
    plugin: options.PluginOption = None,
) -> str:
    """Print the JSON schema of a config, for editors.

    Example: dpmf schema > configs/schema.json
    """
    import json

    from dpmf_cli.algorithms import plugins
    from dpmf_cli.experiment.config import ExperimentConfig
    from dpmf_cli.experiment.config.loading import file_schema

    model = ExperimentConfig.knowing([plugins.plugin(name) for name in names or plugins.given()])
    return json.dumps(file_schema(model), indent=2, ensure_ascii=False) + "\n"


@app.command()
def docs() -> str:
    """Print the reference: commands, keys, algorithms.

    Example: dpmf docs | less
    """
    return REFERENCE.read_text(encoding="utf-8")
