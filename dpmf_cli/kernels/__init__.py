"""Compiled loops and nothing else: what can be read in Python is in Python, elsewhere."""
