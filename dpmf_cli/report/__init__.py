"""What a reader sees of an experiment: tables, figures, and files for other programs.

Nothing here measures. All of it returns text or bytes; `outputs` writes files.
"""
