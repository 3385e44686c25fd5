"""Methods that spend no ε."""
