"""Friedman, Berkovsky and Kaafar 2016: applying differential privacy to matrix factorization."""
