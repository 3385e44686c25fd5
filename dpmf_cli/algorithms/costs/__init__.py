"""The cost of fits, in seconds of one core and in bytes. All figures are in one place, away from the pseudocode."""
