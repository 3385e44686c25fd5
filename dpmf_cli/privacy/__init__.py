"""Privacy: what neighbours differ in, how far a measurement moves between them, the noise, the ledger."""
