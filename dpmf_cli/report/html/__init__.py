"""The report: one HTML page that needs no network, no server and no script to be read."""
