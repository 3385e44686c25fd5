"""Tables, for a terminal, Markdown, LaTeX and CSV."""
