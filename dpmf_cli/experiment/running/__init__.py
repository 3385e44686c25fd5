"""How an experiment is run: its plan, its tasks and processes, and what verifies it."""
