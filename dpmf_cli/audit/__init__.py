"""Audits: what the releases of a program show about its privacy, whatever its proof says."""
