"""Ratings, random streams, files, the terminal, errors, and compiled code: what every room may use."""

__version__ = "0.1.0"
