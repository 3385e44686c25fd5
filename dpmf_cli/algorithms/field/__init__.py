"""Methods of papers other than the five that dpmf reproduces."""
