"""What fits take, in seconds of one core and in bytes: all figures in one place, away from the pseudocode."""
