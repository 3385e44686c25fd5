"""Explores what papers leave open: every claim and printed cell is judged under many settings."""
