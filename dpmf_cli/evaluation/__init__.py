"""Folds, errors, curves and crossings: what is measured, and how sure one can be of it."""
