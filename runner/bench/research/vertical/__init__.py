"""Vertically split tables, system against system: what `bench utility --vertical` measures.

runs.py       one run of a study with two owners, through `cosynth run`, and what its table is worth
printed.py    what the papers print for the same tables
command.py    all cells of the table, at a terminal and as JSON lines
"""
