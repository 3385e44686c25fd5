"""What a reader sees of an experiment: tables, figures, and files for other programs.

Everything here returns text or bytes and writes nothing; nothing here measures, it only shows.
"""
