"""Figures, and the CSV files with their numbers."""
