"""What papers leave open, explored: every claim and printed cell under many settings."""
