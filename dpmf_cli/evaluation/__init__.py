"""Folds, errors, curves and crossings: what is measured, and with what uncertainty."""
