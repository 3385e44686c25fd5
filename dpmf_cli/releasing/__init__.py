"""Releases: fits a method once on all ratings under a secret seed, writes the model, accounts for it, predicts."""
