"""Tasks, their results, and the folders that hold them."""

MANIFEST = "manifest.json"
"""The file of a results folder that says what was run."""
