"""Commands, one file a command or a family of commands, and what they print."""
