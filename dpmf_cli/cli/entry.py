"""The console script. It settles what a signal does before it imports anything that takes time."""

from typing import NoReturn

from dpmf_cli.experiment.running.interrupts import supervised


def main() -> NoReturn:
    """Runs `dpmf` in a child process that any signal ends at once."""
    supervised(_command)


def _command() -> None:
    from dpmf_cli.cli.main import main as command

    command()
