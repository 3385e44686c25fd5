"""Whole papers: all their experiments as one run, what is written of them, and whether it is what was expected."""
