"""The commands and what they print: one file for each command or family of commands."""
