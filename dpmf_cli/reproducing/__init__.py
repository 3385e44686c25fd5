"""Reproduces complete papers: runs all their experiments as one run, writes tables and figures, and checks them."""
