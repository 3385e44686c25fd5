"""Audits: tests of a method's ε against the code that runs, whatever its proof says."""
