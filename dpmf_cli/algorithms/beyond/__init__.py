"""Methods that are in no paper: extensions that a paper suggests, and simple methods that its own have to beat."""
