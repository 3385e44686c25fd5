"""What a reader sees of an experiment: tables, figures, and files for other programs.

Everything here shows and measures nothing. It returns text or bytes; `outputs` and `figures.figure_file` write files.
"""
