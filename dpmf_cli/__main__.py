"""Runs the command line as `python -m dpmf_cli`."""

import sys

if __name__ == "__main__":
    if not sys.flags.safe_path:
        del sys.path[0]  # the working directory: its `pickle.py` must not run
    from dpmf_cli.cli.entry import main

    main()
