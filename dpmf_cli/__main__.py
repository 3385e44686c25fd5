"""`python -m dpmf_cli`."""

from dpmf_cli.cli import main

main()
