"""Whole experiments: from data to tables; those that reproduce papers, and that explore what papers leave open."""
