"""Methods that no paper has: what a paper invites, and what its own methods have to beat."""
