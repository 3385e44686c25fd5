"""What a reader sees of an experiment: tables, figures, and files for other programs.

Everything here shows and measures nothing. It returns text or bytes; `outputs` writes files.
"""
