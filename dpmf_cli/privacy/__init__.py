"""Privacy: neighbours, how far a measurement moves between them, the noise, and the ledger."""
