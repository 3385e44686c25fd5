"""An experiment: its config, how it is run, and its results."""
