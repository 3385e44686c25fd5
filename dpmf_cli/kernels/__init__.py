"""Compiled loops and nothing else. Code that can stay plain Python is in other folders."""
