"""Tasks, their results, and the folders that hold them."""
