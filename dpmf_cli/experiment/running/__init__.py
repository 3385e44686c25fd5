"""How an experiment is run: its plan, its tasks, processes and interrupts."""
