"""What each paper leaves open, as data: one YAML file per paper, named by its key."""
