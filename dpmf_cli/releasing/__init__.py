"""Releases: a method fitted once on all ratings under a secret seed, written, kept account of, predicted with."""
