"""What fits take: seconds of one core, and bytes. One place for all figures, away from the pseudocode of the methods."""
