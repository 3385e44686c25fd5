"""Runs the command line as `python -m dpmf_cli`."""

from dpmf_cli.cli.entry import main

if __name__ == "__main__":
    main()
